import OneTimePassword

/// A host's side of one connection whose questions are sealed. For one thread at a time.
final class SealedQuestions {
  private let seal: HostSeal
  private let keys: SealKeys
  private var place: SealedPlace
  /// Of the question that was sent.
  private var digest: [UInt8]?

  init(_ seal: HostSeal, _ keys: SealKeys, nonce: [UInt8]) {
    (self.seal, self.keys) = (seal, keys)
    place = SealedPlace(host: seal.host, nonce: nonce)
  }

  /// The body of a frame with this frame in it; nil where it cannot be made.
  func question(_ kind: UInt8, _ body: Secret) -> Secret? {
    guard let sealed = SealedFrame.question(kind, body, keys, at: place) else { return nil }
    digest = SealedFrame.digest(ofQuestion: sealed)
    return digest == nil ? nil : sealed
  }

  /// The answer to it; nil for anything that a verifier has not sealed as that.
  func answer(_ kind: UInt8, _ body: Secret) -> (kind: UInt8, body: Secret)? {
    guard let digest, kind == 0x80 | SealedFrame.kind,
      let (kind, body, marks) = SealedFrame.open(answer: body, keys, to: digest, at: place)
    else { return nil }
    self.digest = nil
    place.number += 1
    seal.note(marks)
    return (kind, body)
  }
}
