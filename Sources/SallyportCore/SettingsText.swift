package import OneTimePassword

/// One meaningful line of a `key = value` text with `[sections]` and `#` comments.
package enum SettingsLine {
  case section([UInt8], number: Int)
  /// The value stays where it is: it may be a secret. `value` is a range of the text's bytes.
  case setting(key: [UInt8], value: Range<Int>, number: Int)
}

/// Why a settings text cannot be used; with the line's number, from 1.
package struct SettingsError: Error, Equatable {
  package let line: Int
  package let problem: Problem

  package init(line: Int, _ problem: Problem) {
    self.line = line
    self.problem = problem
  }

  package enum Problem: Equatable, Sendable {
    /// The text is longer than 64 KiB.
    case textTooLong
    /// The line is neither `key = value`, `[section]`, comment nor blank.
    case notASetting
    case unknownSection
    case unknownKey
    case duplicateKey
    /// This key is missing; `line` is where its section starts.
    case missing(StaticString)
    /// The value of this key is not of the wanted form.
    case value(StaticString, wanted: StaticString)
    /// More of these than there may be.
    case tooMany(StaticString)
    /// Two of a kind that must differ in this.
    case notUnique(StaticString)
    case outOfMemory

    package static func == (a: Problem, b: Problem) -> Bool {
      switch (a, b) {
      case (.textTooLong, .textTooLong), (.notASetting, .notASetting),
        (.unknownSection, .unknownSection), (.unknownKey, .unknownKey),
        (.duplicateKey, .duplicateKey), (.outOfMemory, .outOfMemory):
        return true
      case (.missing(let a), .missing(let b)), (.tooMany(let a), .tooMany(let b)),
        (.notUnique(let a), .notUnique(let b)):
        return same(a, b)
      case (.value(let a, let x), .value(let b, let y)):
        return same(a, b) && same(x, y)
      case _:
        return false
      }
    }
  }
}

func same(_ a: StaticString, _ b: StaticString) -> Bool {
  a.withUTF8Buffer { a in b.withUTF8Buffer { b in unsafe a.elementsEqual(b) } }
}

func same(_ a: StaticString, _ b: [UInt8]) -> Bool {
  a.withUTF8Buffer { a in unsafe a.elementsEqual(b) }
}

/// Splits a text into its meaningful lines; total for any bytes.
package func settingsLines(of text: Secret) throws(SettingsError) -> [SettingsLine] {
  guard text.count <= 65536 else { throw SettingsError(line: 1, .textTooLong) }
  var lines: [SettingsLine] = []
  var (start, number) = (0, 1)
  while start < text.count {
    var end = start
    while end < text.count, text[end] != UInt8(ascii: "\n") { end += 1 }
    if let line = try settingsLine(text, trimmed(text, start..<end), number) { lines.append(line) }
    start = end + 1
    number += 1
  }
  return lines
}

private func settingsLine(_ text: Secret, _ range: Range<Int>, _ number: Int)
  throws(SettingsError) -> SettingsLine?
{
  guard let first = range.first.map({ text[$0] }), first != UInt8(ascii: "#") else { return nil }
  if first == UInt8(ascii: "[") {
    guard range.count > 2, text[range.upperBound - 1] == UInt8(ascii: "]") else {
      throw SettingsError(line: number, .notASetting)
    }
    let name = trimmed(text, range.lowerBound + 1..<range.upperBound - 1)
    return .section(name.map { text[$0] }, number: number)
  }
  guard let equals = range.first(where: { text[$0] == UInt8(ascii: "=") }) else {
    throw SettingsError(line: number, .notASetting)
  }
  let key = trimmed(text, range.lowerBound..<equals)
  guard (1...64).contains(key.count) else { throw SettingsError(line: number, .notASetting) }
  return .setting(
    key: key.map { text[$0] }, value: trimmed(text, equals + 1..<range.upperBound), number: number)
}

private func trimmed(_ text: Secret, _ range: Range<Int>) -> Range<Int> {
  func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
  var (start, end) = (range.lowerBound, range.upperBound)
  while start < end, isBlank(text[start]) { start += 1 }
  while end > start, isBlank(text[end - 1]) { end -= 1 }
  return start..<end
}
