import Foundation
import OneTimePassword
import SallyportCore
import SallyportSystem
import Testing

@testable import SallyportCLI

/// `sallyport add --json`
private struct Added: Decodable {
  let user, secret, uri: String
  let authenticator: Enrolled.Authenticator
  let adjacentIntervals: Int
}

extension Bench {
  /// The names that `status` shows.
  func names() throws -> [String] {
    try run("status", "--user", "alice", "--json").json(Looking.Report.self).authenticators.map(
      \.name)
  }

  func verify(_ code: String) -> Bench.Outcome {
    run("verify", "--user", "alice", on: FakeTerminal([.types(code)]))
  }

  /// Adds one without a question, and returns its URI.
  func add(_ name: String, _ type: String = "totp") throws -> String {
    let done = run(
      "add", "--user", "alice", "--name", name, "--type", type, "--no-confirm", "--force", "--json")
    try #require(done.status == 0, "\(done.aside)")
    return try done.json(Added.self).uri
  }

  /// Has alice's account log in from an address once.
  func loginFromAfar() throws {
    let store = Store(root: directory, owner: .effectiveUser)
    let name = try #require(UserName(Array("alice".utf8)))
    let record = try #require(try store.load(try Accounts.find(name)))
    let address = try #require(NetworkAddress([192, 0, 2, 7]))
    _ = try store.transact(record) { (_, state) throws(StoreTrouble) in
      var state = state
      state.origins = [KnownOrigin(origin: address, lastSeen: now)]
      return ((), state)
    }
  }

  func origins() throws -> Int {
    let store = Store(root: directory, owner: .effectiveUser)
    let name = try #require(UserName(Array("alice".utf8)))
    return try #require(try store.load(try Accounts.find(name))).state.origins.count
  }
}

@Suite struct `Adding` {
  private let bench = Bench()

  @Test func `A code of the old one, then one of the new one, and both log in`() throws {
    let old = try bench.enroll()
    let proof = try old.code(at: bench.now)
    let terminal = FakeTerminal(
      [.types(proof), shownCode(at: bench.now, steps: 1)],
      screen: Screen(columns: 80, lines: 30, isUTF8: true))
    let done = bench.run("add", "--user", "alice", "--name", "tablet", on: terminal)
    #expect(done.status == 0, "\(done.aside)")
    #expect(
      terminal.prompts == [
        "Code of an existing authenticator, or backup code: (hidden)", "Code shown by the app: ",
      ])
    #expect(done.answer.contains("Another authenticator for alice on web1.example.org\n"))
    #expect(done.answer.contains("\u{2580}"), "no QR code")
    #expect(
      done.answer.hasSuffix(
        "Added \"tablet\" (TOTP, 6 digits, every 30 s; its clock is one step ahead).\n"))
    #expect(try bench.names() == ["phone", "tablet"])
    let uri = try terminal.uri()
    #expect(bench.verify(proof).aside.contains("already been used"))
    let next = try uriCode(uri, at: bench.now, steps: 1)
    #expect(bench.verify(next).aside.contains("already been used"))
    #expect(
      bench.verify(try uriCode(uri, at: bench.now, steps: 2)).answer.contains("of \"tablet\""))
    #expect(
      bench.verify(try old.code(at: bench.now, steps: 1)).answer.contains("of \"phone\""))
  }

  @Test func `A backup code will do, and is used up`() throws {
    let old = try bench.enroll()
    let terminal = FakeTerminal([.types(old.backupCodes[0]), shownCode(at: bench.now)])
    #expect(bench.run("add", "--user", "alice", on: terminal).status == 0)
    #expect(bench.verify(old.backupCodes[0]).status == 1)
    #expect(bench.verify(old.backupCodes[1]).status == 0)
  }

  // decisive
  @Test func `A wrong code adds nothing, shows no secret, and is charged`() throws {
    _ = try bench.enroll(secret: "JBSWY3DPEHPK3PXP")
    let done = bench.run("add", "--user", "alice", on: FakeTerminal([.types("000000")]))
    #expect((done.status, done.answer, done.aside) == (1, "", "sallyport: wrong code\n"))
    #expect(try bench.names() == ["phone"])
    let report = try bench.run("status", "--user", "alice", "--json").json(Looking.Report.self)
    #expect(report.wrongCodes.known.left == 19)
  }

  @Test func `Without a code of the new one nothing is added`() throws {
    let old = try bench.enroll()
    let proof = try old.code(at: bench.now)
    let left = bench.run("add", "--user", "alice", on: FakeTerminal([.types(proof), .ends]))
    #expect((left.status, left.aside) == (1, "sallyport: nothing was changed\n"))
    let wrong = wrongCode(at: bench.now)
    let done = bench.run(
      "add", "--user", "alice", "--force",
      on: FakeTerminal([wrong, wrong, .types(old.backupCodes[0]), wrong, wrong]))
    #expect(done.status == 1)
    #expect(done.answer.contains("A backup code does not show that the app works."))
    #expect(
      done.aside.contains("no correct code: nothing was changed\nhint: sallyport add"))
    #expect(try bench.names() == ["phone"])
  }

  @Test func `A code of the old one does not confirm the new one`() throws {
    let old = try bench.enroll()
    let code = try old.code(at: bench.now, steps: 2)
    let terminal = FakeTerminal([.types(code), shownCode(at: bench.now)])
    #expect(bench.run("add", "--user", "alice", "--force", on: terminal).status == 0)
    #expect(terminal.prompts.count == 2)
    #expect(bench.verify(code).status == 0)
  }

  // decisive
  @Test func `Names are given in order, are not given twice, and eight are enough`() throws {
    _ = try bench.enroll()
    for _ in 2...8 {
      #expect(bench.run("add", "--user", "alice", "--no-confirm", "--force").status == 0)
    }
    #expect(try bench.names() == ["phone"] + (2...8).map { "phone-\($0)" })
    let before = try bench.content()
    for name in [[], ["--name", "ninth"]] {
      let done = bench.run(arguments: ["add", "--user", "alice", "--force"] + name)
      #expect(done.status == 73)
      #expect(done.aside.hasPrefix("sallyport: alice has 8 authenticators, the maximum\n"))
    }
    let taken = bench.run("add", "--user", "alice", "--name", "phone-3")
    #expect(taken.aside.hasPrefix("sallyport: alice already has an authenticator \"phone-3\"; "))
    #expect(taken.status == 73)
    #expect(try bench.content() == before)
    let list = bench.run("list").answer.split(separator: "\n").map(String.init)
    #expect(list.count == 5)
    #expect(list[1] == "alice   phone, phone-2, phone-3,   10             never")
    #expect(list[2] == "        phone-4, phone-5, phone-6,")
    #expect(list[3] == "        phone-7, phone-8")
  }

  @Test func `Addresses that logged in before stay known`() throws {
    _ = try bench.enroll()
    try bench.loginFromAfar()
    #expect(try bench.origins() == 1)
    _ = try bench.add("tablet")
    #expect(try bench.origins() == 1)
  }

  // decisive
  @Test func `A secret comes from standard input, after the code`() throws {
    let old = try bench.enroll()
    let script: [Act] = [.types(old.backupCodes[0]), .types("JBSWY3DPEHPK3PXP")]
    let done = bench.run(
      "add", "--user", "alice", "--name", "fob", "--type", "hotp", "--secret-from", "-",
      "--no-confirm", "--json", on: FakeTerminal(script, isInteractive: false))
    let added = try done.json(Added.self)
    #expect((added.secret, added.authenticator.counter) == ("JBSWY3DPEHPK3PXP", 0))
    #expect((added.user, added.adjacentIntervals) == ("alice", 5))
    #expect(bench.verify(try uriCode(added.uri, at: bench.now)).answer.contains("\"fob\""))
  }

  @Test func `A user who is not enrolled is told so`() throws {
    bench.run("prepare")
    #expect(bench.run("add", "--user", "root").status == 66)
    #expect(bench.run("add", "--user", "no-such-user-here").status == 67)
  }

  @Test func `It is said when intervals or counters get fewer`() throws {
    let phone = try #require(Secret(Array("01234567890123456789".utf8)))
    let all = (1...8).map { id in
      Authenticator(
        id: id, name: Label("phone"), parameters: .standard, secret: phone,
        initialLastAccepted: nil, created: bench.now)
    }
    var policy = Policy()
    #expect(narrowing(Throttle(for: all, under: policy), under: policy) == [])
    policy.guessBudget = GuessProbability.budgets.lowerBound
    let lines = narrowing(Throttle(for: all, under: policy), under: policy)
    #expect(lines.contains("0 time steps on either side are accepted now, not 5."))
    #expect(lines.last == "With more, codes would be too easy to guess.")
  }
}

@Suite struct `Removing and renaming` {
  private let bench = Bench()

  @Test func `A fresh code of any of them removes one, whose codes end`() throws {
    let phone = try bench.enroll()
    let tablet = try bench.add("tablet")
    try bench.loginFromAfar()
    let code = try uriCode(tablet, at: bench.now)
    let no = bench.run(
      "remove", "--user", "alice", "--name", "tablet", on: FakeTerminal([.types("12")]))
    #expect(no.status == 1)
    #expect(try bench.names() == ["phone", "tablet"])
    let proof = try phone.code(at: bench.now)
    let done = bench.run(
      "remove", "--user", "alice", "--name", "tablet", on: FakeTerminal([.types(proof)]))
    #expect((done.status, done.answer) == (0, "Removed \"tablet\". alice has phone.\n"))
    #expect(done.terminal.prompts == ["Verification code: (hidden)"])
    #expect(try bench.origins() == 0)
    // By chance it may be a code of the phone at some other hour, which is said then.
    #expect(bench.verify(code).aside.hasPrefix("sallyport: wrong code"))
    #expect(bench.verify(proof).aside.contains("already been used"))
    #expect(bench.verify(try phone.code(at: bench.now, steps: 1)).status == 0)
  }

  @Test func `The last one stays`() throws {
    _ = try bench.enroll()
    let done = bench.run("remove", "--user", "alice", "--name", "phone", "--force")
    #expect(done.status == 1)
    #expect(
      done.aside.hasPrefix("sallyport: cannot remove the last authenticator of alice\nhint: "))
    #expect(done.aside.contains("hint: sallyport unenroll alice"))
    #expect(try bench.names() == ["phone"])
  }

  @Test func `Who is left counts on, and backup codes stay`() throws {
    let phone = try bench.enroll()
    _ = try bench.add("fob", "hotp")
    #expect(bench.verify(try phone.code(at: bench.now)).status == 0)
    #expect(bench.verify(phone.backupCodes[0]).status == 0)
    let done = bench.run("remove", "--user", "alice", "--name", "fob", "--force", "--json")
    struct Removed: Decodable, Equatable {
      let user, removed: String
      let authenticators: [String]
    }
    #expect(
      try done.json(Removed.self)
        == Removed(user: "alice", removed: "fob", authenticators: ["phone"]))
    #expect(bench.verify(try phone.code(at: bench.now)).aside.contains("already been used"))
    #expect(bench.verify(phone.backupCodes[0]).aside.contains("already been used"))
  }

  @Test func `Another name changes nothing else`() throws {
    let phone = try bench.enroll()
    _ = try bench.add("tablet")
    try bench.loginFromAfar()
    let code = try phone.code(at: bench.now)
    #expect(bench.verify(code).status == 0)
    let done = bench.run("rename", "--user", "alice", "--name", "phone", "--to", "old phone")
    #expect((done.status, done.answer) == (0, "\"phone\" of alice is \"old phone\" now.\n"))
    #expect(try bench.names() == ["old phone", "tablet"])
    #expect(try bench.origins() == 1)
    #expect(bench.verify(code).aside.contains("already been used"))
    #expect(
      bench.verify(try phone.code(at: bench.now, steps: 1)).answer.contains("\"old phone\""))
    let same = bench.run("rename", "--user", "alice", "--name", "tablet", "--to", "tablet")
    #expect(same.status == 0)
  }

  @Test func `A name must be there, and the new one free`() throws {
    _ = try bench.enroll()
    _ = try bench.add("tablet")
    let before = try bench.content()
    let cases: [([String], Int32)] = [
      (["rename", "--name", "watch", "--to", "x"], 66),
      (["rename", "--name", "phone", "--to", "tablet"], 73),
      (["remove", "--name", "watch", "--force"], 66), (["resync", "--name", "watch"], 66),
      (["remove", "--name", "watch"], 66), (["rename", "--name", "phone", "--to", ""], 64),
      (["remove"], 64), (["rename", "--name", "phone"], 64),
    ]
    for (arguments, status) in cases {
      #expect(bench.run(arguments: arguments + ["--user", "alice"]).status == status)
    }
    #expect(try bench.content() == before)
  }
}
