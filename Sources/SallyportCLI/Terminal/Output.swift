import OneTimePassword

/// Says things in the right place: with `--json` standard output has the one object and nothing
/// else, and what is for people goes to standard error.
struct Output {
  let terminal: any Terminal
  let isJSON: Bool

  /// Where people read.
  var stream: Stream { isJSON ? .aside : .answer }

  /// A line for people.
  func say(_ line: String) { write(line + "\n") }

  /// A line for people that is not about the answer.
  func warn(_ line: String) {
    terminal.write(Array("sallyport: warning: \(line)\n".utf8), to: .aside)
  }

  /// Text for people as it is.
  func write(_ text: String) { terminal.write(Array(text.utf8), to: stream) }

  func write(_ bytes: [UInt8]) { terminal.write(bytes, to: stream) }

  /// The answer, in the one form or the other; the other one is not made.
  func answer(_ object: @autoclosure () -> some Encodable, _ text: @autoclosure () -> String) {
    terminal.write((isJSON ? written(object()) : Array(text().utf8)) + [0x0a], to: .answer)
  }

  /// What was typed after `prompt`.
  func ask(_ prompt: String, echo: Bool = true) throws(Interruption) -> Secret {
    // A prompt belongs where the person looks, not into a file that takes the answer.
    let onScreen = terminal.screen(of: stream) != nil
    return try terminal.line(prompt: prompt, on: onScreen ? stream : .aside, echo: echo)
  }

  /// Whether the answer is yes; anything but `y` and `yes` is no. `usually`: an empty line is yes.
  func agrees(_ question: String, usually: Bool = false) throws(Interruption) -> Bool {
    let typed = try ask("\(question) \(usually ? "[Y/n]" : "[y/N]"): ")
    if typed.count == 0 { return usually }
    let answer = (0..<typed.count).map { typed[$0] | 0x20 }
    return answer == [0x79] || answer == [0x79, 0x65, 0x73]
  }
}
