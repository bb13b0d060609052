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
  /// nil: nothing is sealed here.
  private var seals: SealedAnswers?
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

  /// For a peer of this standing, whose handshake is done; false where he does not take it at once.
  func greet(_ standing: HostStanding, by seals: (any HostSeals)?) -> Bool {
    let now = sys_monotonic()
    var greeting = Greeting(standing)
    if let seals, let pin {
      self.seals = SealedAnswers(seals, of: pin, now: now)
      switch standing {
      case .member:
        greeting.names = self.seals?.names ?? []
        greeting.nonce = greeting.names.isEmpty ? nil : self.seals?.nonce
      case .revoked: greeting.proofs = seals.proofs(for: pin)
      case .unknown: break
      }
    }
    // It fits into what the kernel holds, or the peer is none of ours.
    return send(0, VerifierAnswer(to: .ping, greeting.body), until: now)
  }

  /// What a frame asks; nil where this verifier cannot answer it.
  func opened(_ kind: UInt8, _ body: Secret, now: UInt64) -> (kind: UInt8, body: Secret)? {
    guard let seals else { return (kind, body) }
    return seals.opened(kind, body, now: now)
  }

  /// Whether the peer still waits for the answer, and has sent nothing more.
  var awaitsAnswer: Bool { connection.isQuiet }

  /// false where the peer is gone, or does not take it by `deadline`.
  func send(_ nonce: UInt64, _ answer: VerifierAnswer, until deadline: UInt64) -> Bool {
    guard let body = Secret(answer.body), let frame = frame(nonce, answer.kind, body) else {
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

  /// Sealed, where it answers what was sealed.
  private func frame(_ nonce: UInt64, _ kind: UInt8, _ body: Secret) -> Secret? {
    guard let seals else { return Frame.make(nonce, kind, body) }
    return seals.sealed(kind, body, now: sys_monotonic())
      .flatMap { Frame.make(nonce, $0.kind, $0.body) }
  }
}
