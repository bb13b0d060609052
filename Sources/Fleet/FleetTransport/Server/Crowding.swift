/// Which connections go where there is no room for all: no other place decides that.
struct Crowding: Sendable {
  /// A connection that may have to go.
  struct Candidate: Sendable {
    let id: UInt64
    /// Since when it waits for its peer; nil: its peer waits for this verifier.
    let idleSince: UInt64?
  }

  /// One whose handshake is not done, or whose key is not the fleet's.
  struct Stranger: Sendable {
    let candidate: Candidate
    /// The machine that it comes from.
    let source: UInt64
  }

  let limits: ConnectionLimits

  /// Of strangers in the order of their arrival, of which there is one too many: the one that goes.
  ///
  /// It is one of the machine that has most of them, so that no machine takes another one's place.
  /// Of these it is the one that was waited for longest. Where none was for long, the newest goes:
  /// in a crowd that comes at once those are served that have begun, and not each a little.
  func stranger(among all: [Stranger], now: UInt64) -> UInt64? {
    var counts: [UInt64: Int] = [:]
    for one in all { counts[one.source, default: 0] += 1 }
    let most = counts.values.max()
    let greediest = all.filter { counts[$0.source] == most }.map(\.candidate)
    let silent = idle(greediest).first { now >= $0.since && now - $0.since >= limits.patience }
    return silent?.id ?? greediest.last?.id
  }

  /// Of the connections of hosts, those of each host together: the ones that go.
  ///
  /// They are those that a host has beyond its share; and then, of all, as many as it takes for one
  /// in sixteen to be free for hosts that come. The longest idle goes first, and none that is not.
  func surplus(of hosts: [[Candidate]]) -> [UInt64] {
    let count = hosts.reduce(0) { $0 + $1.count }
    let isCrowd = count > limits.connections / 2
    let share = isCrowd ? limits.connectionsInCrowd : limits.connectionsOfOne
    var gone: [UInt64] = []
    var others: [Candidate] = []
    for host in hosts {
      let idle = idle(host)
      let surplus = idle.prefix(max(0, host.count - share))
      gone += surplus.map(\.id)
      others += idle.dropFirst(surplus.count).map(\.candidate)
    }
    let most = limits.connections - limits.connections / 16
    let rest = count - gone.count - most
    return rest > 0 ? gone + idle(others).prefix(rest).map(\.id) : gone
  }

  /// Those that are idle, the longest first.
  private func idle(_ all: [Candidate]) -> [(id: UInt64, since: UInt64, candidate: Candidate)] {
    all.compactMap { one in one.idleSince.map { (one.id, $0, one) } }.sorted { $0.1 < $1.1 }
  }
}
