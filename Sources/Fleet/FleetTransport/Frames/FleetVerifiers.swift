package import OneTimePassword

/// Why a question has no answer.
package enum TransportFault: Error, Equatable {
  /// No verifier could be asked: nothing was sent.
  case away
  /// It was sent, or may have been, and no answer came: whether it was verified is not known, and
  /// it must not be asked again.
  case unknown
  /// The server at these addresses has another key than the verifiers of this fleet. Nothing was
  /// sent.
  case unpinned
  /// None of the verifiers knows this host's key. Nothing was verified, and nothing ends by it:
  /// they may all ask a database that is not the fleet's.
  case stranger
  /// This host was revoked, as the fleet's key says. Nothing was verified.
  case revoked
  /// None of the verifiers takes the keys by which this host seals, and it believes nothing else.
  /// Nothing was sent.
  case unsealed
}

/// What a frame is about.
package enum FrameKind: UInt8, Sendable, CaseIterable {
  /// A question of a login, or a change of one's own: `LoginQuestion.hostFrame`.
  case question = 0x01
  case join = 0x02
  case reserve = 0x03
  case ping = 0x04
  case status = 0x05
  case management = 0x06
  // 0x07: `SealedFrame`.
  /// The keys with which this host seals: `SealKeys`.
  case keys = 0x08
}

extension FrameKind {
  /// Whether another verifier may be asked after one whose database is away.
  var isAskedElsewhere: Bool {
    switch self {
    case .question, .reserve, .ping, .status, .keys: true
    case .join, .management: false
    }
  }
}

/// An answer of a verifier.
package struct VerifierAnswer: Sendable, Equatable {
  package let kind: UInt8
  package let body: [UInt8]

  /// The database is away: nothing was verified, and nothing saved.
  package static let databaseAway = VerifierAnswer(kind: 0xee, body: [])
  /// This verifier does not answer such a question.
  package static let notServed = VerifierAnswer(kind: 0xef, body: [])
  /// A verifier of the former version does not know the host's key: as `HostStanding.unknown`.
  package static let unknownHost = VerifierAnswer(kind: 0xed, body: [])
  /// The verifier is about to end this connection: with the nonce 0, and no answer to anything.
  /// What was sent before it was read is still answered.
  static let leaving = VerifierAnswer(kind: 0xec, body: [])

  package init(kind: UInt8, body: [UInt8]) { (self.kind, self.body) = (kind, body) }

  /// To a question of this kind.
  package init(to kind: FrameKind, _ body: [UInt8]) {
    self.init(kind: 0x80 | kind.rawValue, body: body)
  }

  /// Whether it is one to a question of this kind, and neither 0xee nor 0xef.
  package func answers(_ kind: FrameKind) -> Bool { self.kind == 0x80 | kind.rawValue }
}

/// The verifiers of a fleet, as a host asks them.
package protocol FleetVerifiers: Sendable {
  /// Asks one of them, once, and waits at most this many milliseconds, `.away` included. What is
  /// thrown says whether it may have been verified.
  ///
  /// `body` is given how many milliseconds are left: it is made when it can be sent, since
  /// connecting takes of them. It has at most `VerifierPool.longestBody` bytes; nil: it is not
  /// sent, `.away`.
  func ask(_ kind: FrameKind, within milliseconds: UInt64, _ body: (UInt64) -> Secret?)
    throws(TransportFault) -> VerifierAnswer
}

extension FleetVerifiers {
  /// The same of a body that does not say it.
  package func ask(_ kind: FrameKind, _ body: Secret, within milliseconds: UInt64)
    throws(TransportFault) -> VerifierAnswer
  {
    try ask(kind, within: milliseconds) { _ in body }
  }
}
