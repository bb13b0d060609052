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
}

extension JoinRequest: SecretFrame {
  package static let longest = 65_536

  package static func pass(_ request: Self?, _ fields: inout Fields) -> Self? {
    let kind = fields.kind(request.map { Int($0.purpose.rawValue) }, of: 2)
    let secret = fields.secret(request?.secret, JoinToken.secretLength)
    let names = fields.names(request?.names)
    guard let purpose = Purpose(rawValue: UInt8(kind)), let secret else { return nil }
    return JoinRequest(purpose, secret, names: names)
  }
}

extension Fields {
  /// Names that accounts can have.
  fileprivate mutating func names(_ names: [UserName]?) -> [UserName] {
    list(names, 0...JoinRequest.mostNames, bytes: 2) { $0.name($1) }
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
    package let host: FleetHostName
    /// Whether it may change enrollments.
    package let enrolls: Bool
    /// The addresses of the fleet's verifiers; empty: those of the token.
    package let verifiers: [[UInt8]]
    /// The verifiers' keys, 1 or 2.
    package let pins: [[UInt8]]
    /// Those of the names asked for that are in the fleet.
    package let known: [UserName]

    package init(
      host: FleetHostName, enrolls: Bool, verifiers: [[UInt8]], pins: [[UInt8]], known: [UserName]
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
}

extension JoinAnswer: FrameAnswer {
  package static let longest = 65_536

  package static func pass(_ answer: Self?, _ fields: inout Fields) -> Self? {
    let (kind, welcome, refusal): (UInt8?, Welcome?, Refusal?) =
      switch answer {
      case nil: (nil, nil, nil)
      case .welcome(let welcome)?: (0xa5, welcome, nil)
      case .refused(let refusal)?: (0x5a, nil, refusal)
      case .trouble?: (0xf0, nil, nil)
      }
    switch fields.byte(kind) {
    case 0xa5: return Welcome.pass(welcome, &fields).map { .welcome($0) }
    case 0x5a:
      return Refusal(rawValue: UInt8(fields.kind(refusal.map { Int($0.rawValue) }, of: 4)))
        .map { .refused($0) }
    case 0xf0: return .trouble
    case _: return nil
    }
  }
}

extension JoinAnswer.Welcome {
  fileprivate static func pass(_ welcome: Self?, _ fields: inout Fields) -> Self? {
    guard let host = fields.host(welcome?.host) else { return nil }
    return Self(
      host: host, enrolls: fields.flag(welcome?.enrolls),
      verifiers: fields.list(welcome?.verifiers, 0...JoinToken.mostVerifiers) { $0.address($1) },
      pins: fields.list(welcome?.pins, 1...2) { $0.bytes($1, JoinToken.pinLength) },
      known: fields.names(welcome?.known))
  }
}
