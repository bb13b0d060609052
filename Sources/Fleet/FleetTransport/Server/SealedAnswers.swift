import OneTimePassword

/// A verifier's side of one connection of a host. For one thread at a time.
///
/// A question is opened once: it is bound to the nonce of this connection, which no other one has
/// and which is nowhere but in memory, and to its number on it.
final class SealedAnswers {
  /// For how long the next question may come, in nanoseconds: a host asks each two seconds. What is
  /// held back for longer is not answered any more.
  static let patience: UInt64 = 60_000_000_000

  private let seals: any HostSeals
  private let host: Pin
  private var place: SealedPlace
  /// When the last one was answered, or the connection began.
  private var last: UInt64
  private struct Pending {
    let keys: SealKeys
    let digest: [UInt8]
    let place: SealedPlace
    let isFormer: Bool
  }
  private var pending: Pending?

  /// nil where there are no random bytes.
  init?(_ seals: any HostSeals, of host: Pin, now: UInt64) {
    var nonce = [UInt8](repeating: 0, count: SealedPlace.nonceLength)
    guard fill(&nonce) else { return nil }
    (self.seals, self.host, last) = (seals, host, now)
    place = SealedPlace(host: host, nonce: nonce)
  }

  var nonce: [UInt8] { place.nonce }
  /// Of the keys by which this verifier can open what the host seals.
  var names: [[UInt8]] { SIV.isThere ? seals.keys(of: host).map(\.name) : [] }

  /// What is asked; nil: it is not to be answered, but that this verifier cannot.
  func opened(_ kind: UInt8, _ body: Secret, now: UInt64) -> (kind: UInt8, body: Secret)? {
    pending = nil
    guard kind == SealedFrame.kind else {
      let isOnly = seals.isOnlySealed(host)
      if kind == FrameKind.join.rawValue || isOnly == false { return (kind, body) }
      if isOnly == true { seals.noteUnsealed(host) }
      return nil
    }
    let all = seals.keys(of: host)
    guard now < last || now - last < Self.patience, let name = SealedFrame.nameOfKeys(body),
      let keys = all.first(where: { $0.name == name }),
      let found = SealedFrame.open(question: body, keys, at: place),
      let digest = SealedFrame.digest(ofQuestion: body)
    else { return nil }
    let isFormer = name != all.first?.name
    pending = Pending(keys: keys, digest: digest, place: place, isFormer: isFormer)
    place.number += 1
    seals.noteSealed(host, former: isFormer)
    return found
  }

  /// The answer to what was opened last, as it goes out. nil where it cannot be sealed.
  func sealed(_ kind: UInt8, _ body: Secret, now: UInt64) -> (kind: UInt8, body: Secret)? {
    guard let pending else { return (kind, body) }
    self.pending = nil
    last = now
    var marks: SealedFrame.Marks = pending.isFormer ? [.newer] : []
    if seals.isOnlySealed(host) == true { marks.insert(.onlySealed) }
    return SealedFrame.answer(
      kind, body, marks: marks, pending.keys, to: pending.digest, at: pending.place
    ).map { (0x80 | SealedFrame.kind, $0) }
  }
}
