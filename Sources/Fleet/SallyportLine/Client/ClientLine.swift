import CService
import OneTimePassword

/// A line to a verifier, whose handshake is done. For one thread at a time.
final class ClientLine: @unchecked Sendable {
  private let line: TLSLine
  private let reader: FrameReader
  /// Which of the verifiers.
  let verifier: Int
  /// The verifier does not know this host's key.
  let isStranger: Bool
  /// When it was used last.
  var used: UInt64

  init(_ line: TLSLine, _ reader: FrameReader, verifier: Int, isStranger: Bool) {
    (self.line, self.reader, self.verifier) = (line, reader, verifier)
    (self.isStranger, used) = (isStranger, sys_monotonic())
  }

  /// Whether it is still there and silent, as far as the kernel knows, and young enough.
  func isUsable(_ now: UInt64) -> Bool {
    (now < used || now - used < LineClient.keptIdle) && line.isQuiet
  }

  /// false where the line is gone and the kernel has taken nothing of it. Throws `.unknown` where
  /// it has taken a part and not the rest by `deadline`.
  func send(_ frame: Secret, until deadline: UInt64) throws(LineFault) -> Bool {
    let before = line.sent
    var sent = 0
    while sent < frame.count {
      var canWait = false
      switch line.write(frame, from: sent) {
      case .done(let count):
        sent += count
        continue
      case .moreOut: canWait = line.wait(toWrite: true, until: deadline)
      case .moreIn: canWait = line.wait(toWrite: false, until: deadline)
      case .gone, .unpinned: break
      }
      if canWait { continue }
      if line.sent == before { return false }
      throw .unknown
    }
    return true
  }

  /// What came of a question.
  enum Received {
    /// `isLast`: the line is over, or the verifier is about to end it.
    case answer(LineAnswer, isLast: Bool)
    /// It ended, or something else came.
    case over
    case silent
  }

  /// The answer to this nonce.
  func receive(_ nonce: UInt64, until deadline: UInt64) -> Received {
    var isLast = false
    while true {
      switch reader.advance(line) {
      case .whole(let frame):
        if frame.nonce == 0, frame.kind == LineAnswer.leaving.kind, !isLast {
          isLast = true
          continue
        }
        guard frame.nonce == nonce else { return .over }
        let body = frame.body.bytes(in: 0..<frame.body.count)
        return .answer(LineAnswer(kind: frame.kind, body: body), isLast: isLast || !line.isQuiet)
      case .more(let toWrite, _):
        if !line.wait(toWrite: toWrite, until: deadline) { return .silent }
      case .over, .unpinned: return .over
      }
    }
  }
}
