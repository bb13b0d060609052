import CService
package import FleetProtocol
package import FleetTransport
import Glibc
import OneTimePassword
import SallyportCore
import SallyportLogin
package import SallyportSupport
import SallyportSystem

extension Statement {
  /// $1 keys in hexadecimal, with commas between them. Once in a minute is enough for "last seen".
  fileprivate static let seen = """
    UPDATE host SET seen = now() WHERE (seen IS NULL OR seen < now() - interval '1 minute')
      AND encode(key, 'hex') = ANY (string_to_array($1, ','))
    """

  static let hosts = "SELECT name, key, enrolls, joined, seal, rights, reopened FROM host"

  /// $1 name, $2 seal: of a host that was revoked.
  fileprivate static let removeRevoked = "DELETE FROM host WHERE name = $1 AND seal = $2"
}

/// Who asks: a host of the fleet, and its key.
package struct HostIdentity: Equatable, Sendable {
  /// Its name.
  package let host: [UInt8]
  /// What it may do beside asking.
  package let rights: HostRights
  package let pin: Pin
  /// Whether the host may hold backup codes.
  package let holdsReserve: Bool
  /// Whether it was put back, or runs twice, or says no more which start of its service it is.
  package let rests: Bool
  /// It says no more which start of its service it is.
  package let isSilent: Bool
  /// Up to when its wrong codes do not count, in seconds since 1970.
  var reopened: Int64 = 0

  package init(
    _ pin: Pin, host: [UInt8], rights: HostRights = HostRights(), holdsReserve: Bool = true,
    rests: Bool = false, isSilent: Bool = false
  ) {
    (self.pin, self.host, self.rights) = (pin, host, rights)
    (self.holdsReserve, self.rests, self.isSilent) = (holdsReserve, rests, isSilent)
  }

  /// What is counted where it uses this right for this person; nil: for many. `isOwn`: for a change
  /// that people can make of their own.
  func spending(_ right: HostRight, for name: [UInt8]?, isOwn: Bool = false) -> Spending {
    Spending(
      subject: pin.bytes, host: host, right: right, allowance: rights[right], person: name,
      isOwn: isOwn)
  }
}

/// The hosts of the fleet, as the table `host` said at most five seconds ago.
///
/// All hosts are read at once, so that a stranger costs the database nothing, however many keys he
/// makes.
package final class Hosts: Sendable {
  /// What the table says of a key, or cannot say.
  package enum HostLookup: Equatable, Sendable {
    case host(HostIdentity)
    case stranger
    /// Of a host that was revoked, or has another key since.
    case revoked
    /// The database cannot be asked, and the last answer is too old.
    case unclear
  }

  /// In nanoseconds: when it is read again, and when the last answer expires.
  private static let (renewal, lifetime): (UInt64, UInt64) = (2_000_000_000, 5_000_000_000)
  /// The same without being asked, in milliseconds: before the first question has to wait.
  private static let keeping: Int32 = 1500
  /// The same for an unknown key, whose host may have joined meanwhile.
  private static let renewalForStrangers: UInt64 = 1_000_000_000
  /// Of how many it is written down at a time that they have asked.
  private static let mostNoted = 1000

  private struct Known: Sendable {
    var list = HostList()
    /// Of the hosts in it.
    var rows: [Pin: HostRow] = [:]
    var ephemeral: Set<Pin> = []
    var isBeingRead = false
    /// How often it was read, or could not be.
    var readings = 0
    /// Somebody has joined since it was read, or could have by now.
    var mayBeMore = false
    /// Who has asked since then; and those noted in this minute.
    var asked: Set<Pin> = []
    var noted = NotedHosts()
    /// What was read of the columns `rights`, and of which it was said that they are not right.
    var rights: [[UInt8]: SealedRights] = [:]
    var complaints: Set<[UInt8]> = []
    /// It was said that there is no host at all.
    var isEmpty = false
    var heard = SilentHosts()
    /// Those of which it was said.
    var silent: Set<Pin> = []
  }

  private let database: Database
  private let revocations: Revocations
  private let known = Locked(Known())
  /// Of the thread that reads.
  private let turn = Locked(())
  private let checked = Locked(CheckedRows<HostRow>())
  private let starts = Locked(CheckedRows<PresenceRow>())
  /// In nanoseconds.
  private let silence: UInt64

  /// `revocations`: nil for ones that nothing remembers. `silence`: how long a host asks at most
  /// without saying which start it is, in milliseconds.
  package init(
    _ database: Database, _ revocations: Revocations? = nil,
    silence: Int64 = PresenceRow.silence
  ) {
    (self.database, self.silence) = (database, UInt64(silence) * 1_000_000)
    self.revocations = revocations ?? Revocations(key: database.key)
  }

  /// Starts a thread that reads the tables, also where no host asks: what was revoked and the
  /// database does not know any more is written there again.
  package func keep() throws(ServiceError) { try startThread { [self] in tend() } }

  /// A function and no closure: the optimizer makes one that never returns into another.
  @inline(never) private func tend() {
    var isOver = false
    while !isOver {
      _ = poll(nil, 0, Self.keeping)
      if !database.isAway { read(orWait: false) { _ in false } }
      isOver = database.losses < 0
    }
  }

  /// The host with this key.
  package func lookup(_ pin: Pin) -> HostLookup {
    if revocations.has(pin.bytes) { return .revoked }
    let now = sys_monotonic()
    let (found, since, mayBeMore, readings) = known.withLock { known in
      let found = known.list.hosts[pin]
      if found != nil { known.asked.insert(pin) }
      return (found, known.list.since, known.mayBeMore, known.readings)
    }
    let age = since == 0 ? UInt64.max : now &- since
    let hasJoined = found == nil && mayBeMore
    if hasJoined || age >= (found == nil ? Self.renewalForStrangers : Self.renewal) {
      read(orWait: hasJoined || age >= Self.lifetime) { known in
        // A reading that was under way may be from before it joined.
        known.list.since > now || !hasJoined && known.readings > readings
      }
    }
    return known.withLock { known in
      let list = known.list
      guard list.since != 0, sys_monotonic() &- list.since < Self.lifetime else {
        return .unclear
      }
      if revocations.has(pin.bytes) { return .revoked }
      return list.hosts[pin].map { .host($0) } ?? .stranger
    }
  }

  /// One with an unknown key has connected.
  package func noteStranger() {
    let isNews = known.withLock { known in
      let isEmpty = known.list.since != 0 && known.list.hosts.isEmpty
      defer { known.isEmpty = isEmpty }
      return isEmpty && !known.isEmpty
    }
    guard isNews else { return }
    let (rows, _) = (try? database.ask(Statement.name)) ?? (nil, 0)
    database.note(
      .warning,
      "the database \(rows?.text(0, 0) ?? "") has no host, and one asks: is it the fleet's? "
        + "The host asks the next verifier")
  }

  /// Somebody with a token has asked: the next one who is not found is looked for at once.
  func expectMore() { known.withLock { $0.mayBeMore = true } }

  /// The last answer, however old: enough to keep a connection, not to answer on it.
  package func wasKnown(_ pin: Pin) -> Bool {
    known.withLock { $0.list.since == 0 || $0.list.hosts[pin] != nil }
  }

  /// The row of the host with this key, as the last answer had it, however old.
  func row(of pin: Pin) -> HostRow? { known.withLock { $0.rows[pin] } }
  /// Whether it keeps nothing, as far as that answer had it.
  func isEphemeral(_ pin: Pin) -> Bool { known.withLock { $0.ephemeral.contains(pin) } }

  /// How often the table was read; and whether it is now.
  var readings: Int { known.withLock { $0.readings } }
  var isBeingRead: Bool { known.withLock { $0.isBeingRead } }

  /// One thread reads: where there are many hosts that takes a while, and would take longer if
  /// each thread that needs it did so. Others go on with what there is, unless that is too old:
  /// then they wait, and read themselves where it is not `enough` what was read meanwhile.
  private func read(orWait mustWait: Bool, _ enough: (Known) -> Bool) {
    let isFirst = known.withLock { known in
      defer { known.isBeingRead = true }
      return !known.isBeingRead
    }
    guard isFirst || mustWait else { return }
    let asked = turn.withLock { _ in known.withLock { enough($0) } ? [] : readAlone() }
    known.withLock { $0.isBeingRead = false }
    note(asked)
  }

  /// Who has asked, and is to be noted.
  private func readAlone() -> [Pin] {
    let start = sys_monotonic()
    known.withLock { $0.mayBeMore = false }
    let found = table()
    return known.withLock { known in
      known.readings += 1
      guard let found, known.list.take(found.hosts, asOf: start) else { return [] }
      (known.rows, known.ephemeral) = (found.rows, found.ephemeral)
      defer { known.asked = [] }
      return known.noted.add(known.asked, at: start)
    }
  }

  /// For people: nothing depends on it. In parts: a database that takes seconds for one statement
  /// counts as away.
  private func note(_ asked: [Pin]) {
    for start in stride(from: 0, to: asked.count, by: Self.mostNoted) {
      let part = asked[start..<min(start + Self.mostNoted, asked.count)]
      let keys = Array(part.map(\.hex).joined(separator: ",").utf8)
      _ = try? database.ask(Statement.seen, [.text(keys)])
    }
  }

  /// What was revoked is read after the hosts: who is revoked meanwhile is none.
  ///
  /// `former`: whose rights were void in the reading before this one. `left`: how often it may be
  /// read again.
  private func table(after former: Set<[UInt8]> = [], left: Int = 8)
    -> (hosts: [HostIdentity], rows: [Pin: HostRow], ephemeral: Set<Pin>)?
  {
    do throws(DatabaseFault) {
      let (rows, _) = try database.ask(Statement.hosts)
      try revocations.settle(by: database)
      let (kinds, silent) = try presences()
      var hosts: [HostIdentity] = []
      var read: [[UInt8]: SealedRights] = [:]
      var (byPin, ephemeral): ([Pin: HostRow], Set<Pin>) = ([:], [])
      var news: [(host: [UInt8], rights: [UInt8])] = []
      for (found, seal, row) in sealed(rows) {
        guard let pin = found.key.flatMap(Pin.init) else { continue }
        if revocations.has(pin.bytes) || revocations.isVoid(found) {
          try remove(found.name, seal)
        } else {
          let kind = kinds[pin.bytes] ?? .usual
          let column = rows.bytes(row, 5)
          let rights = rights(column, seal, of: found, &read)
          if rights == nil { news.append((found.name, column ?? seal)) }
          let isSilent = silent.contains(pin)
          if isSilent { complain(ofSilent: pin, found) }
          let rests = kind.rests || isSilent || revocations.rests(found.name, pin.bytes)
          var host = HostIdentity(
            pin, host: found.name, rights: rests ? HostRights() : rights ?? HostRights(),
            holdsReserve: kind == .usual && !rests, rests: rests, isSilent: isSilent)
          host.reopened = Reopening.read(rows.bytes(row, 6), under: database.key, of: found)
          hosts.append(host)
          byPin[pin] = found
          if kind == .ephemeral { ephemeral.insert(pin) }
        }
      }
      known.withLock { $0.rights = read }
      // Root may have changed them between the two: only what stands there still is void.
      let void = Set(news.map { $0.host + $0.rights })
      let isNews = known.withLock { !void.subtracting(former).isSubset(of: $0.complaints) }
      if isNews, left > 0 { return table(after: void, left: left - 1) }
      for one in news { complain(ofRights: one.rights, of: one.host) }
      return (hosts, byPin, ephemeral)
    } catch {
      database.note(.error, "database error: hosts: \(error.text)")
      return nil
    }
  }

  /// Those that nobody without the key has made or changed.
  private func sealed(_ rows: Rows) -> [(HostRow, seal: [UInt8], row: Int)] {
    checked.withLock { checked in
      checked.begin()
      return (0..<rows.count).compactMap { row in
        guard let found = HostRow(rows, row), let seal = rows.bytes(row, 4) else { return nil }
        let (isRight, isNews) = checked.check(found, seal, under: database.key)
        if !isRight, isNews { database.alert(found.forged) }
        return isRight ? (found, seal, row) : nil
      }
    }
  }

  /// nil where they are not the last ones that root gave. `seal`: of the row. `read`: what is read
  /// now; what was read before, and stands there still, is right.
  private func rights(
    _ column: [UInt8]?, _ seal: [UInt8], of host: HostRow, _ read: inout [[UInt8]: SealedRights]
  ) -> HostRights? {
    let found: SealedRights?
    if let column {
      let place = seal + column
      found =
        known.withLock { $0.rights[place] }
        ?? SealedRights.read(column, under: database.key, of: .host(host))
      read[place] = found
    } else {
      found = SealedRights(formerOf: host)
    }
    let end = revocations.end(of: SealedRights.name(of: host))
    return found.flatMap { $0.isVoid(since: end) ? nil : $0.rights }
  }

  /// Once of each. `rights`: as the row has them.
  private func complain(ofRights rights: [UInt8], of host: [UInt8]) {
    guard known.withLock({ $0.complaints.insert(host + rights).inserted }) else { return }
    let name = String(decoding: host, as: UTF8.self)
    database.alert(
      "host \(name): its rights are not the last ones that were given, or somebody without the "
        + "key made them: it has none until sallyport-verifier hosts allow \(name)")
  }

  /// Of hosts and invitations. One of which somebody without the key has made or changed the row
  /// rests. With those that say nothing more.
  private func presences() throws(DatabaseFault) -> ([[UInt8]: PresenceRow.Kind], Set<Pin>) {
    let (rows, _) = try database.ask(Statement.presences)
    var right: [PresenceRow] = []
    let kinds = starts.withLock { starts in
      starts.begin()
      var kinds: [[UInt8]: PresenceRow.Kind] = [:]
      for row in 0..<rows.count {
        guard let subject = rows.bytes(row, 0) else { continue }
        guard let found = PresenceRow(rows, row), let seal = rows.bytes(row, 7) else {
          kinds[subject] = .putBack
          continue
        }
        let (isRight, isNews) = starts.check(found, seal, under: database.key)
        kinds[subject] = isRight ? found.kind : .putBack
        if isRight { right.append(found) }
        if !isRight, isNews { complain(of: subject) }
      }
      return kinds
    }
    let silent = known.withLock { known in
      let silent = known.heard.take(
        right, known.asked, at: sys_monotonic(), silence: silence)
      known.silent.formIntersection(silent)
      return silent
    }
    return (kinds, silent)
  }

  private func complain(ofSilent pin: Pin, _ host: HostRow) {
    guard known.withLock({ $0.silent.insert(pin).inserted }) else { return }
    let name = String(decoding: host.name, as: UTF8.self)
    database.alert(
      "host \(name) no longer says which start of its service it is, as if it was put back to "
        + "before its upgrade: its reserve and its rights rest until it does; if that is on "
        + "purpose, sallyport-verifier hosts accept \(name)")
  }

  private func complain(of subject: [UInt8]) {
    database.alert(
      "somebody without the key made or changed the row of starts of the host with the key "
        + "\(String(decoding: hexadecimal(subject), as: UTF8.self)): the host rests "
        + "(sallyport-verifier hosts)")
  }

  private func remove(_ host: [UInt8], _ seal: [UInt8]) throws(DatabaseFault) {
    _ = try database.ask(Statement.removeRevoked, [.text(host), .bytes(seal)])
    database.alert(
      "host \(String(decoding: host, as: UTF8.self)) was revoked, and its row was there again: "
        + "it is removed")
  }
}

extension HostRow {
  /// name, key, enrolls and joined from this column on, whatever the seal says.
  init?(_ rows: Rows, _ row: Int, from column: Int = 0) {
    guard let name = rows.bytes(row, column), let enrolls = rows.bytes(row, column + 2),
      let joined = rows.number(row, column + 3)
    else { return nil }
    self.init(
      name: name, key: rows.bytes(row, column + 1), enrolls: enrolls == [1],
      joined: Int64(clamping: joined))
  }

  /// What is told where its seal is not right.
  var forged: String {
    "host \(String(decoding: name, as: UTF8.self)): its row was made or changed by somebody "
      + "without the key"
  }
}
