import Foundation
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem
import Testing

@testable import SallyportCLI

/// Root's verbs on a host, about an account that every machine has. Its fleet is a store of its
/// own.
@Suite struct `Root's verbs about a person of the fleet` {
  private let bench = Bench()
  private let own = FileManager.default.temporaryDirectory
    .appendingPathComponent("sallyport-\(UUID().uuidString)")
  private let user = "nobody"
  private var fleet: Store { Store(root: own.path + "/fleet", owner: .effectiveUser) }

  init() throws {
    try FileManager.default.createDirectory(
      at: own, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    try Data().write(to: own.appendingPathComponent("sallyport-fleet.conf"))
    try bench.policy("[default]\nverification = fleet\n")
    let (fleet, bench) = (fleet, bench)
    try fleet.prepare()
    bench.fleet.directory = own.path
    bench.fleet.examiner = {
      FileExaminer(store: fleet) { () throws(StoreTrouble) in bench.now }
    }
  }

  private func run(_ words: String..., typing script: [Act] = []) -> Bench.Outcome {
    let terminal = FakeTerminal(script)
    return bench.runAsRoot(words, on: terminal, store: own.path + "/files")
  }

  private var enrollment: Enrollment? {
    get throws { try fleet.load(try account()).map(\.enrollment) }
  }

  private func account() throws -> Account {
    try Accounts.find(try #require(UserName(Array(user.utf8))))
  }

  private func enroll() throws -> Enrolled {
    let done = run("enroll", user, "--no-confirm", "--json")
    try #require(done.status == 0, "\(done.aside)")
    return try done.json(Enrolled.self)
  }

  @Test func `Enroll, add, rename, backup-codes and remove change what the fleet has`() throws {
    let enrolled = try enroll()
    #expect(try enrollment?.authenticators.map(\.name.text) == ["phone"])
    #expect(run("backup-codes", user).answer == "10 backup codes left\n")
    let first = try enrolled.code(at: bench.now)
    let added = run("add", user, "tablet", "--no-confirm", "--qr", "none", typing: [.types(first)])
    #expect(added.status == 0, "\(added.aside)")
    let prompt = "Code of an existing authenticator, or backup code: (hidden)"
    #expect(added.terminal.prompts == [prompt])
    #expect(run("rename", user, "tablet", "laptop").status == 0)
    #expect(try enrollment?.authenticators.map(\.name.text) == ["phone", "laptop"])
    let before = try enrollment?.backupCodes?.id
    #expect(run("backup-codes", user, "--regenerate").status == 0)
    #expect(try enrollment?.backupCodes?.id != before)
    // The code was used up, there.
    #expect(run("remove", user, "laptop", typing: [.types(first)]).status == 1)
    #expect(run("remove", user, "laptop", "--force").answer.contains("\(user) has phone."))
    #expect(try enrollment?.authenticators.map(\.name.text) == ["phone"])
    #expect(!FileManager.default.fileExists(atPath: own.path + "/files/users/\(user)"))
  }

  /// Unless a rule names it, the fleet never judges uid 0, and the machine needs one who gets in.
  @Test func `Root is changed in files`() throws {
    #expect(run("enroll", "root", "--no-confirm").status == 0)
    let root = try Accounts.find(try #require(UserName(Array("root".utf8))))
    #expect(try fleet.load(root) == nil)
    #expect(FileManager.default.fileExists(atPath: own.path + "/files/users/root"))
  }

  @Test func `Whose files wait here to be moved is changed in them`() throws {
    let files = own.path + "/files"
    #expect(run("enroll", user, "--no-confirm", "--store", files).status == 0)
    let renamed = run("rename", user, "phone", "old")
    #expect(renamed.status == 0)
    // Who reads it knows that the fleet still judges him as before.
    #expect(renamed.aside.contains("nobody is judged by the files of \(user)"))
    #expect(renamed.aside.contains("sallyport fleet push --user \(user)"))
    #expect(run("unlock", user).status == 0)
    #expect(try enrollment == nil)
    #expect(run("unenroll", user, "--force").status == 0)
    #expect(run("rename", user, "old", "b").aside.contains("not enrolled"))
  }

  /// As after a push that was stopped, or on another machine's disk.
  @Test func `Files that cannot be read are no reason to change him elsewhere`() throws {
    let files = own.path + "/files"
    #expect(run("enroll", user, "--no-confirm", "--store", files).status == 0)
    let path = files + "/users/\(user)/enrollment"
    try Data("garbage\n".utf8).write(to: URL(fileURLWithPath: path))
    for words in [["enroll", user, "--no-confirm"], ["add", user, "--no-confirm"]] {
      let done = bench.runAsRoot(words, on: FakeTerminal([]), store: files)
      #expect(done.status != 0 && done.aside.contains(path), "\(done.aside)")
      #expect(try enrollment == nil)
    }
    #expect(run("unenroll", user, "--force").status == 0)
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  @Test func `An answer that does not come leaves the handout`() throws {
    let sheet = own.path + "/sheet.txt"
    bench.fleet.examiner = { Refusing(isSilent: true) }
    let done = run("enroll", user, "--no-confirm", "--handout", sheet)
    #expect(done.status == 75 && done.aside.contains("it is not known whether"), "\(done.aside)")
    #expect(FileManager.default.fileExists(atPath: sheet))
  }

  @Test func `What cannot be is refused with its reason`() throws {
    #expect(run("rename", user, "a", "b").aside.contains("not enrolled"))
    _ = try enroll()
    let again = run("enroll", user, "--no-confirm", "--force")
    #expect(again.status == 73)
    #expect(again.aside.contains("nobody is enrolled in the fleet already"))
    #expect(run("remove", user, "phone", "--force").aside.contains("last"))
    #expect(run("remove", user, "tablet", "--force").aside.contains("tablet"))
    #expect(run("rename", user, "tablet", "b").aside.contains("tablet"))
  }

  @Test(arguments: [
    ["status"], ["unlock"], ["unenroll", "--force"], ["verify"], ["resync"], ["require"],
    ["exempt"],
  ])
  func `The others say that he is not in the files of this machine`(words: [String]) throws {
    _ = try enroll()
    let done = run(words[0], user, words.count > 1 ? words[1] : "--json")
    #expect(done.status == 66)
    #expect(done.aside.contains("nobody is in the fleet, and not in the files of this machine"))
    #expect(try enrollment != nil)
  }

  @Test(arguments: [
    ["enroll"], ["add"], ["rename", "phone", "b"], ["remove", "phone", "--force"],
    ["backup-codes", "--regenerate"],
  ])
  func `A host that may not enroll is told so before anything is asked`(words: [String]) throws {
    bench.fleet.examiner = { Refusing() }
    let done = bench.runAsRoot(
      [words[0], user] + words.dropFirst(), on: FakeTerminal([]), store: own.path + "/files")
    #expect(done.status == 77)
    #expect(done.aside.contains("this host may not change people of it (enrolls = no)"))
    #expect(done.aside.contains("hint: sallyport-verifier invite NAME --enrolls"))
    #expect(done.answer.isEmpty)
  }
}

/// A service whose verifiers do not let this host change anything.
private final class Refusing: Examiner {
  let isForRoot = true
  func isThere() -> Bool { true }
  /// Only where something is to be changed, and without an answer.
  private let isSilent: Bool
  private var refusal: StoreTrouble { .service(path: "fleet", isSilent ? .silent : .notServed) }

  init(isSilent: Bool = false) { self.isSilent = isSilent }

  func prepare(
    _ typed: [UInt8], _ account: Account?, in context: LoginContext, mayEnroll: Bool,
    after first: FirstFactor
  ) throws(StoreTrouble) -> AuthStep { throw refusal }
  func attempt(
    _ typed: Secret, knownAs malformation: Malformation?, by pending: PendingLogin, as turn: Turn
  ) throws(StoreTrouble) -> Outcome { throw refusal }
  func enrolled(_ account: Account, in context: LoginContext) throws(StoreTrouble) -> PendingLogin?
  {
    if isSilent { return nil }
    throw refusal
  }
  func level(of account: Account, in context: LoginContext) throws(StoreTrouble) -> EnrollmentLevel
  { throw refusal }
  func remember(_ address: NumericAddress, for pending: PendingLogin) throws(StoreTrouble) {
    throw refusal
  }
  func rehearse(for user: UserName, in context: LoginContext) throws(StoreTrouble) {
    if !isSilent { throw refusal }
  }
  func amend(
    _ change: EnrollmentChange, of user: UserName, _ pending: PendingLogin?,
    in context: LoginContext
  ) throws(StoreTrouble) -> Amendment { throw refusal }
  func countLogin(of name: UserName, in context: LoginContext) throws(StoreTrouble) -> UInt32 {
    throw refusal
  }
}
