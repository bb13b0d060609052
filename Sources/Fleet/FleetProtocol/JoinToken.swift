package import OneTimePassword
import SallyportCore

/// What an administrator takes from a verifier to a machine that becomes a host of the fleet: the
/// verifiers' addresses and key, and a secret that works once.
///
/// As bytes: form (1 byte, 1), pin (32), secret (16), how many addresses (1), each after its
/// length, and the first four bytes of the SHA-256 of all that, so that half a token is recognized.
/// As text: `sallyport-` and the bytes in base64url (RFC 4648 §5) without padding.
package struct JoinToken: Sendable {
  /// The SHA-256 of the verifiers' public key.
  package let pin: [UInt8]
  package let secret: Secret
  /// Numeric, with their ports.
  package let verifiers: [[UInt8]]

  package static let pinLength = 32
  package static let secretLength = 16
  package static let mostVerifiers = 8
  package static let longestAddress = 64
  /// Of its text, in bytes.
  package static let longest = 1000
  private static let form: UInt8 = 1
  private static let headLength = 2 + pinLength + secretLength
  private static let checkLength = 4
  private static let prefix: StaticString = "sallyport-"

  /// Why a text is no token.
  package enum Flaw: Error, Equatable, Sendable {
    /// It does not begin as one, or has other characters.
    case notAToken
    /// A part of it is missing, or was typed wrongly.
    case notWhole
    /// Of a later version.
    case otherForm
    case crypto(CryptoError)
  }

  /// nil where a value has no place in a token.
  package init?(pin: [UInt8], secret: Secret, verifiers: [[UInt8]]) {
    guard pin.count == JoinToken.pinLength, secret.count == JoinToken.secretLength,
      (1...JoinToken.mostVerifiers).contains(verifiers.count)
    else { return nil }
    for address in verifiers where !isAddressText(address) { return nil }
    (self.pin, self.secret, self.verifiers) = (pin, secret, verifiers)
  }

  /// The text, without a line end.
  package func written() throws(CryptoError) -> Secret {
    var fields = Fields(writing: JoinToken.longest)
    _ = JoinToken.pass(self, &fields)
    guard let bytes = fields.written else { throw .outOfMemory }
    _ = fields.bytes(try JoinToken.check(bytes), JoinToken.checkLength)
    guard let whole = fields.written else { throw .outOfMemory }
    var text = SecretText(capacity: JoinToken.longest)
    text.add(JoinToken.prefix)
    text.add(base64: whole)
    guard let text = text.finish() else { throw .outOfMemory }
    return text
  }

  /// Total: any text gives a token that `written` gives, or a flaw. Blanks around it are ignored.
  package static func read(_ text: Secret) throws(Flaw) -> JoinToken {
    var range = 0..<text.count
    while let first = range.first, isSpace(text[first]) { range.removeFirst() }
    while let last = range.last, isSpace(text[last]) { range.removeLast() }
    let start = range.lowerBound + prefix.utf8CodeUnitCount
    guard start <= range.upperBound, text.holds(prefix, in: range.lowerBound..<start) else {
      throw .notAToken
    }
    guard range.count <= longest, let whole = text.base64(in: start..<range.upperBound) else {
      throw .notAToken
    }
    let end = whole.count - checkLength
    guard end > headLength, let bytes = whole.slice(0..<end) else { throw .notWhole }
    if whole[0] != form { throw .otherForm }
    let expected: [UInt8]
    do throws(CryptoError) {
      expected = try check(bytes)
    } catch {
      throw .crypto(error)
    }
    var fields = Fields(reading: bytes)
    guard expected == whole.bytes(in: end..<whole.count), let token = pass(nil, &fields),
      fields.isWhole
    else { throw .notWhole }
    return token
  }

  private static func pass(_ token: Self?, _ fields: inout Fields) -> Self? {
    fields.constant(form)
    let pin = fields.bytes(token?.pin, pinLength)
    let secret = fields.secret(token?.secret, secretLength)
    let verifiers = fields.list(token?.verifiers, 1...mostVerifiers) { $0.address($1) }
    return secret.flatMap { JoinToken(pin: pin, secret: $0, verifiers: verifiers) }
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (9...13).contains(byte) }

  /// The secret has 128 bits: its digest does not reveal it.
  private static func check(_ bytes: Secret) throws(CryptoError) -> [UInt8] {
    [UInt8](try SHA256.digest(bytes).prefix(checkLength))
  }
}

/// Whether a text can be a numeric address with its port: 1 to 64 characters of those that one has.
func isAddressText(_ text: [UInt8]) -> Bool {
  guard (1...JoinToken.longestAddress).contains(text.count) else { return false }
  for byte in text {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: ":"), UInt8(ascii: "a")...UInt8(ascii: "f"),
      UInt8(ascii: "A")...UInt8(ascii: "F"), UInt8(ascii: "."), UInt8(ascii: "["),
      UInt8(ascii: "]"):
      continue
    case _: return false
    }
  }
  return true
}

extension SecretText {
  /// The bytes in base64url, without padding.
  fileprivate mutating func add(base64 bytes: Secret) {
    var index = 0
    while index < bytes.count {
      let three =
        UInt32(bytes[index]) << 16 | UInt32(bytes[index + 1]) << 8
        | UInt32(bytes[index + 2])
      let count = min(bytes.count - index, 3) + 1
      for place in 0..<count { put(character(UInt8(three >> UInt32(18 - 6 * place) & 63))) }
      index += 3
    }
  }

  private func character(_ value: UInt8) -> UInt8 {
    switch value {
    case 0..<26: UInt8(ascii: "A") + value
    case 26..<52: UInt8(ascii: "a") + (value - 26)
    case 52..<62: UInt8(ascii: "0") + (value - 52)
    case 62: UInt8(ascii: "-")
    case _: UInt8(ascii: "_")
    }
  }
}

extension Secret {
  /// The bytes that base64url without padding spells; nil for anything else, and where bits are set
  /// that belong to no byte.
  fileprivate func base64(in range: Range<Int>) -> Secret? {
    guard range.count % 4 != 1, let bytes = Secret(count: range.count * 3 / 4) else { return nil }
    var (bits, count, place): (UInt32, UInt32, Int) = (0, 0, 0)
    for index in range {
      guard let value = Secret.value(self[index]) else { return nil }
      bits = bits << 6 | value
      count += 6
      if count >= 8 {
        count -= 8
        bytes.set(place, to: UInt8(truncatingIfNeeded: bits >> count))
        place += 1
        bits &= 1 << count - 1
      }
    }
    return bits == 0 ? bytes : nil
  }

  private static func value(_ character: UInt8) -> UInt32? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - UInt8(ascii: "a")) + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - UInt8(ascii: "0")) + 52
    case UInt8(ascii: "-"): 62
    case UInt8(ascii: "_"): 63
    case _: nil
    }
  }
}
