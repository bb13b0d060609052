import CService
import OneTimePassword

/// A connection to a verifier, whose handshake is done. For one thread at a time.
final class ClientConnection: @unchecked Sendable {
  private let connection: TLSConnection
  private let reader: FrameReader
  /// Which of the verifiers.
  let verifier: Int
  private let greeting: Greeting
  private let seal: HostSeal?
  /// nil: what is asked here is not sealed. And the name of the keys.
  private let (questions, keys): (SealedQuestions?, [UInt8]?)
  /// When it was used last.
  var used: UInt64
  /// Whether a login may be asked on it.
  var isBegun = false

  init(
    _ connection: TLSConnection, _ reader: FrameReader, verifier: Int, _ greeting: Greeting,
    seal: HostSeal?
  ) {
    (self.connection, self.reader, self.verifier) = (connection, reader, verifier)
    (self.greeting, self.seal, used) = (greeting, seal, sys_monotonic())
    if let seal, let keys = seal.keys, let nonce = greeting.nonce,
      greeting.names.contains(keys.name)
    {
      (questions, self.keys) = (SealedQuestions(seal, keys, nonce: nonce), keys.name)
    } else {
      (questions, keys) = (nil, nil)
      if greeting.nonce != nil { seal?.noteOthers() }
    }
  }

  /// What the verifier knows of this host's key, as far as the host believes it; nil: what it says
  /// is not proven, and counts as if it were not there. By "unknown" nothing is accepted and
  /// nothing ends.
  var standing: HostStanding? {
    guard let seal, seal.isOnly else { return greeting.standing }
    switch greeting.standing {
    case .member: return questions == nil ? nil : .member
    case .unknown: return .unknown
    case .revoked: return seal.keys?.isRevoked(by: greeting.proofs) == true ? .revoked : nil
    }
  }

  /// Whether it is still there and silent, as far as the kernel knows, and young enough; and by the
  /// keys that the host has now.
  func isUsable(_ now: UInt64) -> Bool {
    let isOld = greeting.nonce != nil && keys != seal?.keys?.name
    return (now < used || now - used < VerifierPool.keptIdle) && !isOld && connection.isQuiet
  }

  /// Whether this host has keys, and the verifier took none of them for this connection.
  var lacksSeal: Bool { questions == nil && seal?.keys != nil }

  /// The frame of a question; nil where it cannot be made.
  func frame(_ nonce: UInt64, _ kind: FrameKind, _ body: Secret) -> Secret? {
    guard let questions else { return Frame.make(nonce, kind.rawValue, body) }
    return questions.question(kind.rawValue, body)
      .flatMap { Frame.make(nonce, SealedFrame.kind, $0) }
  }

  /// false where the connection is gone and the kernel has taken nothing of it. Throws `.unknown`
  /// where it has taken a part and not the rest by `deadline`.
  func send(_ frame: Secret, until deadline: UInt64) throws(TransportFault) -> Bool {
    let before = connection.sent
    var sent = 0
    while sent < frame.count {
      var canWait = false
      switch connection.write(frame, from: sent) {
      case .done(let count):
        sent += count
        continue
      case .moreOut: canWait = connection.wait(toWrite: true, until: deadline)
      case .moreIn: canWait = connection.wait(toWrite: false, until: deadline)
      case .gone, .unpinned: break
      }
      if canWait { continue }
      if connection.sent == before { return false }
      throw .unknown
    }
    return true
  }

  /// What came of a question.
  enum Received {
    /// `isLast`: the connection is over, or the verifier is about to end it.
    case answer(VerifierAnswer, isLast: Bool)
    /// It ended, or something else came.
    case over
    case silent
  }

  /// nil where the question was sealed, and the answer is not.
  private func answer(_ kind: UInt8, _ body: Secret) -> VerifierAnswer? {
    guard let questions else {
      return VerifierAnswer(kind: kind, body: body.bytes(in: 0..<body.count))
    }
    return questions.answer(kind, body).map {
      VerifierAnswer(kind: $0.kind, body: $0.body.bytes(in: 0..<$0.body.count))
    }
  }

  /// The answer to this nonce.
  func receive(_ nonce: UInt64, until deadline: UInt64) -> Received {
    var isLast = false
    while true {
      switch reader.advance(connection) {
      case .whole(let found, let kind, let body):
        if found == 0, kind == VerifierAnswer.leaving.kind, !isLast {
          isLast = true
          continue
        }
        guard found == nonce, let answer = answer(kind, body) else { return .over }
        return .answer(answer, isLast: isLast || !connection.isQuiet)
      case .more(let toWrite, _):
        if !connection.wait(toWrite: toWrite, until: deadline) { return .silent }
      case .over, .unpinned: return .over
      }
    }
  }
}
