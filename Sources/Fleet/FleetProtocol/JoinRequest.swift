package import OneTimePassword
package import SallyportCore

/// What a machine asks a verifier to become a host of its fleet. The connection says which key it
/// has.
///
/// As bytes: version (1 byte), purpose (1), the token's secret (16), how many names (2) and each
/// after its length.
package struct JoinRequest: Sendable {
  /// What it is for.
  package enum Purpose: UInt8, Sendable {
    /// Says what would happen; the token stays valid.
    case look = 1
    case join
  }

  package let purpose: Purpose
  /// Of the token.
  package let secret: Secret
  /// Of accounts of the machine: which of them are in the fleet?
  package let names: [UserName]

  /// More are asked one lot after the other.
  package static let mostNames = 200

  package init(_ purpose: Purpose, _ secret: Secret, names: [UserName] = []) {
    (self.purpose, self.secret, self.names) = (purpose, secret, names)
  }

  /// nil where a value has no place in it, or out of memory.
  package func encoded() -> Secret? {
    guard secret.count == JoinToken.secretLength, names.count <= JoinRequest.mostNames else {
      return nil
    }
    var fields = ByteWriter(count: 2 + 256 * names.count)
    fields.put(UInt64(names.count), bytes: 2)
    for name in names { fields.put(counted: name.bytes) }
    guard fields.isWhole else { return nil }
    var frame = SecretText(capacity: 2 + secret.count + fields.position)
    frame.put(Wire.written)
    frame.put(Wire.robust(Int(purpose.rawValue)))
    frame.add(secret)
    for byte in fields.bytes.prefix(fields.position) { frame.put(byte) }
    return frame.finish()
  }

  /// Total: any bytes give a request that `encoded` gives, or nil.
  package static func decode(_ frame: Secret) -> JoinRequest? {
    let head = 2 + JoinToken.secretLength
    var front = ByteReader(frame.bytes(in: 0..<2), 0..<2)
    guard front.takesVersion(),
      let purpose = Purpose(rawValue: UInt8(truncatingIfNeeded: front.robust(atMost: 2))),
      front.isWhole, let secret = frame.slice(2..<head)
    else { return nil }
    var fields = ByteReader(frame.bytes(in: head..<frame.count), 0..<frame.count)
    guard let names = fields.userNames(), fields.isWhole, fields.isAtEnd else { return nil }
    return JoinRequest(purpose, secret, names: names)
  }
}

/// The answer to a `JoinRequest`.
///
/// As bytes: version (1 byte), kind (1), and behind it the fields of that kind, in their order.
package enum JoinAnswer: Equatable, Sendable {
  /// To `look`: what would happen. To `join`: the machine is a host of the fleet.
  case welcome(Welcome)
  case refused(Refusal)
  /// Nothing was done: the database is away. The verifier has logged why.
  case trouble

  /// What a host has to know of its fleet.
  package struct Welcome: Equatable, Sendable {
    /// The machine's name in the fleet.
    package let host: FleetHost
    /// Whether it may change enrollments.
    package let enrolls: Bool
    /// The addresses of the fleet's verifiers; empty: those of the token.
    package let verifiers: [[UInt8]]
    /// The verifiers' keys, 1 or 2.
    package let pins: [[UInt8]]
    /// Those of the names asked for that are in the fleet.
    package let known: [UserName]

    package init(
      host: FleetHost, enrolls: Bool, verifiers: [[UInt8]], pins: [[UInt8]], known: [UserName]
    ) {
      (self.host, self.enrolls, self.verifiers) = (host, enrolls, verifiers)
      (self.pins, self.known) = (pins, known)
    }
  }

  /// Why the token is refused.
  package enum Refusal: UInt8, CaseIterable, Sendable {
    /// No invitation has this secret.
    case unknownToken = 1
    /// Another key has used it.
    case usedToken
    case expiredToken
    /// This key is that of another host of the fleet.
    case otherHost
  }

  private enum Number: UInt8 {
    case welcome = 0xa5
    case refused = 0x5a
    case trouble = 0xf0
  }

  /// nil where a value has no place in a frame.
  package func encoded() -> [UInt8]? {
    var fields = ByteWriter(count: 65_536)
    fields.putVersion()
    switch self {
    case .welcome(let welcome):
      fields.put(count: Int(Number.welcome.rawValue))
      fields.put(welcome)
    case .refused(let refusal):
      fields.put(count: Int(Number.refused.rawValue))
      fields.put(robust: Int(refusal.rawValue))
    case .trouble: fields.put(count: Int(Number.trouble.rawValue))
    }
    return fields.isWhole ? [UInt8](fields.bytes.prefix(fields.position)) : nil
  }

  /// Total: any bytes give an answer that `encoded` gives, or nil.
  package static func decode(_ frame: [UInt8]) -> JoinAnswer? {
    var fields = ByteReader(frame, 0..<frame.count)
    guard fields.takesVersion() else { return nil }
    let answer: JoinAnswer?
    switch Number(rawValue: UInt8(truncatingIfNeeded: fields.number(bytes: 1))) {
    case .welcome: answer = fields.welcome().map { .welcome($0) }
    case .refused:
      answer = Refusal(rawValue: UInt8(truncatingIfNeeded: fields.robust(atMost: 4)))
        .map { .refused($0) }
    case .trouble: answer = .trouble
    case nil: answer = nil
    }
    return fields.isWhole && fields.isAtEnd ? answer : nil
  }
}

extension ByteWriter {
  fileprivate mutating func put(_ welcome: JoinAnswer.Welcome) {
    put(counted: welcome.host.bytes)
    put(robust: welcome.enrolls ? 2 : 1)
    put(count: welcome.verifiers.count, atMost: JoinToken.mostVerifiers)
    for address in welcome.verifiers {
      if !isAddressText(address) { fail() }
      put(counted: address)
    }
    if !(1...2).contains(welcome.pins.count) { fail() }
    put(count: welcome.pins.count)
    for pin in welcome.pins {
      if pin.count != JoinToken.pinLength { fail() }
      put(pin)
    }
    if welcome.known.count > JoinRequest.mostNames { fail() }
    put(UInt64(welcome.known.count), bytes: 2)
    for name in welcome.known { put(counted: name.bytes) }
  }
}

extension ByteReader {
  /// Counts only where the reader is whole afterwards.
  fileprivate mutating func welcome() -> JoinAnswer.Welcome? {
    guard let host = FleetHost(counted()) else { return nil }
    let enrolls = robust(atMost: 2) == 2
    var verifiers: [[UInt8]] = []
    for _ in 0..<count(atMost: JoinToken.mostVerifiers) {
      let address = counted()
      if !isAddressText(address) { fail() }
      verifiers.append(address)
    }
    var pins: [[UInt8]] = []
    for _ in 0..<count(atMost: 2) { pins.append(take(JoinToken.pinLength)) }
    if pins.isEmpty { fail() }
    guard let known = userNames() else { return nil }
    return JoinAnswer.Welcome(
      host: host, enrolls: enrolls, verifiers: verifiers, pins: pins, known: known)
  }

  /// Names that accounts can have, after their number.
  fileprivate mutating func userNames() -> [UserName]? {
    let count = number(bytes: 2)
    guard count <= UInt64(JoinRequest.mostNames) else { return nil }
    var names: [UserName] = []
    for _ in 0..<count {
      guard let name = UserName(counted()) else { return nil }
      names.append(name)
    }
    return names
  }
}
