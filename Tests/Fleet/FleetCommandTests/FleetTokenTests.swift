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

@Suite struct `Hardware tokens of people in the fleet` {
  private let bench = Bench()
  private let own = FileManager.default.temporaryDirectory
    .appendingPathComponent("sallyport-\(UUID().uuidString)")
  private let user = "nobody"
  private var fleet: Store { Store(root: own.path + "/fleet", owner: .effectiveUser) }

  init() throws {
    try bench.becomeHost(of: fleet, in: own)
  }

  private func run(_ words: String..., typing script: [Act] = []) -> Bench.Outcome {
    bench.runAsRoot(words, on: FakeTerminal(script), store: own.path + "/files")
  }

  private var enrollment: Enrollment? {
    get throws {
      let account = try Accounts.find(try #require(UserName(Array(user.utf8))))
      return try fleet.load(account).map(\.enrollment)
    }
  }

  private let secret = "3132333435363738393031323334353637383930"
  private var inventory: Store { Store(root: own.path + "/files", owner: .effectiveUser) }

  private func holder() throws -> Token.Holder? {
    try inventory.token(try #require(TokenSerial("77".utf8)))?.holder
  }

  /// The token 77, of which the fleet's person has a copy, and a phone.
  private func assign() throws -> Enrolled {
    let imported = run("import", "csv", "-", typing: [.types("77,\(secret)\n")])
    try #require(imported.status == 0, "\(imported.aside)")
    let one = run("enroll", user, "--no-confirm", "--json")
    let enrolled = try one.json(Enrolled.self)
    let done = run("token", "assign", "77", user, "--force", "--no-confirm")
    try #require(done.status == 0, "\(done.aside)")
    return enrolled
  }

  private func unassign(_ options: String...) -> Bench.Outcome {
    bench.runAsRoot(
      ["token", "unassign", "77"] + options, on: FakeTerminal([]), store: own.path + "/files")
  }

  @Test func `go from hand to hand`() throws {
    let enrolled = try assign()
    #expect(try enrollment?.authenticators.map(\.name.text) == ["phone", "77"])
    #expect(try holder()?.authority == .fleet)
    #expect(run("token", "list").answer.contains("77       TOTP, 6 digits, 30 s   nobody"))
    #expect(run("token", "assign", "77", user, "--force").aside.contains("has the token 77"))
    let code = try enrolled.code(at: bench.now)
    let back = run("token", "unassign", "77", typing: [.types(code)])
    let told = "77 is nobody's now, and is removed from nobody.\n"
    #expect(back.answer.hasPrefix(told), "\(back.aside)")
    #expect(try enrollment?.authenticators.map(\.name.text) == ["phone"])
    #expect(try holder() == nil)
    #expect(run("token", "assign", "77", user, "--force", "--no-confirm").status == 0)
    // The account had another name when it got the token.
    let serial = try #require(TokenSerial("77".utf8))
    var token = try #require(try inventory.token(serial))
    let before = try #require(UserName("was-nobody".utf8))
    token.holder = Token.Holder(user: before, uid: token.holder?.uid, authority: .fleet)
    try inventory.replace(token)
    let renamed = unassign("--force")
    #expect(renamed.answer.contains("and is removed from was-nobody"), "\(renamed.aside)")
    #expect(try enrollment?.authenticators.map(\.name.text) == ["phone"])
    #expect(run("token", "assign", "77", user, "--force", "--no-confirm").status == 0)
    #expect(run("unenroll", user, "--force").status == 0)
    #expect(unassign().answer.contains("nobody did not have it"))
    #expect(run("token", "forget", "77", "--yes").status == 0)
  }

  @Test func `are told apart from other tokens of the same person`() throws {
    _ = try assign()
    let other = run("import", "csv", "-", typing: [.types("78,43\(secret)\n")])
    #expect(other.status == 0, "\(other.aside)")
    #expect(run("token", "assign", "78", user, "--force", "--no-confirm").status == 0)
    #expect(run("remove", user, "77", "--force").status == 0)
    let back = unassign("--force")
    #expect(back.answer.contains("nobody did not have it"), "\(back.aside)")
    #expect(try enrollment?.authenticators.map(\.name.text) == ["phone", "78"])
    // The verifier refuses what gives the same codes as another one of hers.
    #expect(run("token", "assign", "77", user, "--force", "--no-confirm").status == 0)
    let twice = run(
      "add", user, "--name", "copy", "--force", "--no-confirm", "--secret-from", "-", "--hex",
      "--device", "token", typing: [.types(secret)])
    #expect(twice.aside.contains("nobody has this secret already, as \"77\""), "\(twice.aside)")
  }

  // shows: token-hands
  @Test func `are freed by what the fleet says alone`() throws {
    _ = try assign()
    // By the files of a store that is named, or where the policy has changed.
    let named = unassign("--force", "--store", own.path + "/files")
    #expect(named.status == 1, "\(named.answer)")
    #expect(named.aside.contains("the fleet verifies the codes of nobody, and cannot be asked"))
    try bench.policy("")
    let back = unassign("--force")
    let told = "77 is nobody's now, and is removed from nobody.\n"
    #expect(back.answer.hasPrefix(told), "\(back.aside)")
    #expect(run("unenroll", user, "--force").status == 66)
    try bench.policy("[default]\nverification = fleet\n")
    #expect(run("token", "assign", "77", user, "--force", "--no-confirm").status == 0)
    // Nobody answers.
    let (authority, asking) = (bench.place.authority, bench.place.asking)
    bench.place.authority = { Refusing(isSilent: true) }
    let silent = PersonLine(store: fleet, now: bench.now, fault: .away)
    bench.place.asking = { _, _, _ in silent }
    #expect(unassign("--force").status != 0)
    let forced = unassign("--force", "--unchecked")
    #expect(forced.status != 0, "an error is no reason: \(forced.answer)")
    (bench.place.authority, bench.place.asking) = (authority, asking)
    #expect(try holder()?.authority == .fleet)
    // Of a fleet that the machine has left, nothing is known, also as a host of another one.
    try bench.policy("")
    #expect(run("fleet", "leave", "--force").status == 0)
    #expect(try #require(try holder()).authority == nil)
    for isHost in [false, true] {
      if isHost { try becomeHost(in: own.path, enrolls: true) }
      let done = unassign("--force")
      #expect(done.status == 1 && done.aside.contains("it is not known what verifies"))
      #expect(try holder() != nil)
    }
    let freed = unassign("--force", "--unchecked")
    #expect(freed.answer.contains("If nobody still has it, it logs nobody in"), "\(freed.aside)")
    #expect(try holder() == nil)
  }

  @Test func `that are pushed with their person are the fleet's`() throws {
    let host = try MovingHost()
    _ = try host.bench.enroll("daemon")
    let imported = host.bench.run(
      "import", "csv", "-", on: FakeTerminal([.types("77,\(secret)\n78,43\(secret)\n")]))
    #expect(imported.status == 0, "\(imported.aside)")
    for (serial, user) in [("77", "daemon"), ("78", "bin")] {
      let done = host.bench.run("token", "assign", serial, user, "--force", "--no-confirm")
      #expect(done.status == 0, "\(done.aside)")
    }
    #expect(host.push("--user", "daemon").status == 0)
    for (serial, place) in [("77", Token.Authority.fleet), ("78", .files)] {
      let token = try host.store.token(try #require(TokenSerial(serial.utf8)))
      #expect(token?.holder?.authority == place)
    }
    let back = host.bench.run("token", "unassign", "77", "--force")
    #expect(back.status != 0, "\(back.answer)")
  }
}
