import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportSystem
import Testing

@testable import SallyportCLI

@Suite struct `Hardware tokens` {
  private let bench = Bench()
  private let key = "3132333435363738393031323334353637383930"
  private let uri = "otpauth://totp/x?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"

  private var store: Store { Store(root: bench.directory, owner: .effectiveUser) }

  private func imported(_ text: String, _ options: String...) -> Bench.Outcome {
    bench.run(
      arguments: ["import", "csv", "-"] + options,
      on: FakeTerminal([.types(text)], isInteractive: false))
  }

  private func code(_ steps: Int) throws -> SallyportCLITests.Act {
    .types(try uriCode(uri, at: bench.now, steps: steps))
  }

  private func token(_ serial: String = "77") throws -> Token {
    let serial = try #require(TokenSerial(serial.utf8))
    return try #require(try store.token(serial))
  }

  private func assign(_ user: String, _ script: [SallyportCLITests.Act], _ options: String...)
    -> Bench.Outcome
  {
    bench.run(
      arguments: ["token", "assign", "77", user, "--allow-missing"] + options,
      on: FakeTerminal(script, isInteractive: false))
  }

  private struct Listed: Decodable {
    struct One: Decodable {
      let serial: String
      let assigned: String?
    }
    let tokens: [One]
  }

  @Test func `are imported as nobody's, once, and listed without a secret`() throws {
    let text =
      "serial,secret,upn\n77,\(key),\n78,\(key.replacing("31", with: "41")),alice@example.org\n"
    #expect(imported(text, "--dry-run").answer.hasPrefix("2 tokens would be imported. Nobody"))
    #expect(try bench.content().keys.filter { $0.hasPrefix("tokens") }.isEmpty)
    let done = imported(text)
    #expect(done.status == 0, "\(done.aside)")
    #expect(done.answer.contains("The file says whose 1 of them are; that is not stored.\nNext: "))
    #expect(done.answer.hasSuffix(" --store \(bench.directory) 78 alice@example.org\n"))
    let kind =
      "\nKind: TOTP, 6 digits, 30 s.\nNot in the file but assumed: time or counter, time step"
    #expect(done.answer.contains("\(kind), digits, hash function. "), "\(done.answer)")
    #expect(
      done.answer.contains(
        "\nColumns: \"serial\" is serial, \"secret\" is secret, \"upn\" is user.\n"))
    #expect(imported(text).answer == "0 tokens imported, 2 there already.\n")
    let other = imported("77,\(key.replacing("31", with: "42"))\n79,44\(key)\n")
    #expect(other.status == 65)
    #expect(other.aside.contains("standard input: line 1: 77 is there, as another one\n"))
    #expect(
      other.aside.contains("1 line wrong: nothing was imported\nhint: sallyport token forget"))
    #expect(other.aside.contains("token forget --store \(bench.directory) 77  #"), "\(other.aside)")
    #expect(imported("77,\(key)\n", "--period", "60").status == 65)
    let doubled = imported("80,\(key)\n81,43\(key)\n82,43\(key)\n")
    #expect(doubled.aside.contains("line 1: the secret is that of 77\n"), "\(doubled.aside)")
    #expect(doubled.aside.contains("line 3: the secret is that of 81\n"))
    let list = bench.run("token", "list")
    #expect(list.answer.contains("77       TOTP, 6 digits, 30 s   nobody\n"))
    #expect(list.answer.hasSuffix("2 tokens, 2 of them nobody's\n"))
    let files = try bench.content().filter { $0.key.hasPrefix("tokens/") }
    #expect(files.count == 2)
    for told in [done, list, other, bench.run("token", "list", "--json")] {
      #expect(!told.answer.contains(key) && !told.answer.contains("GEZDGNBV"))
      #expect(!told.aside.contains(key))
    }
  }

  @Test(arguments: [
    (
      "77,xyz\n78,\n", [],
      ["line 1, column 2: the secret is not base32", "line 2, column 2: no secret"]
    ),
    (
      "77,ABCDEF2345672345ABCDEF2345672345\n", [],
      ["can be hexadecimal and base32: nothing was imported\nhint: sallyport import csv - --store"]
    ),
    (
      "77 88\n", [],
      ["no comma, semicolon or tab", "hint: tr -s ' ' , < FILE | sallyport import csv - --store"]
    ),
    ("77\n", [], ["no comma, semicolon or tab in its first line: nothing was imported\n"]),
    ("<KeyContainer/>\n", [], ["XML, and no list", "hint: sallyport import pskc"]),
    ("\u{feff}7\0,8\0\n\0", [], ["save it as \"CSV UTF-8\""]),
    ("77,88\n", ["--columns", "secret"], ["--columns takes names of columns"]),
  ]) func `of a list that is wrong are all left out`(
    text: String, options: [String], told: [String]
  ) throws {
    let script: [SallyportCLITests.Act] = options.isEmpty ? [.types(text)] : []
    let done = bench.run(
      arguments: ["import", "csv", "-"] + options, on: FakeTerminal(script, isInteractive: false))
    #expect(done.status == (options.isEmpty ? 65 : 64))
    for line in told { #expect(done.aside.contains(line), "\(done.aside)") }
    #expect(try bench.content().isEmpty)
  }

  @Test func `are imported and listed beside one that cannot be read, which is forgotten`() throws {
    #expect(imported("77,\(key)\n78,44\(key)\n").status == 0)
    let path = bench.directory + "/tokens/77"
    try Data("version = 1\n".utf8).write(to: URL(fileURLWithPath: path))
    let same = imported("77,\(key)\n79,45\(key)\n")
    #expect(same.status == 65 && same.aside.contains("line 1: 77 is there, and cannot be read\n"))
    #expect(same.aside.contains("77 --unchecked"), "\(same.aside)")
    let other = imported("79,45\(key)\n")
    #expect(other.status == 0 && other.aside.contains("tokens/77"), "\(other.aside)")
    #expect(bench.run("token", "list").answer.contains("2 of them nobody's, 1 cannot be read"))
    // Nothing that is enrolled mends it.
    let given = assign("bob", [])
    #expect(given.status == 65 && given.aside.contains("token forget"), "\(given.aside)")
    #expect(!given.aside.contains("enroll"))
    let free = bench.run("token", "forget", "--unassigned", "--yes")
    #expect(free.status == 0 && free.aside.contains("tokens/77") && free.answer.contains("2 token"))
    // It may have lost the line that says who has it.
    let unknown = bench.run("token", "forget", "77", "--yes")
    #expect(unknown.status == 65 && unknown.aside.contains("whether somebody has 77 is not known"))
    #expect(unknown.aside.contains("77 --unchecked  # if nobody"), "\(unknown.aside)")
    #expect(bench.run("token", "forget", "--unassigned", "--unchecked", "--yes").status == 64)
    let gone = bench.run("token", "forget", "77", "--unchecked", "--yes")
    #expect(gone.answer == "Forgot 1 token.\n", "\(gone.aside)")
    #expect(imported("77,\(key)\n").status == 0)
  }

  @Test func `of a container are decrypted by a key, whose file others should not read`() throws {
    let file = bench.directory + ".key"
    try Data("12345678901234567890123456789012".utf8).write(to: URL(fileURLWithPath: file))
    defer { try? FileManager.default.removeItem(atPath: file) }
    for (mode, isTold) in [(0o644, true), (0o600, false)] as [(mode_t, Bool)] {
      #expect(unsafe chmod(file, mode) == 0)
      let done = bench.run(
        "import", "pskc", "-", "--key-file", file,
        on: FakeTerminal([.types("<KeyContainer/>")], isInteractive: false))
      #expect(done.aside.contains("others can read \(file) (mode 0644)") == isTold, "\(done.aside)")
    }
  }

  @Test func `of a list that is too long are not read`() throws {
    let long = String(repeating: "#23456789012345\n", count: (1 << 20) + 1)
    for kind in ["csv", "pskc"] {
      let done = bench.run(
        "import", kind, "-", on: FakeTerminal([.types(long)], isInteractive: false))
      #expect(done.status == 65 && done.aside.contains("longer than 16384 KiB"), "\(done.aside)")
    }
  }

  // shows: token-hands
  @Test func `go from hand to hand, and no code is good again`() throws {
    #expect(imported("77,\(key)\n").status == 0)
    let first = assign("alice", [try code(0)])
    #expect(first.status == 0, "\(first.aside)")
    #expect(
      first.answer.hasPrefix("77 is assigned to alice as \"77\" (TOTP, 6 digits, every 30 s)."))
    #expect(first.answer.contains("Backup codes: each works once"))
    #expect(try token().holder?.user.text == "alice")
    let other = imported("77,\(key)\n", "--digits", "8")
    #expect(
      other.aside.contains("hint: sallyport token unassign --store \(bench.directory) 77\n"),
      "\(other.aside)")
    for (user, told) in [
      ("bob", "77 is assigned to alice"), ("alice", "alice has the token 77 already"),
    ] {
      let again = assign(user, [])
      #expect(again.status == 73 && again.aside.contains(told), "\(again.aside)")
    }
    let verified = bench.run(
      "verify", "alice", "--allow-missing", on: FakeTerminal([try code(1)], isInteractive: false))
    #expect(verified.status == 0, "\(verified.aside)")
    // The last one of a user is not taken away.
    let last = bench.run("token", "unassign", "77", "--force", "--allow-missing")
    #expect(
      last.status == 1 && last.aside.contains("cannot take the last authenticator of alice"))
    #expect(last.aside.contains("sallyport unenroll"), "\(last.aside)")
    bench.run("add", "alice", "--allow-missing", "--force", "--no-confirm", "--json")
    let back = bench.run(
      "token", "unassign", "77", "--allow-missing",
      on: FakeTerminal([try code(2)], isInteractive: false))
    #expect(back.status == 0, "\(back.aside)")
    #expect(
      back.answer == """
        77 is nobody's now, and is removed from alice.
        Its next user waits: codes count in 3 min.

        """)
    let names = bench.run("status", "alice", "--allow-missing").answer
    #expect(names.contains("phone") && !names.contains("77"))
    #expect(try token().holder == nil)
    // What alice used, or saw of a clock that is ahead, is not good for bob, also in a row.
    let list = bench.run("token", "list").answer
    #expect(list.contains("nobody; codes count in 3 min"), "\(list)")
    let used = assign("bob", [try code(4), try code(5), .ends])
    #expect(used.status == 1 && used.answer.contains("or used before"), "\(used.answer)")
    #expect(used.answer.contains("Its codes count in 3 min: those up to then may have been used."))
    #expect(try token().holder == nil)
    let next = assign("bob", [try code(6), try code(7)], "--name", "key fob")
    #expect(next.status == 0, "\(next.aside)")
    for (steps, status) in [(2, Int32(1)), (7, 1), (8, 0)] {
      let done = bench.run(
        "verify", "bob", "--allow-missing",
        on: FakeTerminal([try code(steps)], isInteractive: false))
      #expect(done.status == status, "\(steps): \(done.aside)")
    }
  }

  @Test func `are added to who is enrolled as another authenticator is`() throws {
    _ = try bench.enroll("alice")
    #expect(imported("77,\(key)\n").status == 0)
    let refused = assign("alice", [.types("000000")])
    #expect(refused.status == 1 && refused.terminal.prompts.count == 1, "\(refused.aside)")
    #expect(try token().holder == nil)
    let done = assign("alice", [try code(0)], "--force")
    #expect(done.status == 0 && !done.answer.contains("Backup codes"), "\(done.aside)")
    #expect(bench.run("status", "alice", "--allow-missing").answer.contains("77"))
  }

  // shows: token-hands
  @Test func `that are assigned and not had are first taken back`() throws {
    #expect(imported("77,\(key)\n").status == 0)
    // As a crash between the two writes leaves it.
    var half = try token()
    let alice = try #require(UserName(Array("alice".utf8)))
    half.holder = Token.Holder(user: alice, uid: nil, authority: .files)
    try store.replace(half)
    #expect(assign("bob", []).status == 73)
    // She may have had it, and used codes.
    #expect(assign("alice", []).status == 73)
    // Or there is an account that cannot be looked up now.
    let gone = bench.run("token", "unassign", "77")
    #expect(gone.status == 67 && gone.aside.contains("77 --allow-missing"), "\(gone.aside)")
    half.holder?.authority = nil
    try store.replace(half)
    let unknown = bench.run("token", "unassign", "77", "--allow-missing")
    #expect(unknown.status == 1 && unknown.aside.contains("--unchecked"), "\(unknown.aside)")
    half.holder?.authority = .files
    try store.replace(half)
    #expect(bench.run("token", "unassign", "77", "--allow-missing").status == 0)
    bench.now = UnixTime(bench.now.seconds + 400)
    #expect(assign("alice", [try code(0)]).status == 0)
    // As after `unenroll`, which knows of no token.
    let ended = bench.run("unenroll", "alice", "--allow-missing", "--force")
    #expect(ended.answer.contains("token unassign"), "\(ended.answer)")
    #expect(assign("alice", [], "--no-confirm").status == 73)
    let back = bench.run("token", "unassign", "77", "--allow-missing")
    #expect(back.answer.contains("alice did not have it: codes up to now count as used"))
    #expect(assign("bob", [try code(5), .ends]).status == 1)
    bench.now = UnixTime(bench.now.seconds + 400)
    #expect(assign("bob", [try code(0)]).status == 0)
    #expect(bench.run("token", "unassign", "78").status == 66)
    #expect(bench.run("token", "assign", "77").aside.contains(" 77 NAME\n"))
  }

  @Test func `that restore can bring back, or has brought back, stay their user's`() throws {
    #expect(imported("77,\(key)\n").status == 0)
    #expect(assign("alice", [], "--no-confirm").status == 0)
    // With another id, as `restore` leaves it.
    let account = Account(name: try #require(UserName(Array("alice".utf8))), uid: nil)
    let record = try #require(try store.load(account)).enrollment
    let old = record.authenticators[0]
    let other = Authenticator(
      id: old.id ^ 1, name: old.name, parameters: old.parameters, secret: old.secret,
      initialLastAccepted: nil, created: old.created, clockOffset: 0)
    let phone = Authenticator(
      id: 9, name: Label("phone"), parameters: .standard, secret: try #require(Secret(count: 20)),
      initialLastAccepted: nil, created: old.created)
    let restored = Enrollment(
      id: record.id, user: record.user, uid: nil, created: record.created,
      authenticators: [other, phone], backupCodes: nil)
    try store.replace(restored, LoginState(initialFor: restored))
    #expect(assign("alice", []).aside.contains("alice has the token 77 already"))
    let back = bench.run("token", "unassign", "77", "--force", "--allow-missing")
    #expect(back.answer.hasPrefix("77 is nobody's now, and is removed from alice.\n"))
    #expect(!bench.run("status", "alice", "--allow-missing").answer.contains("77"))
    // What cannot be read is no reason to free it.
    #expect(assign("bob", [], "--no-confirm").status == 0)
    let path = "\(bench.directory)/users/bob/enrollment"
    try Data("broken\n".utf8).write(to: URL(fileURLWithPath: path))
    let broken = bench.run("token", "unassign", "77", "--force", "--allow-missing")
    #expect(broken.status != 0 && broken.answer.isEmpty, "\(broken.answer)")
    #expect(try token().holder?.user.text == "bob")
  }

  // shows: token-hands
  @Test func `are given to one of two who get them at once`() throws {
    #expect(imported("77,\(key)\n").status == 0)
    // While the command waits for the code, another one gives it to carol.
    nonisolated(unsafe) let other = bench
    let (uri, now) = (uri, bench.now)
    let meanwhile = SallyportCLITests.Act.answers { _ in
      let done = unsafe other.run(
        "token", "assign", "77", "carol", "--allow-missing", "--no-confirm")
      #expect(done.status == 0, "\(done.aside)")
      return try uriCode(uri, at: now)
    }
    let done = assign("alice", [meanwhile])
    #expect(done.status == 73, "\(done.aside)")
    #expect(done.aside.contains("the token 77 was changed meanwhile"))
    #expect(try token().holder?.user.text == "carol")
    #expect(bench.run("status", "alice", "--allow-missing").status == 66)
  }

  @Test func `that count need a code for the next one who gets them`() throws {
    #expect(imported("77,\(key)\n", "--type", "hotp").status == 0)
    // It may have been forgotten, and be somebody's before.
    #expect(assign("alice", [], "--no-confirm").status == 1)
    let counted = "otpauth://hotp/x?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&counter=0"
    let first = SallyportCLITests.Act.types(try uriCode(counted, at: bench.now, steps: 0))
    #expect(assign("alice", [first]).status == 0)
    bench.run("unenroll", "alice", "--allow-missing", "--force")
    #expect(bench.run("token", "unassign", "77", "--allow-missing").status == 0)
    let refused = assign("bob", [], "--no-confirm")
    #expect(refused.status == 1 && refused.aside.contains("it needs one that it shows"))
    let codes = try (3...4).map {
      SallyportCLITests.Act.types(try uriCode(counted, at: bench.now, steps: $0))
    }
    let done = assign("bob", codes)
    #expect(done.status == 0, "\(done.aside)")
  }

  @Test func `that were forgotten have no code that is good again`() throws {
    #expect(imported("77,\(key)\n").status == 0)
    #expect(assign("alice", [try code(2)]).status == 0)
    bench.run("unenroll", "alice", "--allow-missing", "--force")
    bench.run("token", "unassign", "77", "--allow-missing")
    #expect(bench.run("token", "forget", "77", "--yes").status == 0)
    #expect(imported("77,\(key)\n").status == 0)
    let done = assign("bob", [], "--no-confirm")
    #expect(done.answer.contains("Its codes count in 2 h"), "\(done.answer)")
    let verified = bench.run(
      "verify", "bob", "--allow-missing", on: FakeTerminal([try code(2)], isInteractive: false))
    #expect(verified.status == 1)
  }

  @Test func `that were changed meanwhile are not given`() throws {
    #expect(imported("77,\(key)\n").status == 0)
    nonisolated(unsafe) let other = bench
    let store = store
    let (uri, now) = (uri, bench.now)
    // As `prepare --new-machine` does.
    let done = assign(
      "alice",
      [
        .answers { _ in
          _ = try store.distrustTokens(at: now)
          return try uriCode(uri, at: now)
        }
      ])
    #expect(done.status == 73 && done.aside.contains("77 was changed meanwhile"), "\(done.aside)")
    // The whole inventory is gone.
    let emptied = assign(
      "alice",
      [
        .answers { _ in
          try FileManager.default.removeItem(atPath: unsafe other.directory + "/tokens")
          return try uriCode(uri, at: now, steps: 11)
        }, .answers { _ in try uriCode(uri, at: now, steps: 12) },
      ])
    #expect(emptied.status == 73, "\(emptied.aside)")
    #expect(bench.run("status", "alice", "--allow-missing").status == 66)
  }

  @Test func `of a wrong list are forgotten, but none that somebody has`() throws {
    #expect(imported("77,\(key)\n78,41\(key)\n79,42\(key)\n").status == 0)
    #expect(assign("alice", [], "--no-confirm").status == 0)
    let held = bench.run("token", "forget", "77", "78", "--unchecked", "--yes")
    #expect(held.status == 73 && held.aside.contains("77 is assigned to alice"), "\(held.aside)")
    let asked = bench.run("token", "forget", "78", on: FakeTerminal([.types("n")]))
    #expect(asked.status == 1)
    #expect(bench.run("token", "forget", "78", "--yes").answer == "Forgot 1 token.\n")
    #expect(bench.run("token", "forget", "--unassigned", "--yes").answer == "Forgot 1 token.\n")
    #expect(
      try bench.run("token", "list", "--json").json(Listed.self).tokens.map(\.serial) == ["77"])
    for words in [["78"], ["a/b"]] {
      #expect(bench.run(arguments: ["token", "forget", "--yes"] + words).status == 66)
    }
    #expect(bench.run("token", "forget").status == 64)
  }
}
