package import OneTimePassword
import SallyportCore

/// A policy file as people name it.
package struct PolicyText {
  package let path: String
  package let content: Secret

  package init(_ path: String, _ content: Secret) { (self.path, self.content) = (path, content) }
}

extension PolicyText {
  /// A line for each group of a rule that cannot be found, and for each in which nobody is: such a
  /// rule holds for nobody.
  package func warnings() -> [String] {
    let file = printable(path.utf8, limit: 255)
    return flaws(of: GroupCensus()).map { "\(file):\($1): warning: \($0)" }
  }

  /// The same, each with its line.
  func flaws(of census: GroupCensus) -> [(String, Int)] {
    groups().compactMap { name, line in census.flaw(of: name).map { ($0, line) } }
  }

  private func groups() -> [(String, Int)] {
    values(of: .matchGroup).flatMap { value, line in
      value.split { $0 == " " || $0 == "," || $0 == "\t" }.map { (String($0), line) }
    }
  }

  /// The local services as they stand in the text, and the line; 0: the built-in ones.
  package func localServices() -> (services: String, line: Int) {
    if let (words, line) = values(of: .localServices).last { return (words, line) }
    let usual = Policy.usualLocalServices.map { String(decoding: $0, as: UTF8.self) }
    return (usual.joined(separator: ", "), 0)
  }

  /// The services that are an sshd, likewise.
  package func sshdServices() -> (services: String, line: Int) {
    values(of: .sshdServices).last.map { ($0.0, $0.1) } ?? ("sshd", 0)
  }

  /// All values of a key, each with its line; none where the text is broken.
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
