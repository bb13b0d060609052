/// The limits of one socket of the service, and of one share of it.
package struct Limits: Sendable {
  /// Threads that work on packets.
  package var workers: Int
  /// Of these, at a time, for one share that is not root's.
  package var workersOfOne = 4
  /// Connections whose packet is not there yet.
  package var connections = 128
  /// Packets that wait for a worker.
  package var packets = 128
  /// How long a connection may take to its packet, in nanoseconds.
  package var untilPacket: UInt64 = 1_000_000_000
  /// How long a packet may wait for a worker, in nanoseconds: its sender has given up then.
  package var untilWork: UInt64 = 5_000_000_000

  package init(workers: Int) { self.workers = workers }

  package static let root = Limits(workers: 16)
  package static let everybody = Limits(workers: 8)

  /// Workers for all that are not root, so that some are left for root's own logins.
  var workersOfUsers: Int { max(1, workers - workers / 4) }
}

/// Which waiting one has to go when there is no room for one more: the longest waiting one of the
/// share that has most. So no user can drive out another. `shares` is in the order of arrival, and
/// not empty.
func crowdedOut(of shares: [Share]) -> Int? {
  let counts = shares.reduce(into: [Share: Int]()) { $0[$1, default: 0] += 1 }
  let most = counts.values.max()
  return shares.firstIndex { counts[$0] == most }
}
