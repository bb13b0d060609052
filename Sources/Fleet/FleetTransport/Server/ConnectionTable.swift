import CService
import CTLS

/// Table of a verifier's connections: owner, state, queue.
///
/// A connection is watched by one of two epolls, that of handshakes or that of frames, and each
/// report of one is single: a thread that takes it up owns the connection (`claim`) until
/// `release` watches it again. Both happen under the table's lock; so does forgetting a connection,
/// which is closed with its last reference.
struct ConnectionTable: Sendable {
  /// Tag of what ends the waiting of all threads.
  static let endTag: UInt64 = 0
  /// In nanoseconds: until an answer has been read.
  private static let lately: UInt64 = 20_000_000
  /// For how long it is known, where strangers are refused, that there is no room.
  private static let moment: UInt64 = 10_000_000

  /// What is known of a connection.
  struct Entry: Sendable {
    let connection: ServerConnection
    let since: UInt64
    /// nil until the handshake is done.
    var pin: Pin?
    /// Of a host of the fleet.
    var isKnown = false
    /// Somebody has it.
    var isBusy = false
    /// Its owner has to close it.
    var isDoomed = false
    /// Since when part of a frame is here.
    var begun: UInt64?
    var used: UInt64
    /// It waits for others of its line.
    var request: FleetServer.Request?
    /// When the peer was told that this is the end.
    var told: UInt64?
  }

  private let limits: ConnectionLimits
  private let greeting: Int32
  private let frames: Int32
  private var entries: [UInt64: Entry] = [:]
  /// Of each key.
  private var connections: [Pin: [UInt64]] = [:]
  private var turns: FairQueue
  private let crowding: Crowding
  /// With the machines that they come from, in the order of arrival.
  private var strangers: [(id: UInt64, source: UInt64)] = []
  /// Until when one more finds no room either of a machine that has this number then, or more.
  private var full: (until: UInt64, most: Int) = (0, 0)
  private var next: UInt64 = 1
  /// Since when nothing begins any more.
  private var leaving: UInt64?

  init(_ limits: ConnectionLimits, greeting: Int32, frames: Int32) {
    (self.limits, self.greeting, self.frames) = (limits, greeting, frames)
    (turns, crowding) = (FairQueue(limits), Crowding(limits: limits))
  }

  var count: Int { entries.count }

  var isLeaving: Bool { leaving != nil }

  /// nil: none for one more that comes from this machine. What is given back is to be dropped
  /// outside of the lock, here and below.
  mutating func makeRoom(forOneFrom source: UInt64, now: UInt64) -> [ServerConnection]? {
    if isLeaving { return nil }
    guard strangers.count >= limits.strangers else { return [] }
    let count = strangers.count { $0.source == source } + 1
    // Thousands of hosts that come back at once are refused some times each.
    if now < full.until, count >= full.most { return nil }
    var all = strangers.compactMap { one in
      entries[one.id].map {
        Crowding.Stranger(candidate: candidate(one.id, $0), source: one.source)
      }
    }
    let new = Crowding.Candidate(id: next, idleSince: now)
    all.append(Crowding.Stranger(candidate: new, source: source))
    guard let gone = crowding.stranger(among: all, now: now), gone != next else {
      full = (until: now + Self.moment, most: count)
      return nil
    }
    return close(gone)
  }

  private func candidate(_ id: UInt64, _ entry: Entry) -> Crowding.Candidate {
    let isIdle = !entry.isBusy && entry.begun == nil
    return Crowding.Candidate(id: id, idleSince: isIdle ? entry.used : nil)
  }

  /// Tells of the connection when there is something to read.
  mutating func add(_ connection: ServerConnection, now: UInt64) -> [ServerConnection] {
    let id = next
    next += 1
    connection.id = id
    entries[id] = Entry(connection: connection, since: now, used: now)
    strangers.append((id, connection.source))
    return tls_watch(greeting, connection.descriptor, id, Int32(tls_in), 1) < 0 ? close(id) : []
  }

  // MARK: one at a time

  /// The connection for the caller, if it is there and has no owner.
  mutating func claim(_ id: UInt64) -> ServerConnection? {
    guard let entry = entries[id], !entry.isBusy, !entry.isDoomed else { return nil }
    entries[id]?.isBusy = true
    return entry.connection
  }

  /// Watches it again. `begun`: whether part of a frame is here.
  mutating func release(
    _ id: UInt64, toWrite: Bool = false, begun: Bool = false, now: UInt64
  ) -> [ServerConnection] {
    guard let entry = entries[id] else { return [] }
    if entry.isDoomed { return forget(id) }
    entries[id]?.isBusy = false
    entries[id]?.used = now
    entries[id]?.begun = begun ? entry.begun ?? now : nil
    let epoll = entry.pin == nil ? greeting : frames
    let what = Int32(toWrite ? tls_out : tls_in)
    return tls_watch(epoll, entry.connection.descriptor, id, what, 0) < 0 ? forget(id) : []
  }

  /// Whether there is room for one more of this key.
  func hasRoom(for pin: Pin) -> Bool {
    !isLeaving && connections[pin]?.count ?? 0 < limits.mostOfOne
      && entries.count - strangers.count < limits.connections
  }

  /// Of a claimed connection whose handshake is done.
  mutating func greet(_ id: UInt64, _ pin: Pin, isKnown: Bool, now: UInt64) -> [ServerConnection] {
    guard let entry = entries[id], !entry.isDoomed else { return forget(id) }
    entries[id]?.pin = pin
    entries[id]?.isKnown = isKnown
    entries[id]?.isBusy = false
    entries[id]?.used = now
    connections[pin, default: []].append(id)
    if isKnown { strangers.removeAll { $0.id == id } }
    tls_unwatch(greeting, entry.connection.descriptor)
    if tls_watch(frames, entry.connection.descriptor, id, Int32(tls_in), 1) < 0 {
      return forget(id)
    }
    return []
  }

  // MARK: whose turn it is

  /// Whether the handshake of this claimed connection may go on now. If not, a thread that is done
  /// with another one of that machine is given it.
  mutating func beginGreeting(_ connection: ServerConnection) -> Bool {
    turns.begin(connection.id, of: .source(connection.source))
  }

  /// The key of the queue in which this claimed connection may be served now. nil: a worker who is
  /// done with another connection of that key is given it.
  mutating func begin(_ id: UInt64) -> FairQueue.QueueKey? {
    guard let entry = entries[id], let pin = entry.pin else { return nil }
    let queueKey = entry.isKnown ? FairQueue.QueueKey.host(pin) : .strangers
    return turns.begin(id, of: queueKey) ? queueKey : nil
  }

  /// Whether to go on with the handshake of this claimed connection, of which each part costs more
  /// than all before it. Not with one whose time is over; nor, in a crowd, with one that has waited
  /// so long for the first part that it will be gone before the last: so that a verifier that is
  /// slow greets some in time and not all of them too late.
  func isWanted(_ id: UInt64, now: UInt64) -> Bool {
    guard let entry = entries[id], !entry.isDoomed else { return false }
    let isBegun = entry.used != entry.since
    return isBegun || strangers.count <= limits.strangers / 2
      || now &- entry.since <= limits.untilBegun
  }

  /// Another connection of that key that was waiting, for a thread that is done with one.
  mutating func next(of queueKey: FairQueue.QueueKey) -> ServerConnection? {
    while let id = turns.next(of: queueKey) {
      if let entry = entries[id] { return entry.connection }
    }
    return nil
  }

  /// Whether the question of this claimed connection may be answered now. If not, a thread that is
  /// done with another one of that key will be given both.
  mutating func begin(
    _ request: FleetServer.Request, of queueKey: FairQueue.QueueKey, on id: UInt64
  ) -> Bool {
    if turns.begin(id, of: queueKey) { return true }
    entries[id]?.request = request
    return false
  }

  mutating func nextRequest(
    of queueKey: FairQueue.QueueKey
  ) -> (ServerConnection, FleetServer.Request)? {
    while let id = turns.next(of: queueKey) {
      guard let entry = entries[id], let request = entry.request else { continue }
      entries[id]?.request = nil
      return (entry.connection, request)
    }
    return nil
  }

  // MARK: the end of a connection

  /// At once where it has no owner, else by its owner.
  mutating func close(_ id: UInt64) -> [ServerConnection] {
    guard let entry = entries[id] else { return [] }
    guard entry.isBusy else { return forget(id) }
    entries[id]?.isDoomed = true
    strangers.removeAll { $0.id == id }
    return []
  }

  /// By its owner.
  mutating func forget(_ id: UInt64) -> [ServerConnection] {
    guard let entry = entries.removeValue(forKey: id) else { return [] }
    strangers.removeAll { $0.id == id }
    if let pin = entry.pin {
      connections[pin]?.removeAll { $0 == id }
      if connections[pin]?.isEmpty == true { connections[pin] = nil }
    }
    return [entry.connection]
  }

  /// What is to be done with connections that nobody has.
  struct Leave {
    /// Claimed, to be told of the end; then to be released.
    var toTell: [ServerConnection] = []
    var closed: [ServerConnection] = []
  }

  /// Takes no new connections from now on, and tells who has one, when no answer is on its way to
  /// him: he asks another verifier then. What he had sent before he was told is answered; a
  /// connection is closed when he has closed it, or nothing more can come.
  mutating func leave(now: UInt64) -> Leave {
    let since = leaving ?? now
    leaving = since
    var leave = Leave()
    for (id, entry) in entries where !entry.isBusy && entry.begun == nil {
      if entry.told != nil {
        if hasLeft(entry, now) { leave.closed += forget(id) }
      } else if entry.pin == nil {
        leave.closed += forget(id)
      } else if now > entry.used + Self.lately && entry.connection.awaitsAnswer
        || now > since + limits.onTheWay
      {
        leave.toTell += tell(id, entry, now)
      }
    }
    return leave
  }

  /// Of one that was told: whether nothing more can be on its way.
  private func hasLeft(_ entry: Entry, _ now: UInt64) -> Bool {
    entry.told.map { now > max($0, entry.used) + limits.onTheWay } ?? false
  }

  /// All of them.
  mutating func forgetAll() -> [ServerConnection] {
    defer { (entries, connections, strangers) = ([:], [:], []) }
    return entries.values.map(\.connection)
  }

  /// The keys that have connections.
  var pins: [Pin] { Array(connections.keys) }

  /// Closes what has had its time, and the connections of hosts that are none of the fleet any
  /// more; and tells the hosts of those for which there is no room. They are closed when what was
  /// on its way is answered.
  mutating func sweep(_ others: Set<Pin>, now: UInt64) -> Leave {
    var over: [UInt64] = []
    for (id, entry) in entries where !entry.isDoomed {
      if isOver(entry, others, now) { over.append(id) }
    }
    var leave = Leave(closed: over.flatMap { close($0) })
    let hosts = connections.values.map { ids in
      ids.compactMap { id in
        entries[id].flatMap { $0.isKnown && $0.told == nil ? candidate(id, $0) : nil }
      }
    }
    for id in crowding.surplus(of: hosts) {
      if let entry = entries[id], entry.connection.awaitsAnswer {
        leave.toTell += tell(id, entry, now)
      }
    }
    return leave
  }

  private mutating func tell(_ id: UInt64, _ entry: Entry, _ now: UInt64) -> [ServerConnection] {
    entries[id]?.isBusy = true
    entries[id]?.told = now
    return [entry.connection]
  }

  private mutating func isOver(_ entry: Entry, _ others: Set<Pin>, _ now: UInt64) -> Bool {
    let age = now &- entry.since
    guard let pin = entry.pin else { return age > limits.untilGreeted }
    if entry.isKnown, others.contains(pin) { return true }
    if !entry.isKnown, age > limits.ofStranger { return true }
    if entry.isBusy { return false }
    if entry.begun == nil, hasLeft(entry, now) { return true }
    if let begun = entry.begun, now &- begun > limits.untilFrame, now > begun { return true }
    return now > entry.used && now &- entry.used > limits.idle
  }
}
