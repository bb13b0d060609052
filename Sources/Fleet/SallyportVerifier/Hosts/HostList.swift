import FleetTransport

/// Of which hosts it was written down in this minute that they have asked.
struct NotedHosts: Sendable {
  private static let minute: UInt64 = 60_000_000_000
  private var (pins, since): (Set<Pin>, UInt64) = ([], 0)

  /// Of these, the others. `now`: in nanoseconds.
  mutating func add(_ asked: Set<Pin>, at now: UInt64) -> [Pin] {
    if now &- since >= Self.minute { (pins, since) = ([], now) }
    return asked.filter { pins.insert($0).inserted }
  }
}

/// What is known of the table.
struct HostList: Sendable {
  private(set) var hosts: [Pin: HostIdentity] = [:]
  /// When it was read; 0: never.
  private(set) var since: UInt64 = 0

  /// Of several that read at a time, what was asked for last counts: a host that joined meanwhile
  /// is not gone because it is not in an older answer, which is false.
  mutating func take(_ found: [HostIdentity], asOf start: UInt64) -> Bool {
    guard start > since else { return false }
    since = start
    hosts = Dictionary(found.map { ($0.pin, $0) }) { _, last in last }
    return true
  }
}
