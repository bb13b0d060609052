package import OneTimePassword
import SallyportSystem

// Rows that hold no secret, and that nobody without the key can make or change: the seal beside
// their values is the id of the key (4 bytes) and HMAC-SHA-256 under the fleet's key of the table
// and the values, each with its length before it (docs/fleet-format.md).

/// A row with a seal.
package protocol SealedRow: Equatable, Sendable {
  static var table: StaticString { get }
  /// By which its table finds it.
  var primaryKey: [UInt8] { get }
  /// What is sealed, in this order.
  var fields: [[UInt8]] { get }
}

extension SealedRow {
  /// For the column `seal`.
  package func seal(under key: FleetKey) throws(CryptoError) -> [UInt8] {
    try key.bind(Self.table, fields)
  }

  /// Whether it was sealed with this key, also with the other one while it changes.
  package func isRight(_ seal: [UInt8], under key: FleetKey) -> Bool {
    key.isRight(seal, Self.table, fields)
  }
}

/// A host that may ask: a row of the table `host`.
package struct HostRow: SealedRow {
  package let name: [UInt8]
  /// The SHA-256 of its public key; nil for a host that asks only over a local socket.
  package let key: [UInt8]?
  /// Of a row from before there were rights: it has all of them. Else false, whatever they are, so
  /// that a verifier of the former version finds none.
  package let enrolls: Bool
  /// Seconds since 1970.
  package let joined: Int64

  package init(name: [UInt8], key: [UInt8]?, enrolls: Bool = false, joined: Int64) {
    (self.name, self.key, self.enrolls, self.joined) = (name, key, enrolls, joined)
  }

  package var primaryKey: [UInt8] { name }

  package static let table: StaticString = "host"

  package var fields: [[UInt8]] {
    [name, key ?? [], [enrolls ? 1 : 0], number(UInt64(bitPattern: joined))]
  }
}

/// An invitation for a host: a row of the table `invite`.
package struct InviteRow: SealedRow {
  /// How long it can be used, in seconds.
  package static let lifetime: Int64 = 86_400

  /// Of the secret in the token.
  package let digest: [UInt8]
  package let host: [UInt8]
  /// As of a host.
  package let enrolls: Bool
  /// Seconds since 1970.
  package let until: Int64
  /// The SHA-256 of the public key that has used it; nil: unused.
  package var key: [UInt8]?

  package init(
    digest: [UInt8], host: [UInt8], enrolls: Bool = false, until: Int64, key: [UInt8]? = nil
  ) {
    (self.digest, self.host, self.enrolls, self.until) = (digest, host, enrolls, until)
    self.key = key
  }

  package var primaryKey: [UInt8] { digest }
  /// When it was made.
  package var made: Int64 { until - Self.lifetime }

  package static let table: StaticString = "invite"

  package var fields: [[UInt8]] {
    [digest, host, [enrolls ? 1 : 0], number(UInt64(bitPattern: until)), key ?? []]
  }
}

/// A host's key that was revoked, or up to when all of a name is void: a row of the table
/// `revoked`, and a line of each verifier's file. Of two with one subject the later one counts.
package struct RevokedRow: SealedRow {
  /// 32 bytes: the SHA-256 of the host's public key, the digest of an invitation, or what
  /// `subject(ofName:)` gives.
  package let subject: [UInt8]
  package let host: [UInt8]
  /// Seconds since 1970.
  package let at: Int64

  package init(subject: [UInt8], host: [UInt8], at: Int64) {
    (self.subject, self.host, self.at) = (subject, host, at)
  }

  /// Of all rows and invitations that were sealed for this name up to `at`.
  package static func subject(ofName name: [UInt8]) throws(CryptoError) -> [UInt8] {
    try SHA256.digest(
      FleetKey.counted(OneTimePassword.bytes(of: "revoked name")) + FleetKey.counted(name))
  }

  package var primaryKey: [UInt8] { subject }

  package static let table: StaticString = "revoked"

  package var fields: [[UInt8]] { [subject, host, number(UInt64(bitPattern: at))] }
}

/// What a host has said of its starts: a row of the table `presence`.
package struct PresenceRow: SealedRow {
  /// How it stands.
  package enum Kind: UInt64, Sendable {
    case usual
    /// It said less than before.
    case putBack
    /// One that was started earlier goes on beside a later one.
    case copied
    /// It keeps nothing: it has no reserve, and may be put back.
    case ephemeral
    /// It does not come back: what it held counts as used.
    case givenUp

    /// Whether it has no rights until root accepts it.
    package var rests: Bool { self == .putBack || self == .copied || self == .givenUp }
  }

  /// The SHA-256 of the host's public key; for an ephemeral host that has not joined yet the digest
  /// of its invitation.
  package let subject: [UInt8]
  package var kind: Kind
  /// Of the latest start, and the highest number that was said.
  package var random: [UInt8]
  package var number: UInt64
  /// Of the starts before, the latest first.
  package var former: [[UInt8]]
  /// Of a start that has said what is too old, once; and when, in milliseconds since 1970.
  package var suspect: [UInt8]
  package var noted: Int64

  package init(subject: [UInt8], kind: Kind = .usual) {
    (self.subject, self.kind, random, number) = (subject, kind, [], 0)
    (former, suspect, noted) = ([], [], 0)
  }

  package var primaryKey: [UInt8] { subject }

  package static let table: StaticString = "presence"

  package var fields: [[UInt8]] {
    [
      subject, SallyportVerifier.number(kind.rawValue), random, SallyportVerifier.number(number),
      Array(former.joined()), suspect, SallyportVerifier.number(UInt64(bitPattern: noted)),
    ]
  }
}

/// The row of the table `fleet`.
package struct FleetRow: SealedRow {
  /// The least version that a program must understand, and the version that is written.
  package var needs: UInt64
  package var writes: UInt64
  /// How often saves were lost: of a state that was saved under a lower number, unused codes count
  /// as used.
  package var distrust: UInt64
  /// When saves were lost last, in seconds since 1970; 0: never.
  package var distrusted: Int64

  package init(needs: UInt64, writes: UInt64, distrust: UInt64 = 0, distrusted: Int64 = 0) {
    (self.needs, self.writes) = (needs, writes)
    (self.distrust, self.distrusted) = (distrust, distrusted)
  }

  package static let table: StaticString = "fleet"
  /// There is one.
  package var primaryKey: [UInt8] { [] }

  package var fields: [[UInt8]] {
    [number(needs), number(writes), number(distrust), number(UInt64(bitPattern: distrusted))]
  }
}

extension FleetKey {
  /// Of a row.
  static let sealLength = 36

  /// The seal of these values as a row of this table.
  func bind(_ table: StaticString, _ values: [[UInt8]]) throws(CryptoError) -> [UInt8] {
    try present.bind(table, values)
  }

  /// Whether this is such a seal, by the key that it names.
  func isRight(_ seal: [UInt8], _ table: StaticString, _ values: [[UInt8]]) -> Bool {
    guard let id = Self.id(of: seal), let wanted = try? key(id)?.bind(table, values) else {
      return false
    }
    return constantTimeEquals(seal, wanted)
  }

  /// Which key it names; nil for what is too short.
  static func id(of seal: [UInt8]) -> UInt32? {
    seal.count < 4 ? nil : UInt32(truncatingIfNeeded: number(seal.prefix(4)))
  }

  /// For the column `canary`: distinguishes a wrong key from a modified row.
  package func canary() throws(CryptoError) -> [UInt8] { try bind("canary", []) }
}

extension SealingKey {
  func bind(_ table: StaticString, _ values: [[UInt8]]) throws(CryptoError) -> [UInt8] {
    var text =
      FleetKey.counted(OneTimePassword.bytes(of: "seal of a row"))
      + FleetKey.counted(OneTimePassword.bytes(of: table))
    for value in values { text += FleetKey.counted(value) }
    let code = try derive(text)
    return FleetKey.bytes(of: id) + code.bytes(in: 0..<code.count)
  }
}
