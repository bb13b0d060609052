/// The limits for a verifier's hosts, and for strangers. Times in nanoseconds.
package struct ConnectionLimits: Sendable {
  /// Threads that answer frames.
  package var workers = 8
  /// Of these, at a time, for one host, so that a host with more questions waits for itself; for
  /// all strangers together; and for questions about one user.
  package var workersOfOne = 4
  package var workersOfStrangers = 1
  package var workersOfUser = 2
  /// Threads that do handshakes.
  package var greeters = 2
  /// Connections whose key is not the fleet's, or not known yet. Where there are more, the oldest
  /// goes.
  package var strangers = 128
  /// Connections of one key. Where there are more, the one goes that was idle longest.
  package var connectionsOfOne = 32
  /// All connections. Where there are more, a new one is closed at once.
  package var connections = 3500
  /// How long a handshake may take, and all that a stranger may do.
  package var untilGreeted: UInt64 = 5_000_000_000
  package var ofStranger: UInt64 = 10_000_000_000
  /// How long a frame may take from its first byte to its last, and an answer to be taken.
  package var untilFrame: UInt64 = 2_000_000_000
  package var untilAnswered: UInt64 = 1_000_000_000
  /// At the end: how long a question may have been on its way before its host was told, and how
  /// long busy hosts may continue before they are told.
  package var onTheWay: UInt64 = 1_000_000_000
  /// How long a connection may be idle.
  package var idle: UInt64 = 60_000_000_000
  /// How often to check these limits, and for revoked hosts.
  package var round: UInt64 = 500_000_000

  package init() {}
}
