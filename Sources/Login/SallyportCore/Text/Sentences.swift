import OneTimePassword

/// The sentences of one language.
package struct Sentences: Sendable {
  /// Lines `key = sentence`, in the order of the English ones; empty: these, of a login. Of a
  /// catalog the bytes 1 and 2 are the places, as they are in English from left to right.
  private let lines: [UInt8]

  /// In English, of a login.
  package init() { lines = [] }

  /// Of a catalog.
  init(lines: [UInt8]) { self.lines = lines }

  /// In English: lines like those of `Sentence.english`.
  package init(_ lines: StaticString) { self.lines = bytes(of: lines) }

  /// A sentence, with what stands in the places of the English one, from left to right.
  @inline(never) package func text(_ sentence: Sentence, _ first: [UInt8], _ second: [UInt8] = [])
    -> [UInt8]
  {
    text(at: sentence.rawValue, first, second)
  }

  @inline(never) package func text(_ sentence: Sentence) -> [UInt8] { text(sentence, []) }

  /// The same, with a blank behind it, or another byte: what is typed in answer follows that.
  @inline(never)
  package func prompt(_ sentence: Sentence, _ place: [UInt8] = [], end: UInt8 = 0x20) -> [UInt8] {
    var text = text(sentence, place)
    text.append(end)
    return text
  }

  /// The sentence of this number, as `text` of a `Sentence`.
  package func text(at number: Int, _ first: [UInt8] = [], _ second: [UInt8] = []) -> [UInt8] {
    var (text, index, isSecond) = ([UInt8](), start(of: number), false)
    text.reserveCapacity(256)
    while self[index] != 0x0a {
      switch self[index] {
      case UInt8(ascii: "{"):
        text += isSecond ? second : first
        isSecond = true
        index = next(UInt8(ascii: "}"), from: index)
      case 1: text += first
      case 2: text += second
      case UInt8(ascii: "\\"):
        // `\n`
        text.append(0x0a)
        index += 1
      case let byte: text.append(byte)
      }
      index += 1
    }
    return text
  }

  /// Of the sentence in a line, behind `= `.
  private func start(of number: Int) -> Int {
    var index = 0
    for _ in 0..<number { index = next(0x0a, from: index) + 1 }
    return next(UInt8(ascii: "="), from: index) + 2
  }

  @inline(never) private func next(_ wanted: UInt8, from start: Int) -> Int {
    var index = start
    while index < count, self[index] != wanted { index += 1 }
    return index
  }

  private var count: Int { lines.isEmpty ? Sentence.english.utf8CodeUnitCount : lines.count }

  /// A line end behind the last one.
  @inline(never) private subscript(_ index: Int) -> UInt8 {
    guard index < count else { return 0x0a }
    // SAFETY: checked above.
    return lines.isEmpty ? unsafe Sentence.english.utf8Start[index] : lines[index]
  }
}
