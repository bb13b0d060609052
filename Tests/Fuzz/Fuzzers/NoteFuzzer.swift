import OneTimePassword
import SallyportAdministration
import SallyportCore

extension Fuzzer {
  /// What is kept of a user without an enrollment: what reads writes to a text that reads to the
  /// same; cut off anywhere that text reads to the same or not at all, so that nobody passes for
  /// lack of a line.
  // shows: notes
  static let note = Fuzzer(name: "note") { input in
    let (user, note): (UserName, UserNote)
    do throws(SettingsError) {
      (user, note) = try UserNote.read(secret(input))
    } catch {
      must(isPlaced(error, in: input), "no line of the text: \(error)")
      return
    }
    let text = bytes(unwrapped(note.written(for: user), "does not write"))
    let again = read(text)
    must(again?.0 == user && again?.1 == note, "reads another note than it wrote")
    for length in 0..<text.count {
      guard let (_, rest) = read(Array(text[..<length])) else { continue }
      must(rest == note, "cut off at byte \(length) it says something else")
    }
  }
}

private func read(_ text: [UInt8]) -> (UserName, UserNote)? { try? UserNote.read(secret(text)) }
