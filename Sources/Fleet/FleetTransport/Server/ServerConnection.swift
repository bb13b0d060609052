import CService
import OneTimePassword

/// A host's connection, as a verifier has it. For the thread that has claimed it.
final class ServerConnection: @unchecked Sendable {
  let connection: TLSConnection
  /// In the table; set before anybody else has it.
  var id: UInt64 = 0
  private(set) var pin: Pin?
  /// Of the frame that is to be answered.
  var nonce: UInt64 = 0
  private let reader = FrameReader()
  /// The machine that it comes from, as `tls_accept` has it.
  let source: UInt64

  init(_ connection: TLSConnection, from source: UInt64) {
    (self.connection, self.source) = (connection, source)
  }

  var descriptor: Int32 { connection.descriptor }

  enum Greeted {
    case done(Pin)
    case more(toWrite: Bool)
    case over
  }

  /// Goes on with the handshake.
  func handshake() -> Greeted {
    switch connection.handshake() {
    case .done:
      guard let found = connection.peer else { return .over }
      pin = found
      return .done(found)
    case .moreIn: return .more(toWrite: false)
    case .moreOut: return .more(toWrite: true)
    case .gone, .unpinned: return .over
    }
  }

  /// Whether the peer has hung up, or will say nothing more.
  var hasLeft: Bool { connection.hasLeft }

  func read() -> FrameReader.Progress { reader.advance(connection) }

  /// Whether the peer still waits for the answer, and has sent nothing more.
  var awaitsAnswer: Bool { connection.isQuiet }

  /// false where the peer is gone, or does not take it by `deadline`.
  func send(_ nonce: UInt64, _ answer: VerifierAnswer, until deadline: UInt64) -> Bool {
    guard let body = Secret(answer.body), let frame = Frame.make(nonce, answer.kind, body) else {
      return false
    }
    var sent = 0
    while sent < frame.count {
      switch connection.write(frame, from: sent) {
      case .done(let count): sent += count
      case .moreOut: if !connection.wait(toWrite: true, until: deadline) { return false }
      case .moreIn: if !connection.wait(toWrite: false, until: deadline) { return false }
      case .gone, .unpinned: return false
      }
    }
    return true
  }
}
