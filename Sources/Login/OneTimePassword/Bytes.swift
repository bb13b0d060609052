// Text as bytes: most operations of `String` bring Unicode tables, or tens of kilobytes, into the
// module. What goes through all bytes is libc's work.

import CLibcrypto

/// Whether a text has those bytes.
@inline(never) package func same(_ text: StaticString, _ bytes: [UInt8]) -> Bool {
  guard bytes.count == text.utf8CodeUnitCount else { return false }
  // SAFETY: both have bytes.count bytes.
  return unsafe bytes.withUnsafeBytes {
    unsafe otp_same($0.baseAddress, text.utf8Start, $0.count) == 1
  }
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
  // An array made empty writes its count into the one that all empty arrays share.
  if unsafe bytes.isEmpty { return [] }
  // SAFETY: the new buffer has room for bytes.count bytes, and all of them are initialized.
  return unsafe [UInt8](unsafeUninitializedCapacity: bytes.count) { target, count in
    unsafe UnsafeMutableRawBufferPointer(target).copyMemory(from: bytes)
    count = bytes.count
  }
}

/// What follows `prefix` in `bytes`; nil where they begin otherwise.
package func rest(of bytes: [UInt8], after prefix: StaticString) -> [UInt8]? {
  let count = prefix.utf8CodeUnitCount
  guard bytes.count >= count else { return nil }
  // SAFETY: both have `count` bytes.
  return unsafe bytes.withUnsafeBytes { bytes in
    guard unsafe otp_same(bytes.baseAddress, prefix.utf8Start, count) == 1 else { return nil }
    return unsafe copy(of: UnsafeRawBufferPointer(rebasing: bytes[count...]))
  }
}

/// `a + b`, in one allocation.
@inline(never) package func joined(_ a: [UInt8], _ b: [UInt8]) -> [UInt8] {
  if a.isEmpty { return b }
  // SAFETY: the new buffer has room for both, and all of it is initialized.
  return unsafe [UInt8](unsafeUninitializedCapacity: a.count + b.count) { target, count in
    let target = UnsafeMutableRawBufferPointer(target)
    unsafe a.withUnsafeBytes { unsafe target.copyMemory(from: $0) }
    unsafe b.withUnsafeBytes {
      unsafe UnsafeMutableRawBufferPointer(rebasing: target[a.count...]).copyMemory(from: $0)
    }
    count = a.count + b.count
  }
}
