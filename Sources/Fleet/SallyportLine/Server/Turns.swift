/// Which questions workers are busy with, and which wait for others like them. So neither a host,
/// nor all strangers together, nor the questions about one user, whose row may be locked, hold up
/// everybody.
struct Turns: Sendable {
  /// What has a share of the workers.
  enum Crowd: Hashable, Sendable {
    /// The lines of one host of the fleet.
    case host(Pin)
    /// Those of all others.
    case strangers
    /// The questions about one user, of whatever host.
    case user(UInt64)
  }

  private struct Share: Sendable {
    var busy = 0
    /// Lines, in the order of arrival.
    var waiting: [UInt64] = []
  }

  private let limits: LineLimits
  private var shares: [Crowd: Share] = [:]

  init(_ limits: LineLimits) { self.limits = limits }

  /// Whether a worker may begin with this line. If not, it waits until `next` gives it to one who
  /// is done.
  mutating func begin(_ line: UInt64, of crowd: Crowd) -> Bool {
    guard shares[crowd]?.busy ?? 0 < most(of: crowd) else {
      shares[crowd]?.waiting.append(line)
      return false
    }
    shares[crowd, default: Share()].busy += 1
    return true
  }

  /// The line that waits longest, for a worker who is done with one of the crowd; nil: there is
  /// none, and he is free for others.
  mutating func next(of crowd: Crowd) -> UInt64? {
    guard var share = shares[crowd] else { return nil }
    if !share.waiting.isEmpty {
      let line = share.waiting.removeFirst()
      shares[crowd] = share
      return line
    }
    share.busy -= 1
    shares[crowd] = share.busy > 0 ? share : nil
    return nil
  }

  private func most(of crowd: Crowd) -> Int {
    let most =
      switch crowd {
      case .host: limits.workersOfOne
      case .strangers: limits.workersOfStrangers
      case .user: limits.workersOfUser
      }
    return max(1, most)
  }
}
