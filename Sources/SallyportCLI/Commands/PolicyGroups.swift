import CSystem
import OneTimePassword
import SallyportCore

#if canImport(Glibc)
  import Glibc
#endif

extension PolicyText {
  /// A line for each group of a rule that cannot be found: a name that is mistyped has no members,
  /// and the rule holds for nobody.
  func warnings() -> [String] {
    let file = printable(path.utf8, limit: 255)
    return groups().compactMap { name, line in
      PolicyText.flaw(ofGroup: name).map { "\(file):\(line): warning: \($0)" }
    }
  }

  /// The names, each with its line; none where the text is broken.
  private func groups() -> [(String, Int)] {
    var found: [(String, Int)] = []
    do throws(SettingsError) {
      var lines = try SettingsScanner(content)
      while let line = try lines.next() {
        guard case .setting(let key, let value) = line, content.holds("match_group", in: key) else {
          continue
        }
        let words = String(decoding: content.bytes(in: value), as: UTF8.self)
          .split { $0 == " " || $0 == "," || $0 == "\t" }
        found += words.map { (String($0), lines.number) }
      }
    } catch {
      return []
    }
    return found
  }

  private static func flaw(ofGroup name: String) -> String? {
    errno = 0
    // SAFETY: nothing of the entry is read, and no other thread asks.
    if unsafe getgrnam(name) != nil { return nil }
    let name = printable(name.utf8)
    return errno == 0 || errno == ENOENT
      ? "there is no group \(name)" : "group \(name) cannot be looked up: \(errnoText(errno))"
  }
}
