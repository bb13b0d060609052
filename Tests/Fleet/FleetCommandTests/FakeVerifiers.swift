import FleetProtocol
import FleetTransport
import OneTimePassword
import SallyportCore
import Synchronization

/// A verifier that answers as it is told, and remembers what it was asked.
final class FakeVerifiers: FleetVerifiers {
  struct Script: Sendable {
    var look: Result<JoinAnswer, TransportFault>
    var join: Result<JoinAnswer, TransportFault>
    var status: Result<VerifierAnswer, TransportFault> = .failure(.away)
    var keys: SealKeys?
    var asked: [JoinRequest.Purpose] = []
    var names: [String] = []
    var pins: [Pin] = []
  }

  let script: Mutex<Script>

  init(_ answer: Result<JoinAnswer, TransportFault>) {
    script = Mutex(Script(look: answer, join: answer))
  }

  func ask(_ kind: FrameKind, within milliseconds: UInt64, _ made: (UInt64) -> Secret?)
    throws(TransportFault) -> VerifierAnswer
  {
    guard let body = made(milliseconds) else { throw .away }
    if kind == .status { return try script.withLock { $0.status }.get() }
    if kind == .keys, let keys = script.withLock({ $0.keys })?.encoded() {
      return VerifierAnswer(to: .keys, keys.bytes(in: 0..<keys.count))
    }
    guard kind == .join, let request = JoinRequest.decode(body) else { return .notServed }
    let answer = script.withLock { script in
      script.asked.append(request.purpose)
      script.names += request.names.map(\.text)
      return request.purpose == .look ? script.look : script.join
    }
    return VerifierAnswer(to: .join, try answer.get().encoded() ?? [])
  }
}
