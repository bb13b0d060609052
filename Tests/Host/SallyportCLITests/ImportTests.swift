import Foundation
import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@testable import SallyportCLI
@testable import SallyportDoctor

/// `sallyport import --json`
struct ImportedReport: Decodable {
  struct User: Decodable {
    struct Authenticator: Decodable {
      let name, type: String
      let digits: Int
      let device: String?
      let lastAccepted: UInt64?
      let entry: Int?
    }
    struct Note: Decodable { let code, text: String }
    let user: String?
    let result: String
    let line: Int?
    let file: String?
    let authenticators: [Authenticator]
    let scratchCodes: Int
    let backupCodes: [String]
    let remarks: [Note]
    let reasons: [Note]
  }
  let source: String
  let dryRun: Bool
  let imported, alreadyImported, notImported: Int
  let users: [User]
}

@Suite struct `The verb import` {
  let bench = Bench()
  static let key = "3132333435363738393031323334353637383930"

  /// A file beside the store.
  private func file(_ name: String, _ content: String, mode: Int = 0o600) throws -> String {
    let path = "\(bench.directory)-\(name)"
    try content.write(toFile: path, atomically: false, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    return path
  }

  @Test func `makes enrollments of a users file, several lines for one user`() throws {
    let path = try file(
      "oath",
      "HOTP bob - \(Self.key) 4\nHOTP/T60/8 alice - \(Self.key)\nHOTP/E/7 bob - 3\(Self.key)3")
    defer { try? FileManager.default.removeItem(atPath: path) }
    let outcome = bench.run("import", "pam-oath", path, "--allow-missing", "--json")
    let report = try outcome.json(ImportedReport.self)
    #expect(outcome.status == 0 && report.source == "pam-oath" && !report.dryRun)
    #expect((report.imported, report.alreadyImported, report.notImported) == (2, 0, 0))
    #expect(report.users.map(\.user) == ["bob", "alice"])
    #expect(report.users.map(\.line) == [1, 2])
    #expect(report.users[0].authenticators.map(\.name) == ["counter", "counter-2"])
    #expect(report.users[0].authenticators.map(\.lastAccepted) == [3, nil])
    #expect(report.users[1].authenticators.map(\.digits) == [8])
    #expect(report.users.allSatisfy { $0.backupCodes.isEmpty && $0.reasons.isEmpty })
    let again = bench.run("import", "pam-oath", path, "--allow-missing")
    #expect(again.status == 0)
    #expect(again.answer.hasSuffix("0 imported, 2 already imported.\n"))
  }

  @Test func `imports nobody in part`() throws {
    let path = try file(
      "oath", "HOTP bob - \(Self.key)\nHOTP alice - \(Self.key)\nHOTP bob - 123\nHOTP bob - 3132")
    defer { try? FileManager.default.removeItem(atPath: path) }
    let outcome = bench.run("import", "pam-oath", path, "--allow-missing")
    #expect(outcome.status == 65)
    #expect(
      outcome.answer == """
        bob     not imported: line 3: the key is not an even number of hexadecimal digits
                not imported: the secret has only 16 bits (--force imports it)
                sallyport enroll bob --store \(bench.directory)  # makes a better one
        alice   counter, HOTP 6 digits, counter carried over
        1 imported, 1 not. No second scan needed: the apps keep working.

        """)
    #expect(outcome.aside == "sallyport: 1 of 2 users not imported\n")
    let listed = try FileManager.default.contentsOfDirectory(atPath: "\(bench.directory)/users")
    #expect(listed == ["alice"])
  }

  // decisive
  @Test func `tells the same authenticator twice once, and more than eight apart`() throws {
    var lines = ["HOTP bob - \(Self.key) 4", "HOTP bob - \(Self.key) 7"]
    for number in 10..<19 { lines.append("HOTP alice - \(Self.key.dropLast(2))\(number)") }
    let path = try file("oath", lines.joined(separator: "\n"))
    defer { try? FileManager.default.removeItem(atPath: path) }
    let outcome = bench.run("import", "pam-oath", path, "--allow-missing", "--json")
    let users = try outcome.json(ImportedReport.self).users
    #expect(users[0].authenticators.map(\.lastAccepted) == [6])
    #expect(users[0].remarks.contains { $0.code == "doubled" })
    #expect(users[1].reasons.map(\.code) == ["too-many-authenticators"])
  }

  // decisive
  @Test func `leaves who is enrolled with another secret`() throws {
    _ = try bench.enroll("bob")
    let path = try file("oath", "HOTP bob - \(Self.key)")
    defer { try? FileManager.default.removeItem(atPath: path) }
    let before = try bench.content()
    let outcome = bench.run("import", "pam-oath", path, "--allow-missing", "--json")
    #expect(outcome.status == 65)
    #expect(try outcome.json(ImportedReport.self).users[0].reasons.map(\.code) == ["enrolled"])
    #expect(try bench.content() == before)
  }

  @Test func `makes backup codes only where they are asked for`() throws {
    let path = try file("uri", "otpauth://totp/x?secret=GEZDGNBVGY3TQOJQ")
    defer { try? FileManager.default.removeItem(atPath: path) }
    let outcome = bench.run(
      "import", "uri", path, "--user", "bob", "--allow-missing", "--backup-codes", "3", "--json")
    let user = try #require(try outcome.json(ImportedReport.self).users.first)
    #expect(user.backupCodes.count == 3 && user.remarks.map(\.code) == ["secret-short"])
  }

  @Test func `of an app's export takes the entries that are named, or all, and none unasked`()
    throws
  {
    let path = pathInSources("Tests/Vectors/exports/aegis.json")
    func imported(_ more: String...) throws -> ImportedReport.User {
      let fixed = ["import", "uri", path, "--user", "bob", "--allow-missing", "--json"]
      let report = try bench.run(arguments: fixed + more).json(ImportedReport.self)
      return try #require(report.users.first)
    }
    let refused = try imported()
    #expect(refused.reasons.map(\.code) == ["several-entries"])
    let text = bench.run("import", "uri", path, "--user", "bob", "--allow-missing").answer
    let again = "sallyport import uri \(path) --user bob --allow-missing --store \(bench.directory)"
    for entry in ["2  # bank:al", "3  # key"] {
      #expect(text.contains("\(again) --entry \(entry)"), "\(text)")
    }
    let shown = try imported("--dry-run", "--all")
    #expect(shown.authenticators.map(\.name) == ["web1:alice", "bank:al", "key"])
    #expect(shown.authenticators.map(\.entry) == [1, 2, 3])
    #expect(shown.remarks.filter { $0.code == "entry-skipped" }.count == 3)
    #expect(try imported("--dry-run", "--entry", "4").reasons.map(\.code) == ["nothing-of-use"])
    let some = try imported("--entry", "2", "--entry", "3")
    #expect(some.result == "imported" && some.authenticators.map(\.entry) == [2, 3])
    #expect(try imported("--entry", "3").result == "already-imported")
    let none = bench.run("import", "uri", path, "--user", "bob", "--entry", "7")
    #expect(none.status == 65 && none.aside.contains("no entry 7"))
    #expect(
      none.aside.contains(
        "hint: sallyport import uri --user bob --store \(bench.directory) \(path)"))
  }

  @Test func `names an export that is sealed, and one that lacks its user or a picture`() throws {
    let told = { (name: String, more: [String]) in
      let path = pathInSources("Tests/Vectors/exports/\(name)")
      let outcome = bench.run(arguments: ["import", "uri", path, "--allow-missing"] + more)
      return (outcome.status, outcome.answer + outcome.aside)
    }
    let bob = ["--user", "bob"]
    let sealed = told("aegis-sealed.json", bob)
    #expect(sealed.0 == 65 && sealed.1.contains("an encrypted export of Aegis"))
    #expect(sealed.1.contains("without \"Encrypt the vault\""))
    #expect(told("andotp.json", []).0 == 64 && told("google.txt", []).0 == 64)
    let part = told("google-part.txt", bob)
    #expect(part.0 == 65 && part.1.contains("1 is missing") && !part.1.contains("choose"))
    #expect(told("google.txt", bob + ["--entry", "3"]).0 == 0)
  }

  @Test func `refuses what has no URI, names zbarimg for a picture, and takes what it writes`()
    throws
  {
    let none = { (content: [UInt8], told: String) in
      let path = "\(self.bench.directory)-none"
      defer { try? FileManager.default.removeItem(atPath: path) }
      try Data(content).write(to: URL(fileURLWithPath: path))
      for user in [["--user", "bob"], []] {
        let done = self.bench.run(arguments: ["import", "uri", path, "--allow-missing"] + user)
        #expect(done.status == 65 && done.answer.isEmpty, "\(done.answer)")
        #expect(done.aside.contains(told.replacing("%", with: path)), "\(done.aside)")
      }
    }
    try none([], ": nothing in it\n")
    try none(Array("# nobody\n".utf8), ": nothing in it\n")
    let rows = (1...51).map { "26001099900\($0)\t\(Self.key)\n" }.joined()
    try none(
      Array(rows.utf8),
      ": no otpauth URI in it\nhint: sallyport import csv --store \(bench.directory) %")
    for picture in [
      [0x89, 0x50, 0x4e, 0x47, 0x0d], [0xff, 0xd8, 0xff, 0xe0], Array("%PDF-1".utf8),
    ] {
      try none(picture, "hint: zbarimg -q --raw % | sallyport import uri - --allow-missing")
    }
    let many = FakeTerminal([.types("bob otpauth://totp/x?secret=GEZ")], isInteractive: false)
    let lines = bench.run("import", "uri", "-", "--user", "bob", "--allow-missing", on: many)
    #expect(lines.status == 65 && lines.answer.contains("line 1: not an otpauth:// URI"))
    let read = "QR-Code:otpauth://totp/x?secret=GEZDGNBVGY3TQOJQ\n"
    let terminal = FakeTerminal([.types(read)], isInteractive: false)
    let words = ["import", "uri", "-", "--user", "bob", "--allow-missing"]
    #expect(bench.run(arguments: words, on: terminal).status == 0)
  }

  @Test func `makes tokens with a clock of their own where it is said that they are`() throws {
    let path = try file("oath", "HOTP/T30 bob - \(Self.key)\nHOTP bob - 41\(Self.key)")
    let list = try file("list", "alice otpauth://totp/x?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ")
    defer { for each in [path, list] { try? FileManager.default.removeItem(atPath: each) } }
    let fixed = ["--allow-missing", "--json", "--device", "token"]
    let report = try bench.run(arguments: ["import", "pam-oath", path] + fixed).json(
      ImportedReport.self)
    #expect(report.users[0].authenticators.map(\.device) == ["token", nil])
    #expect(report.users[0].authenticators.map(\.name) == ["token", "counter"])
    #expect(bench.run(arguments: ["import", "pam-oath", path] + fixed).status == 0)
    // Ten minutes off: no login takes it, and two codes in a row set it.
    let uri = "otpauth://totp/x?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
    let code = { (steps: Int) in Act.types(try uriCode(uri, at: self.bench.now, steps: steps)) }
    #expect(bench.run(arguments: ["import", "uri", list] + fixed).status == 0)
    let set = bench.run(
      "resync", "alice", "--allow-missing", on: FakeTerminal([try code(20), try code(21)]))
    #expect(set.status == 0 && set.answer.contains("its clock is 10 min ahead"), "\(set.aside)")
    let next = FakeTerminal([try code(22)], isInteractive: false)
    #expect(bench.run("verify", "alice", "--allow-missing", on: next).status == 0)
    // As it was imported before.
    bench.run("unenroll", "alice", "--allow-missing", "--force")
    #expect(bench.run("import", "uri", list, "--allow-missing").status == 0)
    let phone = bench.run(arguments: ["import", "uri", list] + fixed)
    #expect(phone.status == 65 && phone.answer.contains("with a clock that can be set"))
    // Removed and imported again, used codes would be good again.
    #expect(!(phone.answer + phone.aside).contains("unenroll"))
  }

  @Test func `takes one secret once, whatever the number of digits`() throws {
    let path = try file("oath", "HOTP/T30/6 bob - \(Self.key)\nHOTP/T30/8 bob - \(Self.key)")
    let uri = "otpauth://totp/x?secret=GEZDGNBVGY3TQOJQGEZD"
    let list = try file("list", "\(uri)\n\(uri)&digits=8\n")
    defer { for each in [path, list] { try? FileManager.default.removeItem(atPath: each) } }
    for words in [["pam-oath", path], ["uri", list, "--user", "bob", "--all"]] {
      let done = bench.run(arguments: ["import"] + words + ["--allow-missing"])
      #expect(done.status == 65 && done.answer.contains("has the secret of phone"), "\(done.aside)")
    }
    #expect(try !bench.content().keys.contains { $0.contains("bob") })
  }

  @Test func `reads standard input, and says what is wrong with a list`() throws {
    let terminal = FakeTerminal(
      [
        .types("bob otpauth://totp/x?secret=GEZDGNBVGY3TQOJQ\nbob\n-x otpauth://totp/x?secret=AA\n")
      ],
      isInteractive: false)
    let outcome = bench.run("import", "uri", "--allow-missing", "--json", on: terminal)
    let report = try outcome.json(ImportedReport.self)
    #expect(outcome.status == 65 && report.notImported == 2)
    #expect(
      report.users.map { $0.reasons.map(\.code) } == [["line"], ["user-name", "weak-secret"]])
  }

  @Test func `shows a bar to those who wait at a terminal, and lists few of many`() throws {
    let lines = (1...1200).map { "HOTP u\($0) secret \(Self.key)" } + ["HOTP eve - 123"]
    let path = try file("oath", lines.joined(separator: "\n"), mode: 0o644)
    defer { try? FileManager.default.removeItem(atPath: path) }
    let terminal = FakeTerminal(screen: Screen(columns: 80, lines: 24, isUTF8: true))
    let outcome = bench.run(
      "import", "pam-oath", path, "--allow-missing", "--dry-run", on: terminal)
    #expect(outcome.aside.contains("] 1000 of 1201"))
    #expect(outcome.aside.contains("others can read"))
    #expect(
      outcome.answer == """
        eve   not imported: line 1201: the key is not an even number of hexadecimal digits
        1200 users: counter carried over
        1200 users: the file holds a clear-text password: not imported, remove it
        1200 would be imported, 1 not. No second scan needed: the apps keep working.

        """)
    #expect(try bench.content().isEmpty)
  }

  @Test(arguments: [
    "name,secret\nbob,GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ\n",
    "otpauth://totp/bob?secret=GEZDGNBVGY3TQOJQ\n# x\notpauth://totp/al?secret=GEZDGNBVGY3TQOJQ",
  ]) func `says of a list of another kind which lines are not of its form`(text: String) throws {
    let path = try file("other", text)
    defer { try? FileManager.default.removeItem(atPath: path) }
    let outcome = bench.run("import", "pam-oath", path)
    #expect(outcome.status == 65)
    let lines = text.contains("#") ? "(line 1, 3)" : "(line 1, 2)"
    #expect(outcome.aside.contains(lines), "\(outcome.aside)")
    #expect(!(outcome.answer + outcome.aside).contains("GEZDG"))
    let comments = try file("other", "# nothing\n\n")
    #expect(bench.run("import", "pam-oath", comments).answer == "Nothing to import.\n")
  }

  @Test func `skips a byte order mark, and takes no URI from the command line`() throws {
    let path = try file("list", "\u{feff}g5 otpauth://totp/x?secret=GEZDGNBVGY3TQOJQ\n")
    defer { try? FileManager.default.removeItem(atPath: path) }
    let done = bench.run("import", "uri", path, "--allow-missing")
    #expect(done.status == 0 && done.answer.hasPrefix("g5 "), "\(done.answer)")
    let typed = bench.run("import", "uri", "otpauth://totp/x?secret=GEZDGNBVGY3TQOJQ")
    #expect(typed.status == 64 && typed.aside.contains("from standard input or a file"))
    #expect(!typed.aside.contains("GEZDG"))
  }

  @Test func `stops between two batches when it is interrupted`() throws {
    let path = try file("oath", "HOTP bob - \(Self.key)")
    defer { try? FileManager.default.removeItem(atPath: path) }
    let terminal = FakeTerminal()
    terminal.lateSignal = 2
    let outcome = bench.run("import", "pam-oath", path, "--allow-missing", on: terminal)
    #expect(outcome.status == 130)
    #expect(
      outcome.aside
        == "sallyport: stopped after 0 of 1 user; run the same command again to continue\n")
  }

  @Test(arguments: [
    (["google-authenticator"], "one of --user and --all-homes is required"),
    (["google-authenticator", "--user", "x", "--all-homes"], "exclude each other"),
    (["pam-oath"], "missing expected argument"),
    (["pam-oath", "x", "--backup-codes", "33"], "--backup-codes takes 0 to 32"),
    (["pam-oath", "x", "--digits", "5"], "invalid"),
  ]) func `is refused with words that make no sense`(arguments: [String], wanted: String) {
    let outcome = bench.run(arguments: ["import"] + arguments)
    #expect(outcome.status == 64 && outcome.aside.contains(wanted), "\(outcome.aside)")
  }
}
