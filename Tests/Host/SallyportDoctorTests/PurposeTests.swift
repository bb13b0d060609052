import OneTimePassword
import PAMStack
import SallyportCore
import Testing

@testable import SallyportDoctor

private func text(_ content: String) throws -> PolicyText {
  PolicyText("/conf", try #require(Secret(content.utf8)))
}

private func purpose(_ account: String, _ way: String, _ line: Int = 2) -> Purpose {
  Purpose(account: account, way: way, location: FileLocation(file: "/conf", line: line))
}

@Suite struct `Ways that are meant to be without a code` {
  @Test(
    arguments: [
      ("git:sshd", [purpose("git", "sshd")]),
      (
        "ansible:sudo,  git:sshd\tx:su",
        [
          purpose("ansible", "sudo"), purpose("git", "sshd"), purpose("x", "su"),
        ]
      ),
      (
        "a@example.org:sudo-i, EX\\b:polkit-1",
        [
          purpose("a@example.org", "sudo-i"), purpose("EX\\b", "polkit-1"),
        ]
      ),
      ("jürgen:gdm_password.x", [purpose("jürgen", "gdm_password.x")]),
      (
        "\"john doe:sudo\" \"doe, john:su\", git:sshd",
        [purpose("john doe", "sudo"), purpose("doe, john", "su"), purpose("git", "sshd")]
      ),
    ] as [(String, [Purpose])])
  func `are read with account, service and line`(_ value: String, _ found: [Purpose]) throws {
    let text = try text("[default]\nwithout_code = \(value)\n")
    #expect(text.purposes() == found)
    #expect(text.purposeProblems() == [])
  }

  @Test func `are proposed as they are read`() throws {
    let accounts = ["git", "john doe", "doe, john", "EX\\a b"]
    let words = accounts.map { Purpose.word($0, "sudo") }.joined(separator: ", ")
    #expect(words.hasPrefix("git:sudo, \"john doe:sudo\","))
    #expect(try text("[default]\nwithout_code = \(words)\n").purposes().map(\.account) == accounts)
  }

  @Test(arguments: [
    ("git", "git"), ("git:", "git:"), (":sshd", ":sshd"), ("a:b:c", "a:b:c"), ("", ""), (",", ","),
    ("git :sshd", "git :sshd"), ("*:sudo", "*:sudo"), ("a*:sudo", "a*:sudo"),
    ("%wheel:sudo", "%wheel:sudo"), ("@wheel:sudo", "@wheel:sudo"), ("!git:sshd", "!git:sshd"),
    ("git:*", "git:*"), ("git:SSHD", "git:SSHD"), ("git:/etc/x", "git:/etc/x"),
    ("git:..", "git:.."), ("-git:sshd", "-git:sshd"), ("a/b:sshd", "a/b:sshd"),
    ("ok:sshd, bad, git:sshd", "bad"),
  ]) func `are nobody's where a word is wrong, which is named`(_ value: String, _ words: String)
    throws
  {
    let text = try text("[default]\nwithout_code = \(value)\nlook_ahead = 3\n")
    #expect(text.purposes() == [])
    let wrong = words.split(separator: " ").map { Array($0.utf8) }
    #expect(text.purposeProblems().map(\.found) == (wrong.isEmpty ? [[]] : wrong))
    #expect(text.purposeProblems().allSatisfy { $0.line == 2 })
    // It is nothing that a login goes by.
    #expect(text.problems() == [])
  }

  @Test func `A name that is no text is no word`() throws {
    let bytes = Array("[default]\nwithout_code = ".utf8) + [0xff] + Array(":sshd\n".utf8)
    let text = PolicyText("/conf", try #require(Secret(bytes)))
    #expect(text.purposes() == [] && text.purposeProblems().count == 1)
  }

  @Test(
    arguments: [
      ("without_code = a:su\n", 1, .missing("[default] above this key")),
      ("[rule a]\nmatch_user = a\nwithout_code = a:su\n", 3, .missing("[default] above this key")),
      ("[default]\nwithout_code = a:su\nwithout_code = b:su\n", 3, .duplicateKey),
    ] as [(String, Int, SettingsError.Problem)])
  func `stand once, above all rules`(
    _ content: String, _ line: Int, _ problem: SettingsError.Problem
  ) throws {
    let text = try text(content)
    #expect(text.purposes() == [])
    #expect(text.purposeProblems().map(\.line) == [line])
    #expect(text.purposeProblems().map(\.problem) == [problem])
  }

  @Test(arguments: ["nonsense\n", "look_ahead = 700\n", "[rule a]\n", "without_cod = b:su\n"])
  func `are nobody's while something else in the file is wrong`(_ wrong: String) throws {
    let text = try text("[default]\nwithout_code = a:su\n\(wrong)")
    #expect(text.purposes() == [])
    #expect(text.purposeProblems() == [] && text.problems().count == 1)
  }

  @Test func `are none without the key`() throws {
    #expect(try text("[default]\nlook_ahead = 1\n").purposes() == [])
    #expect(try text("").purposes() == [] && text("").purposeProblems() == [])
  }
}
