/// The questions that workers handle, and those that wait for others of the same kind. So neither
/// one host, nor all strangers together, nor questions about one user, whose row may be locked, nor
/// a crowd of hosts that confirm their reserves, delay all others; nor do the handshakes with one
/// machine delay those with others.
struct FairQueue: Sendable {
  /// What has a share of the workers.
  enum QueueKey: Hashable, Sendable {
    /// The connections of one host of the fleet.
    case host(Pin)
    /// The connections of all strangers.
    case strangers
    /// The handshakes with one machine.
    case source(UInt64)
    /// The questions about one user, from any host.
    case user(UInt64)
    /// The questions of all hosts about their reserves.
    case reserves
  }

  private struct Share: Sendable {
    var busy = 0
    /// Connections, in the order of arrival.
    var waiting: [UInt64] = []
  }

  private let limits: ConnectionLimits
  private var shares: [QueueKey: Share] = [:]

  init(_ limits: ConnectionLimits) { self.limits = limits }

  /// Whether a worker may begin with this connection. If not, it waits until `next` gives it to a
  /// free worker.
  mutating func begin(_ connection: UInt64, of queueKey: QueueKey) -> Bool {
    guard shares[queueKey]?.busy ?? 0 < most(of: queueKey) else {
      shares[queueKey]?.waiting.append(connection)
      return false
    }
    shares[queueKey, default: Share()].busy += 1
    return true
  }

  /// The connection that waits longest, for a worker who is done with another of the same key. nil:
  /// there is none, and the worker is free for others.
  mutating func next(of queueKey: QueueKey) -> UInt64? {
    guard var share = shares[queueKey] else { return nil }
    if !share.waiting.isEmpty {
      let connection = share.waiting.removeFirst()
      shares[queueKey] = share
      return connection
    }
    share.busy -= 1
    shares[queueKey] = share.busy > 0 ? share : nil
    return nil
  }

  private func most(of queueKey: QueueKey) -> Int {
    let most =
      switch queueKey {
      case .host: limits.workersOfOne
      case .strangers: limits.workersOfStrangers
      case .source: limits.greetersOfOne
      case .user: limits.workersOfUser
      case .reserves: limits.workersOfReserves
      }
    return max(1, most)
  }
}
