import CService
package import OneTimePassword

/// What a host does on a connection before the first question of a login. It is given a ping with
/// a body of its own; nil: no answer came. false: no login is to be asked there.
package typealias Beginning = @Sendable (_ ping: (Secret) -> VerifierAnswer?) -> Bool

extension VerifierPool {
  /// As `sendOn`, and false where no question of this kind is to be asked on this connection.
  func send(
    _ frame: (ClientConnection) -> Secret?, _ kind: FrameKind, on connection: ClientConnection,
    until deadline: UInt64
  ) throws(TransportFault) -> Bool {
    // Keys come by those of before, or by TLS where there are none.
    if kind == .keys, connection.lacksSeal { return false }
    guard begin(connection, for: kind, until: deadline) else { return false }
    return try sendOn(connection, frame, until: deadline)
  }

  private func begin(_ connection: ClientConnection, for kind: FrameKind, until deadline: UInt64)
    -> Bool
  {
    guard kind == .question, !connection.isBegun, let beginning else { return true }
    let end = min(deadline, sys_monotonic() + Self.untilAway)
    connection.isBegun = beginning { ping($0, on: connection, until: end) }
    if !connection.isBegun { askLast(connection.verifier) }
    return connection.isBegun
  }

  private func ping(_ body: Secret, on connection: ClientConnection, until deadline: UInt64)
    -> VerifierAnswer?
  {
    guard let nonce = Frame.newNonce() else { return nil }
    let start = sys_monotonic()
    let isSent = try? sendOn(connection, { $0.frame(nonce, .ping, body) }, until: deadline)
    guard isSent == true else { return nil }
    switch connection.receive(nonce, until: deadline) {
    case .answer(let answer, isLast: false): return answer
    case .answer(_, isLast: true): return nil
    case .over:
      passOver(connection.verifier)
      return nil
    case .silent:
      putAside(connection.verifier, silentSince: start, deadline)
      return nil
    }
  }
}
