import FoundationEssentials
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

/// A value that is in the object as null where there is none; an Optional alone is left out then.
@propertyWrapper
struct OrNull<Value: Encodable>: Encodable {
  var wrappedValue: Value?

  init(wrappedValue value: Value?) { wrappedValue = value }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    if let wrappedValue { try container.encode(wrappedValue) } else { try container.encodeNil() }
  }
}

extension OrNull: Equatable where Value: Equatable {}

/// The members of both in one object.
struct Joined<First: Encodable, Second: Encodable>: Encodable {
  let first: First
  let second: Second

  init(_ first: First, _ second: Second) { (self.first, self.second) = (first, second) }

  func encode(to encoder: any Encoder) throws {
    try first.encode(to: encoder)
    try second.encode(to: encoder)
  }
}

/// As it is printed for programs (RFC 8259), without a last newline.
func written(_ answer: some Encodable) -> [UInt8] {
  let encoder = JSONEncoder()
  encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
  // It throws for numbers that JSON has not, and there are whole ones only.
  let text = (try? encoder.encode(answer)).map { Array($0) } ?? Array("null".utf8)
  // DEL, which a terminal may obey, is only within texts.
  return text.flatMap { $0 == 0x7f ? Array("\\u007f".utf8) : [$0] }
}
