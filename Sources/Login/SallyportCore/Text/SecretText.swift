package import OneTimePassword

/// A text of bounded length in one buffer, which is wiped; a growing array would leave copies
/// behind.
package struct SecretText {
  private let buffer: Secret?
  private var length = 0
  private var isWhole = true

  /// `capacity` is the longest text in bytes.
  package init(capacity: Int) { buffer = Secret(count: capacity) }

  /// A line `key = value`.
  @inline(never) package mutating func add(_ key: StaticString, _ value: [UInt8]) {
    add(key)
    add(" = ")
    for byte in value { put(byte) }
    add("\n")
  }

  /// The same line; does nothing but mark the text as incomplete if `value` is nil because memory
  /// is short.
  mutating func add(_ key: StaticString, _ value: Secret?) {
    guard let value else {
      isWhole = false
      return
    }
    add(key)
    add(" = ")
    add(value)
    add("\n")
  }

  package mutating func add(_ text: Secret) {
    for index in 0..<text.count { put(text[index]) }
  }

  @inline(never) package mutating func add(_ text: StaticString) {
    // SAFETY: the pointer and the count are those of one static string.
    for index in 0..<text.utf8CodeUnitCount { put(unsafe text.utf8Start[index]) }
  }

  package mutating func add(_ text: [UInt8]) {
    for byte in text { put(byte) }
  }

  /// nil if memory was short or the text did not fit.
  package func finish() -> Secret? { isWhole ? buffer?.slice(0..<length) : nil }

  @inline(never) package mutating func put(_ byte: UInt8) {
    guard let buffer, length < buffer.count else {
      isWhole = false
      return
    }
    buffer.set(length, to: byte)
    length += 1
  }
}
