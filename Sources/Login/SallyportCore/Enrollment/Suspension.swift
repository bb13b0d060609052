/// What was enrolled before a login with a pass enrolled again. It is kept in files of its own,
/// which no login reads, and from which root can bring it back for a while.
package struct Suspension: Equatable, Sendable {
  /// The most that an enrollment names.
  package static let maximum = 8
  /// In seconds: how long each is kept.
  static let lifetime: Int64 = 7 * 86_400

  /// Random, never 0; the names of the files have it.
  package let id: UInt64
  /// When the new enrollment took its place.
  package let since: UnixTime

  package init(id: UInt64, since: UnixTime) { (self.id, self.since) = (id, since) }

  package var until: UnixTime {
    UnixTime(min(since.seconds, Int64.max - Suspension.lifetime) + Suspension.lifetime)
  }
}
