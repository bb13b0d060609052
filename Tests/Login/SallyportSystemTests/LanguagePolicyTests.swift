import OneTimePassword
import SallyportCore
import Testing

@testable import SallyportSystem

@Suite struct `The language that a policy file sets` {
  static let languages = """
    [default]
    language = de
    [rule staff]
    match_group = staff
    language = pl
    [rule alice]
    match_service = su
    match_user = alice
    language = it
    [rule sudo]
    match_service = sudo, su
    language = fr
    [rule japan]
    match_origin = 192.0.2.0/24
    language = ja
    """

  /// What is asked before a proof does not depend on the user or a group.
  // decisive
  // shows: language
  @Test(arguments: [
    ("sshd", "alice", "198.51.100.1", "de", "de"), ("sshd", "eve", "198.51.100.1", "de", "de"),
    ("sshd", "bob", "198.51.100.1", "de", "pl"), ("sshd", "bob", "192.0.2.9", "ja", "pl"),
    ("sshd", "eve", "192.0.2.9", "ja", "ja"), ("su", "alice", nil, "fr", "it"),
    ("su", "bob", nil, "fr", "pl"), ("sudo", "eve", nil, "fr", "fr"),
    // The first rule counts; and none of an address that nobody knows.
    ("sudo", "eve", "192.0.2.9", "fr", "fr"), ("sshd", "eve", "host.example", "de", "de"),
  ]) func `A prompt's language is that of the service and the origin`(
    _ service: String, _ user: String, _ address: String?, _ before: String, _ after: String
  ) throws {
    let login = PolicyRequest(
      service: Array(service.utf8), user: Array(user.utf8), isRemote: address != nil,
      address: address.flatMap { Addresses.numeric(Array($0.utf8)) }, parse: Addresses.numeric,
      membership: { _ in user == "bob" ? .yes : user == "eve" ? .no : .unknown })
    let text = try #require(Secret(Self.languages.utf8))
    let policy = PolicyFile(text, base: Policy(), login).policy(Policy())
    #expect(Policy.name(ofLanguage: policy.promptLanguage) == Array(before.utf8))
    #expect(Policy.name(ofLanguage: policy.language) == Array(after.utf8))
  }

  /// Nor where lines cannot be read.
  @Test func `A prompt's language is nobody's own in a damaged file either`() throws {
    for line in Self.languages.split(separator: "\n").indices {
      var lines = Self.languages.split(separator: "\n").map(String.init)
      lines[line] = "x" + lines[line]
      let text = try #require(Secret(lines.joined(separator: "\n").utf8))
      let found = [("alice", Tristate.no), ("bob", .yes), ("eve", .no)].map { name, isStaff in
        let login = PolicyRequest(
          service: Array("su".utf8), user: Array(name.utf8), isRemote: false, address: nil,
          parse: Addresses.numeric, membership: { _ in isStaff })
        return PolicyFile(text, base: Policy(), login).policy(Policy()).promptLanguage
      }
      #expect(Set(found).count == 1, "\(lines[line])")
    }
  }

  /// It decides nothing: what else the file says is used as it stands, and users read English.
  // decisive
  @Test(arguments: [
    "f", "Fr", "../x", "a.b", "pt-br", "PT-BR", "french", "fr/b", "fr de", "", "?", "\u{fffd}",
  ]) func `that is none makes no policy strict`(_ value: String) throws {
    let login = PolicyRequest(
      service: Array("su".utf8), user: Array("alice".utf8), isRemote: false, address: nil,
      parse: Addresses.numeric, membership: { _ in .no })
    let lines = "[default]\nlanguage = \(value)\nstate = disabled\nadjacent_intervals = 10\n"
    let file = PolicyFile(try #require(Secret(lines.utf8)), base: Policy(), login)
    #expect(file.problem == nil)
    let policy = file.policy(Policy())
    #expect(!policy.isEnabled && policy.adjacentIntervals == 10)
    for language in [policy.language, policy.promptLanguage] {
      #expect(Policy.name(ofLanguage: language) == Array("?".utf8))
    }
  }
}
