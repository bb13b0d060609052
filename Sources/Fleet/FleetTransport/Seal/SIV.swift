import CSealing
import OneTimePassword

/// AES-256-SIV (RFC 5297) by libcrypto. Of the same text with the same key it gives the same: what
/// is beside the text has to differ.
enum SIV {
  static let (keyLength, tagLength) = (64, 16)

  /// Whether this libcrypto has it: one that has only what FIPS 140 knows does not.
  static let isThere: Bool = {
    guard let key = Secret(count: keyLength), let text = Secret(count: 1) else { return false }
    return seal(text, key, beside: [0]) != nil
  }()

  /// The tag, and behind it the text encrypted. Neither may be empty. nil: libcrypto cannot, or
  /// memory is short.
  static func seal(_ text: Secret, _ key: Secret, beside: [UInt8]) -> Secret? {
    var tag = [UInt8](repeating: 0, count: tagLength)
    guard let sealed = Secret(count: tagLength + text.count),
      run(encrypts: true, key, beside, from: (text, 0), to: (sealed, tagLength), &tag)
    else { return nil }
    for (index, byte) in tag.enumerated() { sealed.set(index, to: byte) }
    return sealed
  }

  /// The text of what `seal` gave, which stands in `bytes` from `start` on to the end. nil for
  /// anything else.
  static func open(_ bytes: Secret, from start: Int, _ key: Secret, beside: [UInt8]) -> Secret? {
    let place = start + tagLength
    guard place < bytes.count, let text = Secret(count: bytes.count - place) else { return nil }
    var tag = bytes.bytes(in: start..<place)
    return run(encrypts: false, key, beside, from: (bytes, place), to: (text, 0), &tag)
      ? text : nil
  }

  /// From and to the place in each up to its end.
  private static func run(
    encrypts: Bool, _ key: Secret, _ beside: [UInt8], from input: (Secret, Int),
    to output: (Secret, Int), _ tag: inout [UInt8]
  ) -> Bool {
    let count = input.0.count - input.1
    guard key.count == keyLength, count == output.0.count - output.1 else { return false }
    // SAFETY: the buffers live for the call, and hold `count` bytes from their places on.
    return unsafe key.withBytes { key in
      unsafe input.0.withBytes { from in
        unsafe output.0.withMutableBytes { to in
          guard let key = key.baseAddress, let from = from.baseAddress, let to = to.baseAddress
          else { return false }
          return unsafe otp_siv(
            encrypts ? 1 : 0, key.assumingMemoryBound(to: UInt8.self), beside, beside.count,
            (from + input.1).assumingMemoryBound(to: UInt8.self), count,
            (to + output.1).assumingMemoryBound(to: UInt8.self), &tag) == 1
        }
      }
    }
  }
}
