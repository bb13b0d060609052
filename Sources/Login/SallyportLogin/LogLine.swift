import SallyportCore

/// One line of the log, or of what people are told, as it grows. Bytes, because the `String`
/// operations that would put it together are a fifth of the module.
package struct LogLine: Sendable {
  /// UTF-8, without a line end.
  package private(set) var bytes: [UInt8] = []

  /// With room for most lines: an array that grows is copied each time.
  @inline(never) package init(_ text: StaticString) {
    bytes.reserveCapacity(256)
    add(text)
  }

  /// A text of ours.
  @inline(never) package mutating func add(_ text: StaticString) {
    // SAFETY: the pointer and the count are those of one static string.
    for index in 0..<text.utf8CodeUnitCount { bytes.append(unsafe text.utf8Start[index]) }
  }

  /// A text that is fit for a log as it is.
  @inline(never) package mutating func add(_ text: [UInt8]) { bytes += text }

  /// A value that users control: escaped and cut, and never like a further field.
  package mutating func add(field text: [UInt8]) { add(escaped(text, asField: true)) }

  /// In decimal.
  @inline(never) package mutating func add(_ number: UInt64) {
    if number > 9 { add(number / 10) }
    bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number % 10))
  }

  /// In decimal.
  package mutating func add(_ number: Int) {
    if number < 0 { add("-") }
    add(UInt64(number.magnitude))
  }

  /// A text with a number behind it.
  package mutating func add(_ text: StaticString, _ number: Int) {
    add(text)
    add(number)
  }
}
