/// The limits for a verifier's hosts, and for strangers. Times in nanoseconds.
package struct ConnectionLimits: Sendable {
  /// Threads that answer frames.
  package var workers = 8
  /// Of these, at a time, for one host, so that a host with more questions waits for itself; for
  /// all strangers together; and for questions about one user.
  package var workersOfOne = 4
  package var workersOfStrangers = 1
  package var workersOfUser = 2
  /// And for questions of all hosts about their reserves, so that logins have connections of the
  /// database left.
  package var workersOfReserves = 3
  /// Threads that do handshakes; of these, at a time, for one source address.
  package var greeters = 2
  package var greetersOfOne = 1
  /// Connections whose key is not the fleet's, or not known yet.
  package var strangers = 256
  /// How long one of them is waited for where there is no room for all, and how long one may have
  /// waited before its handshake begins where more than half of the room is taken. A host gives up
  /// after a second.
  package var patience: UInt64 = 500_000_000
  package var untilBegun: UInt64 = 250_000_000
  /// Connections that one host keeps, and how many where more than half of all are taken. The
  /// others go when they are idle.
  package var connectionsOfOne = 32
  package var connectionsInCrowd = 4
  /// Connections of one host, and of all hosts together. One more is not greeted.
  package var mostOfOne = 256
  package var connections = 20_000
  /// How long a handshake may take, and all that a stranger may do.
  package var untilGreeted: UInt64 = 5_000_000_000
  package var ofStranger: UInt64 = 10_000_000_000
  /// How long a frame may take from its first byte to its last.
  package var untilFrame: UInt64 = 2_000_000_000
  /// At the end: how long a question may have been on its way before its host was told, and how
  /// long busy hosts may continue before they are told.
  package var onTheWay: UInt64 = 1_000_000_000
  /// How long a connection may be idle.
  package var idle: UInt64 = 60_000_000_000
  /// How often to check these limits, and for revoked hosts.
  package var round: UInt64 = 500_000_000

  package init() {}

  /// As many connections as there are descriptors for, beside those of files and of the database.
  package init(descriptors: Int) {
    connections = max(1, min(connections, descriptors - strangers - 256))
  }
}
