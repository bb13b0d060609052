@testable import SallyportDoctor

/// What `sshd -T` would say of some lines: of repeated settings the first counts.
struct FakeSshd {
  private static let unset = [
    "usepam no", "kbdinteractiveauthentication yes", "passwordauthentication yes",
    "pubkeyauthentication yes", "gssapiauthentication no", "hostbasedauthentication no",
    "permitrootlogin without-password", "usedns no", "authenticationmethods any",
  ]
  private let lines: [String]

  init(_ lines: [String]) { self.lines = lines }

  /// Those for everybody, or those for one user as well.
  private func effective(_ user: String?) -> [String] {
    let head = lines.prefix { !$0.hasPrefix("Match ") }
    let own = lines.firstIndex(of: "Match User \(user ?? "")").map {
      lines[($0 + 1)...].prefix { !$0.hasPrefix("Match ") }
    }
    // Lines of a Match block come before those for everybody.
    return ((own ?? []) + head).map { line in
      let parts = line.split(separator: " ", maxSplits: 1)
      let keyword = parts[0].lowercased().replacing("challengeresponse", with: "kbdinteractive")
      return "\(keyword) \(parts[1])"
    }
  }

  func answer(_ user: String? = nil, anyMethod: Bool = false) -> CommandOutput {
    let first = anyMethod ? ["authenticationmethods any"] : []
    let text = (first + effective(user) + FakeSshd.unset).joined(separator: "\n")
    let settings = SSHSettings(text)
    guard settings.ways.isEmpty, settings.namesMethods else { return CommandOutput(output: text) }
    return CommandOutput(
      status: 255,
      errors: """
        Disabled method "keyboard-interactive" in AuthenticationMethods list "keyboard-interactive"
        AuthenticationMethods cannot be satisfied by enabled authentication methods

        """)
  }

  var users: [String] {
    lines.filter { $0.hasPrefix("Match User ") }.map { String($0.dropFirst(11)) }
  }
}
