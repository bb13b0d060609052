// Text as bytes: most operations of `String` bring Unicode tables, or tens of kilobytes, into the
// module. What goes through all bytes is libc's work.

import CLibcrypto

/// Whether a text has those bytes.
@inline(never) package func same(_ text: StaticString, _ bytes: [UInt8]) -> Bool {
  guard bytes.count == text.utf8CodeUnitCount else { return false }
  for index in 0..<bytes.count {
    // SAFETY: the index is below the length of the text.
    if unsafe bytes[index] != text.utf8Start[index] { return false }
  }
  return true
}

/// Whether both have the same bytes; at once, where `==` goes from one to the next.
@inline(never) package func same(_ a: [UInt8], _ b: [UInt8]) -> Bool {
  guard a.count == b.count else { return false }
  // SAFETY: both buffers have a.count bytes, and live for the call.
  return unsafe a.withUnsafeBytes { a in
    unsafe b.withUnsafeBytes { b in unsafe otp_same(a.baseAddress, b.baseAddress, a.count) == 1 }
  }
}

/// The bytes of a text.
package func bytes(of text: StaticString) -> [UInt8] {
  // SAFETY: the buffer is that of the text.
  unsafe copy(of: UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
}

/// A copy, made at once: what `[UInt8](_:)` makes of most collections goes byte by byte.
@inline(never) package func copy(of bytes: UnsafeRawBufferPointer) -> [UInt8] {
  // SAFETY: the new buffer has room for bytes.count bytes, and all of them are initialized.
  unsafe [UInt8](unsafeUninitializedCapacity: bytes.count) { target, count in
    unsafe UnsafeMutableRawBufferPointer(target).copyMemory(from: bytes)
    count = bytes.count
  }
}

/// What follows `prefix` in `bytes`; nil where they begin otherwise.
package func rest(of bytes: [UInt8], after prefix: StaticString) -> [UInt8]? {
  let count = prefix.utf8CodeUnitCount
  guard bytes.count >= count, same(prefix, [UInt8](bytes[..<count])) else { return nil }
  return [UInt8](bytes[count...])
}
