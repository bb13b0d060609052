package import OneTimePassword
package import SallyportCore

/// What one host and the verifiers of its fleet seal their frames with. A verifier makes them from
/// the fleet's key and the sealed row of the host; the host has them in a file of root's.
///
/// As bytes: version (1 byte), name (8), the key of questions (64) and of answers (64), and the
/// SHA-256 of what proves that the host was revoked (32).
package struct SealKeys: Sendable {
  package static let (nameLength, proofLength) = (8, 16)
  package static let keyLength = SIV.keyLength

  /// Says which keys these are: no secret.
  package let name: [UInt8]
  let question: Secret
  let answer: Secret
  /// Of the proof, which a verifier shows to the host when it was revoked.
  let revocation: [UInt8]

  /// `proof`: `proofLength` bytes. nil where a value has another length.
  package init?(name: [UInt8], question: Secret, answer: Secret, proof: [UInt8]) {
    guard proof.count == Self.proofLength, let digest = try? SHA256.digest(proof) else {
      return nil
    }
    self.init(name: name, question, answer, revocation: digest)
  }

  private init?(name: [UInt8], _ question: Secret, _ answer: Secret, revocation: [UInt8]) {
    guard name.count == Self.nameLength, question.count == Self.keyLength,
      answer.count == Self.keyLength
    else { return nil }
    (self.name, self.question, self.answer) = (name, question, answer)
    self.revocation = revocation
  }

  /// Whether one of these is the proof that this host was revoked.
  func isRevoked(by proofs: [[UInt8]]) -> Bool {
    proofs.contains { proof in
      (try? SHA256.digest(proof)).map { constantTimeEquals($0, revocation) } ?? false
    }
  }
}

extension SealKeys: SecretFrame {
  package static let longest = 1 + nameLength + 2 * keyLength + 32

  package static func pass(_ keys: Self?, _ fields: inout Fields) -> Self? {
    let name = fields.bytes(keys?.name, nameLength)
    let question = fields.secret(keys?.question, keyLength)
    let answer = fields.secret(keys?.answer, keyLength)
    let revocation = fields.bytes(keys?.revocation, 32)
    guard let question, let answer else { return nil }
    return Self(name: name, question, answer, revocation: revocation)
  }
}
