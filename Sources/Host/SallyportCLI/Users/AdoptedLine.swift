import OneTimePassword
import SallyportSupport

/// A line of `--all`.
struct AdoptedLine {
  let number: Int
  let name: String
  /// nil: the same name.
  let former: String?
  let uid: UInt32

  /// Throws, naming the line, before anything is changed.
  static func all(in path: String) throws(CommandError) -> [AdoptedLine] {
    let text: Secret
    do throws(SystemError) {
      text = try OpenFile.regular(path, following: true).secret(atMost: 1 << 20)
    } catch {
      throw .adoptionFile(path, errnoText(error.number))
    }
    var lines: [AdoptedLine] = []
    let content = String(decoding: text.bytes(in: 0..<text.count), as: UTF8.self)
    // A line end of Windows is one `Character`.
    let all = content.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
    for (index, line) in all.enumerated()
    where !line.isEmpty && line.first != "#" {
      let words = line.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
      guard words.count == 3, !words[0].isEmpty, let uid = UInt32(words[2]) else {
        throw .adoptionFile("\(path):\(index + 1)", "expected NAME:BEFORE:UID; nothing was changed")
      }
      lines.append(
        AdoptedLine(
          number: index + 1, name: words[0], former: words[1].isEmpty ? nil : words[1], uid: uid))
    }
    return lines
  }
}

extension CommandError {
  fileprivate static func adoptionFile(_ path: String, _ why: String) -> CommandError {
    CommandError(.badData, "\(shownPath(path)): \(why)")
  }
}
