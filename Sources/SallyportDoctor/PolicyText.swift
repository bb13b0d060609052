package import OneTimePassword
import SallyportCore

/// The text of a policy file, and its path for messages.
package struct PolicyText {
  package let path: String
  package let content: Secret

  package init(_ path: String, _ content: Secret) { (self.path, self.content) = (path, content) }
}

extension PolicyText {
  /// One line for each group in a rule that does not exist or has no members, so that the rule
  /// matches nobody.
  package func warnings() -> [String] {
    let file = printable(path.utf8, limit: 255)
    return flaws(of: GroupCensus()).map { "\(file):\($1): warning: \($0)" }
  }

  /// The same problems, each with its line number.
  func flaws(of census: GroupCensus) -> [(String, Int)] {
    groups().compactMap { name, line in census.flaw(of: name).map { ($0, line) } }
  }

  private func groups() -> [(String, Int)] {
    values(of: .matchGroup).flatMap { value, line in
      value.split { $0 == " " || $0 == "," || $0 == "\t" }.map { (String($0), line) }
    }
  }

  /// The value of local_services and its line; line 0 for the built-in default.
  package func localServices() -> (services: String, line: Int) {
    if let (words, line) = values(of: .localServices).last { return (words, line) }
    let usual = Policy.usualLocalServices.map { String(decoding: $0, as: UTF8.self) }
    return (usual.joined(separator: ", "), 0)
  }

  /// The value of sshd_services and its line; line 0 for the built-in default.
  package func sshdServices() -> (services: String, line: Int) {
    values(of: .sshdServices).last.map { ($0.0, $0.1) } ?? ("sshd", 0)
  }

  /// Whether the usual policy file has `self_service = yes`, by default or in a rule.
  static func allowsSelfService(on machine: Machine) -> Bool {
    let path = PolicyFacts().path
    guard let bytes = machine.bytes(path).value, let text = Secret(bytes) else { return false }
    return PolicyText(path, text).values(of: .selfService).contains { $0.0 == "yes" }
  }

  /// All values of a key, each with its line; empty if the text is not valid.
  private func values(of key: PolicyKey) -> [(String, Int)] {
    var found: [(String, Int)] = []
    do throws(SettingsError) {
      var lines = try SettingsScanner(content)
      while let line = try lines.next() {
        guard case .setting(let name, let value) = line, content.holds(key.name, in: name) else {
          continue
        }
        found.append((String(decoding: content.bytes(in: value), as: UTF8.self), lines.number))
      }
    } catch {
      return []
    }
    return found
  }
}
