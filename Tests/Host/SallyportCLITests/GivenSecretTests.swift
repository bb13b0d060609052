import Foundation
import OneTimePassword
import SallyportCore
import Testing

@testable import SallyportCLI

@Suite struct `A secret that is given` {
  private let bench = Bench()

  @Test(arguments: [
    ("JBSWY3DP1HPK3PXP", "character 9 is not a letter or one of 2 to 7"),
    ("30313233343536373839414243444546", "it looks like hexadecimal\nhint: sallyport enroll"),
    ("JBSWY3DPEHPK3P", "characters are missing"),
    ("JBSWY3DP", "the secret is 5 bytes long, expected 10 to 128"),
    ("", "the secret is 0 bytes long"),
    (String(repeating: "A", count: 208), "the secret is 130 bytes long"),
    (String(repeating: "A", count: 65537), "the secret is longer than 64 KiB"),
  ]) func `A bad secret is bad data, and is not repeated`(secret: String, told: String) throws {
    let done = bench.run(
      "enroll", "--user", "alice", "--allow-missing", "--no-confirm", "--secret-from", "-",
      on: FakeTerminal([.types(secret)], isInteractive: false))
    #expect(done.status == 65)
    #expect(done.aside.contains(told), "\(done.aside)")
    #expect(secret.isEmpty || !done.aside.contains(secret))
    #expect(done.answer == "")
    #expect(try bench.content().isEmpty)
  }

  @Test(arguments: [
    (["--hex"], "48656c6c6f21DEADBEEF", "JBSWY3DPEHPK3PXP", "hexadecimal"),
    (["--hex"], "4865 6c6c-6f21\tDE AD BE EF", "JBSWY3DPEHPK3PXP", "hexadecimal"),
    // The last letter carries bits that belong to no byte: apps drop them.
    ([], "JBSWY3DPEHPK3PXPAB", "JBSWY3DPEHPK3PXPAA", "base32"),
  ]) func `A secret is taken as vendors and services spell it`(
    option: [String], typed: String, stored: String, form: String
  ) throws {
    let words = ["enroll", "--user", "alice", "--allow-missing", "--no-confirm", "--json"]
    let terminal = FakeTerminal([.types(typed)])
    let done = bench.run(arguments: words + ["--secret-from", "-"] + option, on: terminal)
    #expect(try done.json(Enrolled.self).secret == stored, "\(done.aside)")
    #expect(terminal.prompts.first == "Secret in \(form): (hidden)")
  }

  @Test func `Hexadecimal that is none is bad data, and only of a secret that is given`() throws {
    let words = ["enroll", "--user", "alice", "--allow-missing", "--no-confirm", "--hex"]
    for (typed, told) in [
      ("30313233343536373839 x", "character 22 is not a digit or one of a to f"),
      ("303132333435363738393", "a digit is missing"), ("3031", "the secret is 2 bytes long"),
    ] {
      let done = bench.run(
        arguments: words + ["--secret-from", "-"], on: FakeTerminal([.types(typed)]))
      #expect(done.status == 65 && done.aside.contains(told), "\(done.aside)")
    }
    #expect(bench.run(arguments: words).aside.contains("--hex is for --secret-from only"))
  }

  @Test func `A secret may come from a regular file and nothing else`() throws {
    let plain = "\(bench.directory).secret"
    let link = "\(bench.directory).link"
    let files = FileManager.default
    defer { for path in [plain, link] { try? files.removeItem(atPath: path) } }
    try Data("JBSWY3DPEHPK3PXP\n".utf8).write(to: URL(fileURLWithPath: plain))
    try files.createSymbolicLink(atPath: link, withDestinationPath: plain)
    for (path, status, told) in [
      (link, Int32(65), "is a symbolic link"), ("/dev/null", 65, "is not a regular file"),
      ("/", 65, "is not a regular file"), ("\(plain).missing", 66, "(ENOENT)"), (plain, 0, ""),
    ] {
      let done = bench.run(
        "enroll", "--user", "alice", "--allow-missing", "--no-confirm", "--secret-from", path)
      #expect(done.status == status, "\(path): \(done.aside)")
      #expect(told.isEmpty || done.aside.contains(told), "\(done.aside)")
    }
  }

  @Test func `A secret that she has is not added once more`() throws {
    let old = try bench.enroll()
    func add(_ name: String, _ code: String) -> Bench.Outcome {
      bench.run(
        "add", "--user", "alice", "--name", name, "--secret-from", "-", "--no-confirm",
        on: FakeTerminal([.types(code), .types("JBSWY3DPEHPK3PXP")], isInteractive: false))
    }
    #expect(add("fob", old.backupCodes[0]).status == 0)
    let again = add("other", old.backupCodes[1])
    #expect(again.status == 73 && again.aside.contains("has this secret already, as \"fob\""))
    #expect(!again.aside.contains("JBSWY3DPEHPK3PXP"))
  }

  @Test func `With codes to come only the first line is the secret`() throws {
    let terminal = FakeTerminal(
      [.types("JBSWY3DPEHPK3PXP"), shownCode(at: bench.now)], isInteractive: false)
    let done = bench.run(
      "enroll", "--user", "alice", "--allow-missing", "--secret-from", "-", on: terminal)
    #expect(done.status == 0, "\(done.aside)")
    #expect(terminal.prompts.first == "Secret in base32: (hidden)")
  }
}
