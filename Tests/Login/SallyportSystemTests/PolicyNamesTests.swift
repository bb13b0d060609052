import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@testable import SallyportSystem

/// What a rule with this condition says of a login of this user, who is in this group.
private func read(_ condition: String, user: String, group: String = "folk") throws -> PolicyFile {
  let login = PolicyRequest(
    service: Array("sshd".utf8), user: Array(user.utf8), isRemote: false, address: nil,
    parse: Addresses.numeric, membership: { $0 == Array(group.utf8) ? .yes : .no })
  let text = "[default]\n[rule r]\n\(condition)\nlook_ahead = 70\n"
  return PolicyFile(try #require(Secret(text.utf8)), base: Policy(), login)
}

@Suite struct `Names with spaces in a policy file` {
  // decisive
  @Test(arguments: [
    ("\"john doe\"", true), ("bob,\"john doe\"", true), ("\"john doe\" bob", true),
    ("john doe", false), ("\"John Doe\"", false), ("\"john doe \"", false), ("\"john\"", false),
  ]) func `are matched in quotes`(words: String, isMatched: Bool) throws {
    for file in [
      try read("match_user = \(words)", user: "john doe"),
      try read("match_group = \(words)", user: "alice", group: "john doe"),
    ] {
      #expect(file.problem == nil)
      #expect((file.policy(Policy()).lookAhead == 70) == isMatched)
    }
  }

  @Test(arguments: ["doe, john", "EX\\john doe", "john doe@example.org", "jörg #1", "a\tb"])
  func `keep commas, at signs and backslashes`(name: String) throws {
    let file = try read("match_user = bob \"\(name)\"", user: name)
    #expect(file.problem == nil && file.policy(Policy()).lookAhead == 70)
  }

  // decisive
  @Test(arguments: ["\"john doe", "\"", "\"\"", "bob \"", "bob, \"john doe\" \"x"])
  func `without their second quote are an error, and match nobody`(words: String) throws {
    for key in ["match_user", "match_group", "match_service"] {
      let file = try read("\(key) = \(words)", user: "john doe")
      #expect(file.problem?.line == 3 && file.problem?.found == Array(words.utf8))
      #expect(file.policy(Policy()).lookAhead != 70)
    }
  }
}
