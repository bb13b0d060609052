import CLibcrypto

/// Bytes that are wiped (explicit_bzero) when the last reference goes. Never grows, so that no
/// copy of its content is left behind by moving it.
///
/// A class, because arrays hold it; Sendable, because its content does not change once it is
/// shared: `withMutableBytes` is for the code that has just made it, `wipe` for the code that is
/// done with it.
@safe package final class Secret: @unchecked Sendable {
  private let base: UnsafeMutableRawPointer

  /// The number of bytes; stays the same for life.
  package let count: Int

  /// `count` zero bytes; nil if `count` is negative or out of memory.
  package init?(count: Int) {
    // SAFETY: the memory is `count` bytes (one for an empty secret) and owned by this object.
    guard count >= 0, let base = unsafe otp_allocate(count) else { return nil }
    unsafe self.base = base
    self.count = count
  }

  /// A copy of `bytes`; nil when out of memory.
  package convenience init?(_ bytes: some Collection<UInt8>) {
    self.init(count: bytes.count)
    var index = 0
    for byte in bytes {
      set(index, to: byte)
      index += 1
    }
  }

  /// A copy of what the buffer holds; nil when out of memory.
  package convenience init?(copying bytes: UnsafeRawBufferPointer) {
    self.init(count: bytes.count)
    // SAFETY: both have bytes.count bytes, and this one is fresh: they do not overlap.
    unsafe UnsafeMutableRawBufferPointer(start: base, count: count).copyMemory(from: bytes)
  }

  deinit {
    // SAFETY: `base` came from otp_allocate(count) and nobody else can hold it any more.
    unsafe otp_release(base, count)
  }

  /// The byte at `index`; 0 when out of range. Never traps.
  package subscript(_ index: Int) -> UInt8 {
    guard index >= 0, index < count else { return 0 }
    // SAFETY: checked above.
    return unsafe base.load(fromByteOffset: index, as: UInt8.self)
  }

  /// Lends the bytes for the length of the call. The pointer must not leave `body`.
  package func withBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
    // SAFETY: `count` bytes belong to this object, which outlives the call.
    withExtendedLifetime(self) {
      unsafe body(UnsafeRawBufferPointer(start: base, count: count))
    }
  }

  /// Lends the bytes for writing, for the length of the call. Only before the secret is shared
  /// with another thread. The pointer must not leave `body`.
  package func withMutableBytes<R>(_ body: (UnsafeMutableRawBufferPointer) -> R) -> R {
    // SAFETY: `count` bytes belong to this object, which outlives the call.
    withExtendedLifetime(self) {
      unsafe body(UnsafeMutableRawBufferPointer(start: base, count: count))
    }
  }

  /// The bytes in `range`, for what is no secret, without those that are not inside.
  @inline(never) package func bytes(in range: Range<Int>) -> [UInt8] {
    let inside = range.clamped(to: 0..<count)
    // SAFETY: cut to what is there.
    return unsafe withBytes { unsafe copy(of: UnsafeRawBufferPointer(rebasing: $0[inside])) }
  }

  /// Where `byte` stands first in `range`; nil where it does not.
  @inline(never) package func first(_ byte: UInt8, in range: Range<Int>) -> Int? {
    // SAFETY: the range is cut to what is there.
    unsafe withBytes { bytes in
      let inside = range.clamped(to: 0..<count)
      let found = unsafe otp_first(
        bytes.baseAddress?.advanced(by: inside.lowerBound), byte, inside.count)
      return found < inside.count ? inside.lowerBound &+ found : nil
    }
  }

  /// Whether the bytes in `range` are those of `text`, for what is no secret.
  @inline(never) package func holds(_ text: StaticString, in range: Range<Int>) -> Bool {
    guard range.count == text.utf8CodeUnitCount, range.lowerBound >= 0, range.upperBound <= count
    else { return false }
    // SAFETY: both have range.count bytes.
    return unsafe withBytes {
      unsafe otp_same($0.baseAddress?.advanced(by: range.lowerBound), text.utf8Start, range.count)
        == 1
    }
  }

  /// A copy of the bytes in `range`; nil if the range is not inside, or when out of memory.
  package func slice(_ range: Range<Int>) -> Secret? {
    guard range.lowerBound >= 0, range.upperBound <= count else { return nil }
    // SAFETY: checked above.
    return unsafe withBytes {
      unsafe Secret(copying: UnsafeRawBufferPointer(rebasing: $0[range]))
    }
  }

  /// Makes every byte zero now; the count stays.
  package func wipe() {
    // SAFETY: `count` bytes belong to this object.
    unsafe otp_wipe(base, count)
  }

  /// Fills a secret that is being built; does nothing when out of range.
  package func set(_ index: Int, to byte: UInt8) {
    guard index >= 0, index < count else { return }
    // SAFETY: checked above.
    unsafe base.storeBytes(of: byte, toByteOffset: index, as: UInt8.self)
  }
}
