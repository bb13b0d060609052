import CSealing
package import OneTimePassword
import SallyportCore
import SallyportSystem

/// The fleet's key and the verifiers' identity, encrypted under a passphrase: the only form in
/// which they leave a verifier, as a backup and for the next verifier.
///
/// As bytes: form (1 byte, 1), the base-two logarithm of scrypt's N (1), salt (16), nonce (12), and
/// encrypted with AES-256-GCM, beside all of that: the length of the first file (2), the first
/// file, the second; behind it the tag (16). The key is scrypt's, with r = 8 and p = 1. As text: in
/// hexadecimal, between two lines that say what it is, so that it can be typed from paper.
package struct KeyBackup: Sendable {
  /// The files `key`, with `key.next` behind it where there is one, and `identity.key`.
  package let key: Secret
  package let identity: Secret

  /// 128 MiB, and half a second.
  package static let usualCost: UInt8 = 17
  private static let costs: ClosedRange<UInt8> = 10...20
  private static let form: UInt8 = 1
  private static let (saltLength, nonceLength, tagLength) = (16, 12, 16)
  private static let headLength = 2 + saltLength + nonceLength
  private static let begin = "-----BEGIN SALLYPORT FLEET KEY-----"
  private static let end = "-----END SALLYPORT FLEET KEY-----"

  /// Why a text is no copy.
  package enum Fault: Error, Equatable, Sendable {
    /// Not a copy, or incomplete.
    case notACopy
    /// Made by a later version.
    case otherForm
    /// Wrong passphrase, or the copy was modified.
    case wrongPassphrase
    /// libcrypto failed, or memory is short.
    case failed
  }

  package init(key: Secret, identity: Secret) { (self.key, self.identity) = (key, identity) }

  /// The text, whose lines end with a newline.
  package func sealed(under passphrase: Secret, cost: UInt8 = usualCost) throws(Fault) -> [UInt8] {
    var inside = SecretText(capacity: 2 + key.count + identity.count)
    inside.put(UInt8(truncatingIfNeeded: key.count))
    inside.put(UInt8(truncatingIfNeeded: key.count >> 8))
    inside.add(key)
    inside.add(identity)
    guard let text = inside.finish(), let output = Secret(count: text.count),
      let random = try? Random.secret(count: Self.headLength - 2)
    else { throw .failed }
    let head = [Self.form, cost] + random.bytes(in: 0..<random.count)
    var tag = [UInt8](repeating: 0, count: Self.tagLength)
    let key = try Self.derive(passphrase, head)
    guard Self.gcm(encrypts: true, key, head, from: text, to: output, &tag) else { throw .failed }
    return Self.armored(head + output.bytes(in: 0..<output.count) + tag)
  }

  /// Total: any text gives a copy that `sealed` gives, or a fault. What is before and behind the
  /// two lines is ignored.
  package static func open(_ text: [UInt8], under passphrase: Secret) throws(Fault) -> KeyBackup {
    guard let whole = bytes(in: text), whole.count >= headLength + tagLength + 2 else {
      throw .notACopy
    }
    guard whole[0] == form, costs.contains(whole[1]) else { throw .otherForm }
    let head = [UInt8](whole.prefix(headLength))
    var tag = [UInt8](whole.suffix(tagLength))
    guard let sealed = Secret(whole[headLength..<whole.count - tagLength]),
      let inside = Secret(count: sealed.count)
    else { throw .failed }
    let key = try derive(passphrase, head)
    guard gcm(encrypts: false, key, head, from: sealed, to: inside, &tag) else {
      throw .wrongPassphrase
    }
    let length = Int(inside[0]) | Int(inside[1]) << 8
    guard let key = inside.slice(2..<2 + length),
      let identity = inside.slice(2 + length..<inside.count)
    else { throw .notACopy }
    return KeyBackup(key: key, identity: identity)
  }

  // MARK: the text

  private static func armored(_ bytes: [UInt8]) -> [UInt8] {
    let digits = hexadecimal(bytes)
    let lines = stride(from: 0, to: digits.count, by: 64).map { start in
      String(decoding: digits[start..<min(start + 64, digits.count)], as: UTF8.self)
    }
    return Array(([begin] + lines + [end]).map { $0 + "\n" }.joined().utf8)
  }

  private static func bytes(in text: [UInt8]) -> [UInt8]? {
    let lines = String(decoding: text, as: UTF8.self).split(whereSeparator: \.isWhitespace)
    // The two lines have spaces, so each is several words.
    let words = lines.map(String.init)
    let (first, last) = (begin.split(separator: " "), end.split(separator: " "))
    guard let start = place(of: first.map(String.init), in: words),
      let stop = place(of: last.map(String.init), in: words), start + first.count <= stop
    else { return nil }
    let digits = words[start + first.count..<stop].joined().utf8
    return Secret(digits)?.octets(digits.count / 2, spelledIn: 0..<digits.count)
  }

  private static func place(of line: [String], in words: [String]) -> Int? {
    guard words.count >= line.count else { return nil }
    return (0...words.count - line.count).first { Array(words[$0..<$0 + line.count]) == line }
  }

  // MARK: libcrypto

  private static func derive(_ passphrase: Secret, _ head: [UInt8]) throws(Fault) -> Secret {
    guard let key = Secret(count: 32) else { throw .failed }
    let salt = [UInt8](head[2..<2 + saltLength])
    // SAFETY: the buffers live for the call, and the last has the 32 bytes that are written.
    let done = unsafe passphrase.withBytes { text in
      unsafe key.withMutableBytes { key in
        guard let text = unsafe (text.baseAddress.map { unsafe ($0, text.count) }),
          let key = key.baseAddress
        else { return false }
        return unsafe otp_scrypt(
          text.0.assumingMemoryBound(to: CChar.self), text.1, salt, salt.count,
          1 << UInt64(head[1]), key.assumingMemoryBound(to: UInt8.self), 32) == 1
      }
    }
    guard done else { throw .failed }
    return key
  }

  /// `output` has as many bytes as `input`.
  private static func gcm(
    encrypts: Bool, _ key: Secret, _ head: [UInt8], from input: Secret, to output: Secret,
    _ tag: inout [UInt8]
  ) -> Bool {
    let nonce = [UInt8](head.suffix(nonceLength))
    // SAFETY: the buffers live for the call.
    return unsafe key.withBytes { key in
      unsafe input.withBytes { input in
        unsafe output.withMutableBytes { output in
          unsafe SallyportVerifier.gcm(
            encrypts: encrypts, key, nonce: nonce, beside: head, from: input, to: output, &tag)
        }
      }
    }
  }
}
