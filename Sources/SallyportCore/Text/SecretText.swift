package import OneTimePassword

/// A text of bounded length in one wiped buffer: an array that grows leaves copies behind.
package struct SecretText {
  private let buffer: Secret?
  private var length = 0
  private var isWhole = true

  /// `capacity`: the most bytes that the text can have.
  package init(capacity: Int) { buffer = Secret(count: capacity) }

  mutating func add(_ key: StaticString, _ value: some Collection<UInt8>) {
    add(key)
    add(" = ")
    for byte in value { put(byte) }
    add("\n")
  }

  mutating func add(_ key: StaticString, _ value: StaticString) {
    add(key)
    add(" = ")
    add(value)
    add("\n")
  }

  mutating func add(_ key: StaticString, _ value: Secret?) {
    guard let value else {
      isWhole = false
      return
    }
    add(key)
    add(" = ")
    for index in 0..<value.count { put(value[index]) }
    add("\n")
  }

  package mutating func add(_ text: StaticString) {
    // SAFETY: the pointer and the count are those of one static string.
    for index in 0..<text.utf8CodeUnitCount { put(unsafe text.utf8Start[index]) }
  }

  /// nil when out of memory or the text did not fit.
  package func finish() -> Secret? { isWhole ? buffer?.slice(0..<length) : nil }

  package mutating func put(_ byte: UInt8) {
    guard let buffer, length < buffer.count else {
      isWhole = false
      return
    }
    // SAFETY: the index was compared with the count.
    unsafe buffer.withMutableBytes { unsafe $0[length] = byte }
    length += 1
  }
}
