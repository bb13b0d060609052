import OneTimePassword
import SallyportCore
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
      throw .adoptionFile(path, errnoText(error.number), Sysexit(errno: error.number))
    }
    var lines: [AdoptedLine] = []
    let content = String(decoding: text.bytes(in: 0..<text.count), as: UTF8.self)
    // A line end of Windows is one `Character`.
    let all = content.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
    for (index, line) in all.enumerated()
    where !line.isEmpty && line.first != "#" {
      let words = line.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
      guard words.count == 3, !words[0].isEmpty, let uid = UInt32(words[2]) else {
        throw .noLine("\(path):\(index + 1)", words)
      }
      lines.append(
        AdoptedLine(
          number: index + 1, name: words[0], former: words[1].isEmpty ? nil : words[1], uid: uid))
    }
    return lines
  }

  /// For the question.
  func text(in context: Context) -> String {
    let now: String
    do throws(CommandError) {
      now = try context.account(name).uid.map { "uid \($0) now" } ?? "no account now"
    } catch {
      now = "account not seen"
    }
    let before = printable((former ?? name).utf8, limit: 255)
    return "\(printable(name.utf8, limit: 255)), \(now): before \(before), uid \(uid)"
  }
}

extension CommandError {
  fileprivate static func adoptionFile(_ path: String, _ why: String, _ status: Sysexit)
    -> CommandError
  {
    CommandError(status, "\(shownPath(path)): \(why)")
  }

  /// Where the uid alone is missing or wrong, the question about that person shows it.
  fileprivate static func noLine(_ place: String, _ words: [String]) -> CommandError {
    CommandError {
      let lacksUID = (2...3).contains(words.count) && !words[0].isEmpty
      let person = Invocation(verb: "adopt", user: words[0], store: $0.store)
      let from = words.count < 2 || words[1].isEmpty ? "" : "--from \(shellQuoted(words[1]))"
      return Message(
        "\(shownPath(place)): \(lacksUID ? "no uid before, " : "")expected NAME:BEFORE:UID; "
          + "nothing was changed", .badData,
        hints: lacksUID ? [person.command("adopt", from, remark: "shows the uid, and asks")] : [])
    }
  }
}
