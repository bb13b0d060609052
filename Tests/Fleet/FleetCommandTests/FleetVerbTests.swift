import FleetProtocol
import FleetTransport
import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem
import Testing

@testable import FleetCommand
@testable import SallyportCLI

/// Root's verbs on a host, about an account of every machine. Its fleet has a store of its own.
@Suite struct `Root's verbs about a person of the fleet` {
  private let bench = Bench()
  private let own = FileManager.default.temporaryDirectory
    .appendingPathComponent("sallyport-\(UUID().uuidString)")
  private let user = "nobody"
  private var fleet: Store { Store(root: own.path + "/fleet", owner: .effectiveUser) }

  init() throws {
    try bench.becomeHost(of: fleet, in: own)
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

  /// Unless a rule names it, the fleet never verifies uid 0, and the machine needs one who gets in.
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
    // The text says that the fleet still verifies his codes as before.
    #expect(renamed.aside.contains("the files of \(user) verify no codes"))
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
    bench.place.authority = { Refusing(isSilent: true) }
    let done = run("enroll", user, "--no-confirm", "--handout", sheet)
    #expect(done.status == 75 && done.aside.contains("it is not known whether"), "\(done.aside)")
    #expect(FileManager.default.fileExists(atPath: sheet))
  }

  @Test func `What cannot be is refused with its reason`() throws {
    #expect(run("rename", user, "a", "b").aside.contains("not enrolled"))
    _ = try enroll()
    let again = run("enroll", user, "--no-confirm", "--force")
    #expect(again.status == 73 && again.aside.contains("nobody is enrolled in the fleet already"))
    #expect(run("remove", user, "phone", "--force").aside.contains("last"))
    #expect(run("remove", user, "tablet", "--force").aside.contains("tablet"))
    #expect(run("rename", user, "tablet", "b").aside.contains("tablet"))
  }

  @Test func `Status and verify show what the fleet has, and unlock forgets wrong codes`() throws {
    let enrolled = try enroll()
    let codes = try (0...1).map { try enrolled.code(at: UnixTime(bench.now.seconds + $0 * 30)) }
    let verified = run("verify", user, typing: [.types(codes[0])])
    #expect(verified.status == 0 && verified.answer.contains("It is used up now."))
    #expect(run("verify", user, typing: [.types(codes[0])]).status == 1)
    let shown = run("status", user)
    #expect(shown.status == 0 && shown.answer.contains(" in the fleet\n"), "\(shown.aside)")
    #expect(shown.answer.contains("10 of 10 left") && shown.answer.contains("phone"))
    #expect(run("status", user, "--json").answer.contains("\"inFleet\" : true"))
    while run("verify", user, typing: [.types("000000")]).status == 1 {
      let state = try #require(try fleet.load(try account())).state
      if state.known != .full { break }
    }
    let unlocked = run("unlock", user)
    #expect(unlocked.status == 0, "\(unlocked.aside)")
    #expect(try fleet.load(try account())?.state.known == .full)
    #expect(run("verify", user, typing: [.types(codes[1])]).status == 0)
  }

  @Test func `Resync brings an authenticator of the fleet into step`() throws {
    let enrolled = try enroll()
    let record = try #require(try fleet.load(try account()))
    _ = try fleet.transact(record, asKnown: true) { (_, state) throws(StoreTrouble) in
      var state = state
      state.authenticators[0].lastAccepted = UInt64(bench.now.seconds / 30) + 100
      return (true, state)
    }
    let codes = try (-1...0).map { try enrolled.code(at: UnixTime(bench.now.seconds + $0 * 30)) }
    let typing: [Act] = codes.map { .types($0) }
    let done = run("resync", user, typing: typing)
    #expect(done.status == 0 && done.answer.contains("\"phone\" is synchronized"), "\(done.aside)")
    #expect(run("resync", user, typing: typing).aside.contains("used"))
    #expect(run("resync", user, "tablet").aside.contains("tablet"))
  }

  @Test func `Of who has no account any more the enrollment is shown and ended, and none is made`()
    throws
  {
    let gone = try #require(UserName(Array("gone-by-now".utf8)))
    let made = run("enroll", gone.text, "--allow-missing", "--no-confirm")
    #expect(made.status == 67, "\(made.aside)")
    let one = try enroll()
    let enrollment = try #require(try self.enrollment)
    let own = Enrollment(
      id: enrollment.id, user: gone, uid: nil, created: enrollment.created,
      authenticators: enrollment.authenticators, backupCodes: enrollment.backupCodes)
    try fleet.create(own, LoginState(initialFor: own))
    #expect(run("status", gone.text).status == 67)
    #expect(run("status", gone.text, "--allow-missing").answer.contains("phone"))
    let typing: [Act] = [.types(try one.code(at: bench.now))]
    #expect(run("verify", gone.text, "--allow-missing", typing: typing).status == 67)
    #expect(run("unenroll", gone.text, "--allow-missing", "--force").status == 0)
    #expect(try fleet.load(Account(name: gone, uid: nil)) == nil)
  }

  @Test func `Require and exempt set the level that the fleet has`() throws {
    #expect(run("exempt", user).status == 0)
    #expect(try fleet.level(of: try account()) == .exempt(until: nil))
    let shown = run("status", user)
    #expect(
      shown.answer.contains("nobody, not enrolled in the fleet") && shown.answer.contains("exempt"))
    #expect(run("exempt", user, "--until", "2099-03-01").status == 0)
    #expect(run("status", user).answer.contains("exempt until 2099-03-01 00:00 UTC"))
    #expect(run("require", user).status == 0)
    #expect(run("exempt", user, "--undo").aside.contains("level"))
    #expect(run("require", user, "--undo").answer.contains("the policy's level applies"))
    #expect(try fleet.level(of: try account()) == nil)
    #expect(!FileManager.default.fileExists(atPath: own.path + "/files"))
    _ = try enroll()
    #expect(run("exempt", user).answer.contains("is asked for a code all the same"))
  }

  @Test func `Block shuts out of all hosts by the fleet, or of one by its files`() throws {
    _ = try enroll()
    let done = run("block", user, "--until", "2099-03-01")
    #expect(done.status == 0, "\(done.aside)")
    for said in [
      "nobody is blocked in the fleet up to 2099-03-01 00:00 UTC: nothing is accepted.",
      "sudo sallyport block nobody --store /var/lib/sallyport",
    ] { #expect(done.answer.contains(said), "\(done.answer)") }
    #expect(run("block", user).answer.contains("Before this it was blocked up to 2099-03-01"))
    #expect(!FileManager.default.fileExists(atPath: own.path + "/files/blocked"))
    let shown = run("status", user).answer
    #expect(shown.contains("blocked") && shown.contains("in the fleet, since"), "\(shown)")
    #expect(run("pass", user).aside.contains("nobody is blocked: the pass is refused"))
    let added = run("enroll", "nobody", "--force", "--no-confirm")
    #expect(added.aside.contains("enrolled in the fleet already"))
    #expect(run("block", user, "--undo").answer == "nobody is not blocked any more.\n")
    #expect(run("block", user, "--undo").status == 66)
    #expect(run("block", user, "--store", own.path + "/files").status == 0)
    #expect(FileManager.default.fileExists(atPath: own.path + "/files/blocked/nobody"))
  }

  @Test func `Unenroll ends his enrollment in the fleet, with a code or by force`() throws {
    let enrolled = try enroll()
    #expect(run("unenroll", user, typing: [.types("000000")]).status == 1)
    #expect(try enrollment != nil)
    let code = try enrolled.code(at: bench.now)
    let done = run("unenroll", user, typing: [.types(code)])
    #expect(done.answer.contains("no longer enrolled in the fleet, on none of its hosts"))
    #expect(try enrollment == nil)
    #expect(run("unenroll", user, "--force").aside.contains("not enrolled"))
    _ = try enroll()
    #expect(run("unenroll", user, "--force").status == 0)
    #expect(try enrollment == nil)
  }

  private static let aboutOne = [
    ["status"], ["unlock"], ["unenroll", "--force"], ["resync"], ["require"], ["exempt"],
    ["block"],
  ]

  @Test(arguments: aboutOne)
  func `A host that may not enroll is told so, and changes nothing`(words: [String]) throws {
    _ = try enroll()
    try becomeHost(in: own.path, enrolls: false)
    let before = try fleet.load(try account())?.state
    let done = bench.runAsRoot(
      [words[0], user] + words.dropFirst(), on: FakeTerminal([]), store: own.path + "/files")
    #expect(done.status == 77)
    #expect(done.aside.contains("this host does not have the right changes there; nothing was"))
    #expect(done.aside.contains("hint: sudo sallyport \(words[0]) "), "\(done.aside)")
    #expect(done.aside.contains("hint: sallyport-verifier hosts allow web1 changes"))
    #expect(try fleet.load(try account())?.state == before)
  }

  @Test(arguments: aboutOne, [TransportFault.away, .unknown, .stranger, .revoked, .unsealed])
  func `Says what is known where no answer comes`(words: [String], fault: TransportFault) throws {
    _ = try enroll()
    let (fleet, bench) = (fleet, bench)
    bench.place.asking = { _, _, _ in PersonLine(store: fleet, now: bench.now, fault: fault) }
    let done = bench.runAsRoot(
      [words[0], user] + words.dropFirst(), on: FakeTerminal([]), store: own.path + "/files")
    let isRefused = [.stranger, .revoked, .unsealed].contains(fault)
    #expect(done.status == (isRefused ? 1 : 75), "\(done.aside)")
    let isChange = ["require", "exempt"].contains(words[0])
    let text =
      switch fault {
      case .stranger: "no verifier knows this host's key"
      case .revoked: "this host was revoked"
      case .unsealed: "no verifier has the keys of this host's seal"
      case .unknown where isChange: "it is not known whether nobody was changed in the fleet"
      case .away, .unknown, .unpinned: "no verifier can be asked; nothing was changed"
      }
    #expect(done.aside.contains(text), "\(done.aside)")
    #expect(try enrollment != nil)
  }

  @Test func `What older verifiers would not read names the end of the migration`() throws {
    _ = try enroll()
    bench.place.authority = { Refusing() }
    let done = run("pass", user, "--enroll")
    #expect(done.status == 1 && done.aside.contains("upgrade them all"), "\(done.aside)")
    #expect(done.aside.contains("hint: sallyport-verifier migrate --finish"))
    #expect(try enrollment?.passes.isEmpty == true)
  }

  @Test func `An older verifier, and one who was taken, are named`() throws {
    let (fleet, bench) = (fleet, bench)
    bench.place.asking = { _, _, _ in PersonLine(store: fleet, now: bench.now, body: []) }
    let old = run("status", user)
    #expect(old.aside.contains("the verifier is of an older version"), "\(old.aside)")
    let host = try #require(FleetHostName(Array("web2".utf8)))
    let told = PersonAnswer.told(PersonFacts(.taken(by: host), UserNote(), logins: 0)).encoded()
    bench.place.asking = { _, _, _ in PersonLine(store: fleet, now: bench.now, body: told) }
    let trouble = PersonAnswer.other(.trouble).encoded()
    bench.place.asking = { _, _, _ in PersonLine(store: fleet, now: bench.now, body: trouble) }
    for verb in ["status", "unlock", "resync"] {
      let done = run(verb, user)
      #expect(done.status == 74 && done.aside.contains("cannot tell what the fleet has of nobody"))
    }
    bench.place.asking = { _, _, _ in PersonLine(store: fleet, now: bench.now, body: told) }
    for verb in ["status", "unlock", "resync"] {
      #expect(run(verb, user).aside.contains("nobody is enrolled by the files of web2"))
    }
  }

  @Test(arguments: [
    ["enroll"], ["add"], ["rename", "phone", "b"], ["remove", "phone", "--force"],
    ["backup-codes", "--regenerate"],
  ])
  func `A host that may not enroll is told so before anything is asked`(words: [String]) throws {
    try becomeHost(in: own.path, enrolls: false)
    bench.place.authority = { Refusing() }
    let done = bench.runAsRoot(
      [words[0], user] + words.dropFirst(), on: FakeTerminal([]), store: own.path + "/files")
    #expect(done.status == 77)
    let right = words[0] == "enroll" ? "enrolls" : "changes"
    #expect(done.aside.contains("this host does not have the right \(right) there"))
    #expect(done.aside.contains("hint: sallyport-verifier hosts allow web1 \(right)"))
    #expect(done.answer.isEmpty)
  }
}

/// Verifiers whose people are in a store of files.
struct PersonLine: FleetVerifiers {
  let store: Store
  let now: UnixTime
  var fault: TransportFault?
  var body: [UInt8]?

  func ask(_ kind: FrameKind, within milliseconds: UInt64, _ made: (UInt64) -> Secret?)
    throws(TransportFault) -> VerifierAnswer
  {
    guard let frame = made(milliseconds) else { throw .away }
    if let fault { throw fault }
    guard kind == .management, let request = PersonRequest.decode(frame) else { return .notServed }
    let answer = (try? answer(request)) ?? .other(.trouble)
    return VerifierAnswer(to: .management, body ?? answer.encoded() ?? [])
  }

  private func answer(_ request: PersonRequest) throws -> PersonAnswer {
    let account = try Accounts.find(request.name)
    let isDone: Bool
    switch request.verb {
    case .tell:
      let moving = try store.load(account).flatMap { record in
        record.enrollment.withoutSecrets.map {
          MoveRequest.Moving($0.with(uid: nil), record.state)
        }
      }
      return .told(
        PersonFacts(
          moving.map { .enrolled($0) } ?? .notEnrolled,
          UserNote(level: try store.level(of: account)), logins: 0,
          block: try store.blocks(of: account).first?.block.map {
            FleetBlock(since: $0.since, until: $0.until)
          }))
    case .level(let level):
      try store.setLevel(level, of: account)
      isDone = true
    case .block(let until): isDone = try store.block(account, until: until, at: now) == .done
    case .former, .restore, .help: return .changed
    case .unblock: isDone = try store.unblock(account, at: now, Accounts.find) == .done
    case .unlock(let id): isDone = try store.unlock(account, id: id)
    case .end(let id): isDone = try store.end(account, id: id)
    case .forget(let id): isDone = try store.forget(account, id: id) != nil
    case .resynchronize(let codes, let name, let policy, let id):
      return try store.resynchronize(
        account, id: id, by: codes, named: name, under: policy, at: { now }
      ).map { .resynchronized($0) } ?? .changed
    }
    return isDone ? .other(.done) : .changed
  }
}
