package import SallyportCore

/// That nothing of a user of a fleet is accepted on any host (`sallyport block`).
package struct FleetBlock: Equatable, Sendable {
  /// Never before 1970.
  package let since: UnixTime
  /// When it ends; nil if only `--undo` ends it. Never before 1970.
  package let until: UnixTime?
  /// The member of the helpdesk who set it; nil: root did.
  package let helper: UserName?

  package init(since: UnixTime, until: UnixTime?, helper: UserName? = nil) {
    (self.since, self.until, self.helper) = (since, until, helper)
  }

  /// As the files of a machine have it.
  package func block(of user: UserName) -> Block {
    Block(user: user, uid: nil, until: until, since: since, helper: helper)
  }
}

extension Fields {
  /// The two times, the second after a byte that says whether it is there, and the helper's name.
  mutating func block(_ block: FleetBlock?) -> FleetBlock {
    let since = time(block?.since)
    let until = end(block.map(\.until))
    let name = counted(block.map { $0.helper?.bytes ?? [] })
    let helper = UserName(name)
    if since.seconds < 0 || helper == nil && !name.isEmpty { fail() }
    return FleetBlock(since: since, until: until, helper: helper)
  }

  /// Of a block; outside nil: to be read.
  mutating func end(_ end: UnixTime??) -> UnixTime? {
    let isThere = flag(end.map { $0 != nil })
    guard isThere else { return nil }
    let time = time(end ?? nil)
    if time.seconds < 0 { fail() }
    return time
  }
}
