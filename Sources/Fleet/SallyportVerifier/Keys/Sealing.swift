import CSealing
package import OneTimePassword
import SallyportSupport
import SallyportSystem

/// A column whose values are sealed.
package enum Column: Sendable {
  case enrollment
  /// With the version of the row, so that an older value cannot stand under a newer one.
  case state(version: UInt64)
  /// The fleet's next key, of nobody.
  case key

  var name: StaticString {
    switch self {
    case .enrollment: "enrollment"
    case .state: "state"
    case .key: "next key"
    }
  }
}

/// Why a value cannot be opened.
package enum SealFault: Error, Equatable {
  /// Sealed with a key that this verifier does not have.
  case otherKey(UInt32)
  /// Not sealed for this user, column and version.
  case forged
  case crypto(CryptoError)
}

// What is sealed: the form (1 byte), the id of the key (4 bytes, little-endian), the nonce (12),
// the text encrypted with AES-256-GCM, and the tag (16).
extension FleetKey {
  private static let form: UInt8 = 1
  private static let nonceLength = 12
  private static let tagLength = 16
  private static let headLength = 5 + nonceLength

  /// Throws `crypto`.
  package func seal(_ text: Secret, _ column: Column, of name: [UInt8]) throws(SealFault)
    -> [UInt8]
  {
    do throws(CryptoError) {
      let present = present
      let (key, beside) = try context(present, column, of: name)
      let nonce = try present.nonce(of: text, beside, try random())
      var sealed = [Self.form] + Self.bytes(of: present.id) + nonce
      sealed += [UInt8](repeating: 0, count: text.count)
      var tag = [UInt8](repeating: 0, count: Self.tagLength)
      // SAFETY: the buffers live for the call; behind the head there are text.count bytes.
      let done = unsafe key.withBytes { key in
        unsafe text.withBytes { text in
          unsafe sealed.withUnsafeMutableBytes { output in
            unsafe gcm(
              encrypts: true, key, nonce: nonce, beside: beside, from: text,
              to: UnsafeMutableRawBufferPointer(rebasing: output[Self.headLength...]), &tag)
          }
        }
      }
      guard done else { throw .failed }
      return sealed + tag
    } catch {
      throw .crypto(error)
    }
  }

  /// Any bytes give what was sealed for this column and user, or an error.
  package func open(_ sealed: [UInt8], _ column: Column, of name: [UInt8]) throws(SealFault)
    -> Secret
  {
    let length = sealed.count - Self.headLength - Self.tagLength
    guard length >= 0, sealed[0] == Self.form else { throw .forged }
    let found = UInt32(truncatingIfNeeded: number(sealed[1..<5]))
    guard let one = self.key(found) else { throw .otherKey(found) }
    let (key, beside) = try rethrow(
      { () throws(CryptoError) in try context(one, column, of: name) }, as: SealFault.crypto)
    guard let text = Secret(count: length) else { throw .crypto(.outOfMemory) }
    var tag = [UInt8](sealed.suffix(Self.tagLength))
    let nonce = [UInt8](sealed[5..<Self.headLength])
    // SAFETY: the buffers live for the call, and `text` has as many bytes as are decrypted.
    let done = unsafe key.withBytes { key in
      unsafe sealed.withUnsafeBytes { sealed in
        unsafe text.withMutableBytes { text in
          unsafe gcm(
            encrypts: false, key, nonce: nonce, beside: beside,
            from: UnsafeRawBufferPointer(
              rebasing: sealed[Self.headLength..<Self.headLength + length]), to: text, &tag)
        }
      }
    }
    guard done else { throw .forged }
    return text
  }

  // MARK: parts

  /// The key of this user's column, and what is authenticated beside the text.
  private func context(_ one: SealingKey, _ column: Column, of name: [UInt8])
    throws(CryptoError) -> (Secret, [UInt8])
  {
    let whose = Self.counted(OneTimePassword.bytes(of: column.name)) + Self.counted(name)
    let key = try one.derive(whose)
    let beside = [Self.form] + whose
    switch column {
    case .enrollment, .key: return (key, beside)
    case .state(let version): return (key, beside + Self.counted(number(version)))
    }
  }

  private func random() throws(CryptoError) -> [UInt8] {
    guard let random = try? Random.secret(count: 16) else { throw .failed }
    return random.bytes(in: 0..<16)
  }

  /// With its length before it, in 4 bytes.
  static func counted(_ text: [UInt8]) -> [UInt8] {
    bytes(of: UInt32(truncatingIfNeeded: text.count)) + text
  }

  static func bytes(of number: UInt32) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: number >> UInt32(8 * $0)) }
  }
}

extension SealingKey {
  /// Of no two texts the same, neither of two verifiers that seal one version at once, nor where a
  /// machine that is put back has the same random again (docs/fleet-format.md).
  func nonce(of text: Secret, _ beside: [UInt8], _ random: [UInt8]) throws(CryptoError) -> [UInt8] {
    let parts = [OneTimePassword.bytes(of: "nonce"), beside, random, try SHA256.digest(text)]
    return try derive(parts.flatMap { FleetKey.counted($0) }).bytes(in: 0..<12)
  }
}

/// AES-256-GCM by libcrypto. When it decrypts it compares `tag`; false: they differ.
@unsafe func gcm(
  encrypts: Bool, _ key: UnsafeRawBufferPointer, nonce: [UInt8], beside: [UInt8],
  from input: UnsafeRawBufferPointer, to output: UnsafeMutableRawBufferPointer,
  _ tag: inout [UInt8]
) -> Bool {
  guard let key = key.baseAddress, let from = input.baseAddress, let to = output.baseAddress,
    output.count == input.count
  else { return false }
  return unsafe otp_gcm(
    encrypts ? 1 : 0, key.assumingMemoryBound(to: UInt8.self), nonce, beside, beside.count,
    from.assumingMemoryBound(to: UInt8.self), input.count,
    to.assumingMemoryBound(to: UInt8.self), &tag) == 1
}

/// The eight bytes of a number, little-endian.
func number(_ value: UInt64) -> [UInt8] {
  (0..<8).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * $0)) }
}

/// The number of up to eight such bytes.
func number(_ bytes: some Collection<UInt8>) -> UInt64 {
  bytes.prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }
}
