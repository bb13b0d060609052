import OneTimePassword
import SallyportCore

/// The answer to a `MoveRequest.fetch`.
///
/// As bytes: version (1 byte), kind (1), fields, of a copy the last one the enrollment as its file
/// has it. The other kinds are those of `MoveAnswer`.
package enum FetchAnswer: Sendable {
  /// A row of this version, in effect.
  case copy(MoveRequest.Moving, version: UInt64)
  /// He has logged in on these hosts, too, in the last 30 days.
  case used(on: [FleetHost])
  /// For a while backup codes are refused, of which some may be used: nothing can be copied.
  case held
  case other(MoveAnswer)

  /// No answer has more.
  package static let mostHosts = 32
}

extension FetchAnswer {
  /// nil where a value has no place in a frame.
  package func encoded() -> [UInt8]? {
    var fields = ByteWriter(count: 65_536)
    fields.putVersion()
    switch self {
    case .copy(let moving, let version):
      fields.put(robust: 5)
      fields.put(version)
      fields.put(moving)
    case .used(let hosts):
      fields.put(robust: 6)
      if hosts.isEmpty { fields.fail() }
      fields.put(count: hosts.count, atMost: FetchAnswer.mostHosts)
      for host in hosts { fields.put(counted: host.bytes) }
    case .held: fields.put(robust: 7)
    case .other(let answer): return answer.encoded()
    }
    return fields.isWhole ? [UInt8](fields.bytes.prefix(fields.position)) : nil
  }

  /// Total: any bytes give an answer that `encoded` gives, or nil.
  package static func decode(_ frame: [UInt8]) -> FetchAnswer? {
    var fields = ByteReader(frame, 0..<frame.count)
    guard fields.takesVersion() else { return nil }
    let answer: FetchAnswer?
    switch fields.robust(atMost: 7) {
    case 5: answer = fields.copy()
    case 6: answer = fields.hosts().map { .used(on: $0) }
    case 7: answer = .held
    case _: return MoveAnswer.decode(frame).map { .other($0) }
    }
    guard let answer, fields.isWhole, fields.isAtEnd,
      // What would be written otherwise is no answer of ours.
      let again = answer.encoded(), again.dropFirst() == frame.dropFirst()
    else { return nil }
    return answer
  }
}

extension ByteReader {
  fileprivate mutating func copy() -> FetchAnswer? {
    let version = number64()
    return moving().map { .copy($0, version: version) }
  }

  fileprivate mutating func hosts() -> [FleetHost]? {
    var hosts: [FleetHost] = []
    for _ in 0..<count(atMost: FetchAnswer.mostHosts) {
      guard let host = FleetHost(counted()) else { return nil }
      hosts.append(host)
    }
    return hosts
  }
}

extension ByteWriter {
  /// The state, and the enrollment after its length.
  mutating func put(_ moving: MoveRequest.Moving) {
    guard let text = moving.put(to: &self), text.count <= 0xffff else { return fail() }
    put(UInt64(text.count), bytes: 2)
    put(text.bytes(in: 0..<text.count))
  }
}

extension ByteReader {
  mutating func moving() -> MoveRequest.Moving? {
    let state = movingState()
    guard isWhole, let text = Secret(take(Int(number(bytes: 2)))) else { return nil }
    return MoveRequest.Moving(text, state, of: nil)
  }
}
