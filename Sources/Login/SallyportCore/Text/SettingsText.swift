package import OneTimePassword

/// One line of a `key = value` text with `[sections]` and `#` comments, as the ranges of its parts.
/// They are not copied, because a value may be a secret.
package enum SettingsLine {
  case section(Range<Int>)
  case setting(key: Range<Int>, value: Range<Int>)
}

/// Why a settings text cannot be used, with the line number, counted from 1.
package struct SettingsError: Error, Equatable {
  package let line: Int
  package let problem: Problem
  /// The text found there; empty if it may be a secret.
  package let found: [UInt8]

  package init(line: Int, _ problem: Problem, found: [UInt8] = []) {
    self.line = line
    self.problem = problem
    self.found = found
  }

  /// What is wrong with the line, or the whole text.
  package indirect enum Problem: Equatable, Sendable {
    /// The text is longer than 64 KiB.
    case textTooLong
    /// The line is neither `key = value`, `[section]`, comment nor blank.
    case notASetting
    case unknownSection
    case unknownKey
    /// An enrollment that is being moved to a fleet (`Enrollment.markKey`).
    case moving
    case duplicateKey
    /// This key is missing; `line` is the start of its section.
    case missing(StaticString)
    /// The value of this key does not have the expected form.
    case value(StaticString, wanted: StaticString)
    /// More of these than are allowed.
    case tooMany(StaticString)
    /// Two of a kind with the same value of this, which must differ.
    case notUnique(StaticString)
    case outOfMemory

    package static func == (a: Problem, b: Problem) -> Bool {
      switch (a, b) {
      case (.textTooLong, .textTooLong), (.notASetting, .notASetting),
        (.unknownSection, .unknownSection), (.unknownKey, .unknownKey), (.moving, .moving),
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

private func same(_ a: StaticString, _ b: StaticString) -> Bool {
  a.withUTF8Buffer { a in b.withUTF8Buffer { b in unsafe a.elementsEqual(b) } }
}

/// Splits a text into lines that are neither blank nor comments. Accepts any bytes.
package struct SettingsScanner {
  /// In bytes: the longest text that is accepted.
  package static let longestText = 65536

  /// The number of the line that `next` last returned, counted from 1.
  package private(set) var number = 0

  /// The line that `next` last read, right or wrong.
  private(set) var line = 0..<0

  private let text: Secret
  private var start = 0

  package init(_ text: Secret) throws(SettingsError) {
    guard text.count <= Self.longestText else { throw SettingsError(line: 1, .textTooLong) }
    self.text = text
  }

  /// Returns the next line that is neither blank nor a comment; nil at the end.
  @inline(never) package mutating func next() throws(SettingsError) -> SettingsLine? {
    while start < text.count {
      let end = text.first(UInt8(ascii: "\n"), in: start..<text.count) ?? text.count
      line = trimmed(start..<end)
      start = end + 1
      number += 1
      if !line.isEmpty, text[line.lowerBound] != UInt8(ascii: "#") { return try parts(of: line) }
    }
    return nil
  }

  private func parts(of line: Range<Int>) throws(SettingsError) -> SettingsLine {
    if text[line.lowerBound] == UInt8(ascii: "["), line.count > 2,
      text[line.upperBound - 1] == UInt8(ascii: "]")
    {
      return .section(trimmed(line.lowerBound + 1..<line.upperBound - 1))
    }
    guard text[line.lowerBound] != UInt8(ascii: "["),
      let equals = text.first(UInt8(ascii: "="), in: line)
    else { throw SettingsError(line: number, .notASetting) }
    let key = trimmed(line.lowerBound..<equals)
    guard (1...64).contains(key.count) else { throw SettingsError(line: number, .notASetting) }
    return .setting(key: key, value: trimmed(equals + 1..<line.upperBound))
  }

  @inline(never) private func trimmed(_ range: Range<Int>) -> Range<Int> {
    // SAFETY: the range is limited to the bytes that exist.
    unsafe text.withBytes { bytes in
      let inside = range.clamped(to: 0..<bytes.count)
      var (start, end) = (inside.lowerBound, inside.upperBound)
      while start < end, isBlank(unsafe bytes[start]) { start += 1 }
      while end > start, isBlank(unsafe bytes[end - 1]) { end -= 1 }
      return start..<end
    }
  }
}

func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
