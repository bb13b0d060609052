// Text as bytes: most operations of `String` bring Unicode tables, or tens of kilobytes, into the
// module.

/// Whether a text has those bytes.
@inline(never) package func same(_ text: StaticString, _ bytes: [UInt8]) -> Bool {
  guard bytes.count == text.utf8CodeUnitCount else { return false }
  for index in 0..<bytes.count {
    // SAFETY: the index is below the length of the text.
    if unsafe bytes[index] != text.utf8Start[index] { return false }
  }
  return true
}

/// The bytes of a text.
@inline(never) package func bytes(of text: StaticString) -> [UInt8] {
  var bytes: [UInt8] = []
  bytes.reserveCapacity(text.utf8CodeUnitCount)
  // SAFETY: the index is below the length of the text.
  for index in 0..<text.utf8CodeUnitCount { bytes.append(unsafe text.utf8Start[index]) }
  return bytes
}

/// What follows `prefix` in `bytes`; nil where they begin otherwise.
package func rest(of bytes: [UInt8], after prefix: StaticString) -> [UInt8]? {
  let count = prefix.utf8CodeUnitCount
  guard bytes.count >= count, same(prefix, [UInt8](bytes[..<count])) else { return nil }
  return [UInt8](bytes[count...])
}
