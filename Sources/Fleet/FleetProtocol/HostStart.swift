import SallyportCore

/// What a host says of itself each time that it reaches the fleet again: by that a host is found
/// whose disk was put back, or that was copied (docs/fleet-format.md).
package struct HostStart: Equatable, Sendable {
  /// Of each start of its service, `randomLength` bytes.
  package let random: [UInt8]
  /// Higher at each start, and before a code of the reserve lets somebody in; on disk before that.
  package let number: UInt64
  /// For how many seconds all that the host holds is confirmed: since the confirmation of the whole
  /// began that was finished last. nil: none was, by this start.
  package var confirmed: UInt64?

  package static let randomLength = 16

  package init(random: [UInt8], number: UInt64) { (self.random, self.number) = (random, number) }
}

/// What a verifier makes of it.
package enum HostStartReply: Int, Sendable, CaseIterable {
  case fine = 5
  /// It is older than what was said before. It may have been late: say it again.
  case again
  /// The host was put back, or there are two of it: it holds no backup codes and has no rights,
  /// until root accepts it.
  case rests
}

extension HostStart {
  static func pass(_ start: Self?, _ fields: inout Fields) -> Self {
    var said = Self(
      random: fields.bytes(start?.random, randomLength), number: fields.number(start?.number))
    said.confirmed = fields.optional(start?.confirmed) { $0.number($1) }
    return said
  }
}
