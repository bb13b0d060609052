import CService
import OneTimePassword

/// A connection to a verifier, whose handshake is done. For one thread at a time.
final class ClientConnection: @unchecked Sendable {
  private let connection: TLSConnection
  private let reader: FrameReader
  /// Which of the verifiers.
  let verifier: Int
  /// What the verifier knows of this host's key.
  let standing: HostStanding
  /// When it was used last.
  var used: UInt64
  /// Whether a login may be asked on it.
  var isBegun = false

  init(_ connection: TLSConnection, _ reader: FrameReader, verifier: Int, _ standing: HostStanding)
  {
    (self.connection, self.reader, self.verifier) = (connection, reader, verifier)
    (self.standing, used) = (standing, sys_monotonic())
  }

  /// Whether it is still there and silent, as far as the kernel knows, and young enough.
  func isUsable(_ now: UInt64) -> Bool {
    (now < used || now - used < VerifierPool.keptIdle) && connection.isQuiet
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
        guard found == nonce else { return .over }
        let answer = VerifierAnswer(kind: kind, body: body.bytes(in: 0..<body.count))
        return .answer(answer, isLast: isLast || !connection.isQuiet)
      case .more(let toWrite, _):
        if !connection.wait(toWrite: toWrite, until: deadline) { return .silent }
      case .over, .unpinned: return .over
      }
    }
  }
}
