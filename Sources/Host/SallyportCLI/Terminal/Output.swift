import FoundationEssentials
package import OneTimePassword

/// Writes to the right stream: with `--json`, standard output gets one JSON object and nothing
/// else, and all text for people goes to standard error.
package struct Output {
  let terminal: any Terminal
  let isJSON: Bool

  /// The stream for text that people read.
  var stream: Stream { isJSON ? .aside : .answer }

  /// Columns for text that people read: the terminal's, at most 100 so that the eye finds the next
  /// line, and at least 40; 80 where it is not a terminal.
  var width: Int { terminal.screen(of: stream).map { max(40, min($0.columns, 100)) } ?? 80 }

  /// Writes a line for people.
  package func say(_ line: String) { write(line + "\n") }

  /// Writes a warning to standard error.
  package func warn(_ line: String) {
    terminal.write(Array("sallyport: warning: \(line)\n".utf8), to: .aside)
  }

  /// Writes text for people, without adding a newline.
  func write(_ text: String) { terminal.write(Array(text.utf8), to: stream) }

  func write(_ bytes: [UInt8]) { terminal.write(bytes, to: stream) }

  /// Writes the answer, as JSON or as text. The other form is not evaluated.
  package func answer(
    _ object: @autoclosure () -> some Encodable, _ text: @autoclosure () -> String
  ) {
    terminal.write((isJSON ? written(object()) : Array(text().utf8)) + [0x0a], to: .answer)
  }

  /// Writes the answer about several services; about one of them as `answer` does.
  func answerEach(_ objects: [some Encodable], _ text: String) {
    if let only = objects.first, objects.count == 1 {
      answer(only, text)
    } else {
      answer(["services": objects], text)
    }
  }

  /// Returns what the user typed after `prompt`.
  package func ask(_ prompt: String, echo: Bool = true) throws(Interruption) -> Secret {
    // If the answer is redirected to a file, the prompt goes to standard error.
    let onScreen = terminal.screen(of: stream) != nil
    return try terminal.line(prompt: prompt, on: onScreen ? stream : .aside, echo: echo)
  }

  /// Whether the user answered `y` or `yes`, in either case. With `usually`, an empty line is also
  /// yes.
  func agrees(_ question: String, usually: Bool = false) throws(Interruption) -> Bool {
    let typed = try ask("\(question) \(usually ? "[Y/n]" : "[y/N]"): ")
    if typed.count == 0 { return usually }
    let answer = (0..<typed.count).map { typed[$0] | 0x20 }
    return answer == [0x79] || answer == [0x79, 0x65, 0x73]
  }
}

/// Encodes nil as null. A plain Optional would be left out of the object.
@propertyWrapper
package struct OrNull<Value: Encodable>: Encodable {
  package var wrappedValue: Value?

  package init(wrappedValue value: Value?) { wrappedValue = value }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    if let wrappedValue { try container.encode(wrappedValue) } else { try container.encodeNil() }
  }
}

extension OrNull: Equatable where Value: Equatable {}

/// Encodes the members of both values into one object.
struct Joined<First: Encodable, Second: Encodable>: Encodable {
  let first: First
  let second: Second

  init(_ first: First, _ second: Second) { (self.first, self.second) = (first, second) }

  func encode(to encoder: any Encoder) throws {
    try first.encode(to: encoder)
    try second.encode(to: encoder)
  }
}

/// The JSON text (RFC 8259), without a newline at the end.
func written(_ answer: some Encodable) -> [UInt8] {
  let encoder = JSONEncoder()
  encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
  // Encoding fails only for numbers that are not finite, and all of ours are integers.
  let text = (try? encoder.encode(answer)).map { Array($0) } ?? Array("null".utf8)
  // Escapes DEL, which a terminal may interpret. It can only occur inside strings.
  guard text.contains(0x7f) else { return text }
  return text.flatMap { $0 == 0x7f ? Array("\\u007f".utf8) : [$0] }
}
