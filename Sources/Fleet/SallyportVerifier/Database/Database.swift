import CPostgres
import CService
import Glibc
import OneTimePassword
package import SallyportCore
package import SallyportLogin
package import SallyportSupport
import SallyportSystem

/// One verifier's access to the database of a fleet: connections, the rollback guard, and whether
/// the database is away.
package final class Database: Sendable {
  /// How long to wait for an answer, in milliseconds.
  package static let patience: Int32 = 2000
  private static let stripes = 1024

  package let key: FleetKey
  let rollbackGuard: RollbackGuard
  let meters = VerifierMetrics()
  let counts = HostCounts()
  package let policy: PolicyHolder
  /// In the rows of table `worker`.
  let verifier: [UInt8]
  let words: String
  let incarnationFile: IncarnationFile?
  /// nil: none, as for a command.
  let memory: Memory?
  /// How long a verifier that starts waits for another one, in milliseconds.
  let patienceAtStart: UInt64
  private let log: @Sendable (LogLevel, LogLine) -> Void
  /// In milliseconds since 1970.
  let clock: @Sendable () -> Int64
  /// The time by which codes are verified; nil for the system's.
  let now: (@Sendable () -> UnixTime)?
  let books = Locked(Books())
  /// Which hosts have used up what they may.
  let spent = Locked(SpentRights())
  private let seats: ConnectionSlots
  private let stripes = (0..<Database.stripes).map { _ in UserLock() }
  /// The watch sleeps on it: raised once each time that the database goes away.
  let losses: Int32

  enum Leaving { case no, asked, done }

  /// What the verifier knows of its connections.
  struct Books: Sendable {
    var idle: [DatabaseConnection] = []
    /// Free worker numbers.
    var free: [Int] = []
    /// 0 is the watch's.
    var next = 1
    /// The generation of the connections: a new one after each loss.
    var generation: UInt64 = 1
    /// The server that was verified; nil: none yet.
    var server: [UInt8]?
    /// The last number acknowledged to each worker, and as `witness` that of the row in `state`.
    var acknowledged: [Int: Acknowledged] = [:]
    /// The number of row 0 of each other verifier, as it was read last.
    var others: [[UInt8]: UInt64] = [:]
    /// The others, as they were read last.
    var seen: [[UInt8]: Other] = [:]
    /// The highest number of distrust that was seen.
    var highest: UInt64 = 0
    /// Saves are lost that were acknowledged under this number of distrust or a lower one: only a
    /// higher one than it makes that good. nil: nothing is known to be lost.
    var lost: UInt64?
    /// How often in a row another verifier had raised the watch's row.
    var strangers = 0
    /// Rows of a person could not be believed, and when it is looked at others' next; whose rows
    /// went back meanwhile, under which number of distrust.
    var (isSuspicious, nextLook): (Bool, UInt64) = (false, 0)
    var wentBack: [NameMark: UInt64] = [:]
    /// All logins are refused.
    var isAway = true
    /// The server did not answer before.
    var wasSilent = false
    /// Whether it is to tell the others that it stops, and has.
    var leaving = Leaving.no
    /// This verifier's clock is off.
    var isAside = false
    /// When this clock was compared with the database's last; nil: not yet.
    var compared: ClockWatch.Reading?
    /// Of the database, with its seal, as it was found; nil where this verifier has no file.
    var incarnation: [UInt8]?
    /// What was found last in place of the fleet's row.
    var unfit = ""
    /// The last fleet row with a valid seal.
    var fleet: (seal: [UInt8], row: FleetRow)?
  }

  /// `words`: as libpq has them. `verifier`: this one's name, which must be unique.
  /// `clock`: nil for the system's. `now`: the time by which codes are verified; nil likewise.
  /// `directory`: where a policy is kept; nil: nowhere. `incarnation`: nil for any. `memory`: the
  /// path of its file; nil for none.
  package init(
    _ words: String, key: FleetKey, verifier: [UInt8], connections: Int = 8,
    directory: String? = nil, incarnation: IncarnationFile? = nil, memory: String? = nil,
    patienceAtStart: UInt64 = 60_000,
    clock: (@Sendable () -> Int64)? = nil, now: (@Sendable () -> UnixTime)? = nil,
    log: @escaping @Sendable (LogLevel, LogLine) -> Void
  ) throws(ServiceError) {
    (self.words, self.key, self.verifier) = (words, key, verifier)
    (self.clock, self.log) = (clock ?? { pg_time() }, log)
    (self.now, incarnationFile) = (now, incarnation)
    policy = PolicyHolder(in: directory, key: key, isKept: memory != nil)
    (self.memory, self.patienceAtStart) = (memory.map { Memory(at: $0) }, patienceAtStart)
    seats = ConnectionSlots(connections)
    do throws(StoreTrouble) {
      rollbackGuard = try RollbackGuard()
    } catch {
      throw .system("getrandom", path: "", errno: EIO)
    }
    losses = try ServiceError.check(service_counter(), "eventfd")
    if let others = self.memory?.record?.others { books.withLock { $0.others = others } }
  }

  deinit { close(losses) }

  /// Whether all logins are refused now: the database is not asked then.
  package var isAway: Bool { books.withLock { $0.isAway || $0.isAside } }

  func note(_ level: LogLevel, _ line: LogLine) { log(level, line) }

  func note(_ level: LogLevel, _ text: String) {
    var line = LogLine("")
    line.add(escaped(Array(text.utf8), limit: 400))
    log(level, line)
  }

  func alert(_ text: String) { note(.alert, "ALERT: " + text) }

  // MARK: asking

  /// Asks one statement that begins with these values; returns the generation of its connection
  /// too.
  func ask(_ statement: String, _ values: [Value] = []) throws(DatabaseFault) -> (Rows, UInt64) {
    try ask(statement, since: nil) { _ in values }
  }

  /// The same for a save, whose last values name its connection; `more` follow them. A save uses
  /// the generation of connections that loaded its state.
  func save(
    _ statement: String, _ values: [Value], _ more: [Value] = [], since generation: UInt64
  ) throws(DatabaseFault) -> Rows {
    try ask(statement, since: generation) { connection in
      values + self.values(of: connection) + more
    }.0
  }

  func values(of connection: DatabaseConnection) -> [Value] {
    [.text(verifier), .number(UInt64(connection.worker)), .text(connection.server)]
  }

  /// `since`: nil if nothing is saved.
  private func ask(
    _ statement: String, since: UInt64?, _ values: (DatabaseConnection) -> [Value]
  ) throws(DatabaseFault) -> (Rows, UInt64) {
    guard seats.take() else { throw .unusable("all connections are in use") }
    defer { seats.leave() }
    let (connection, generation) = try takeConnection()
    let witness = books.withLock { $0.acknowledged[Books.witness] }
    if let since, since != generation {
      books.withLock { $0.putBack(connection, generation) }
      throw .moved
    }
    let rows: Rows
    do throws(DatabaseFault) {
      rows = try connection.ask(statement, values(connection))
    } catch {
      drop(connection, after: error)
      throw error
    }
    // An acknowledgment from before a check that is read after it proves nothing.
    let (isInTime, isLost) = books.withLock { books in
      guard books.generation == generation else { return (false, false) }
      books.idle.append(connection)
      guard since != nil else { return (true, false) }
      return (true, !books.acknowledge(rows, to: connection.worker, since: witness))
    }
    if isLost {
      lose("the database has lost saves that it had acknowledged")
      throw .broken("saves are lost")
    }
    guard isInTime || since == nil else { throw .broken("the server may have changed") }
    return (rows, generation)
  }

  private func takeConnection() throws(DatabaseFault) -> (DatabaseConnection, UInt64) {
    if isClockSet() { throw .aside }
    let found = books.withLock { books in
      let isFit = !books.isAway && !books.isAside
      return (
        connection: isFit ? books.idle.popLast() : nil, generation: books.generation,
        isAway: books.isAway, isAside: books.isAside
      )
    }
    if found.isAway { throw .away }
    if found.isAside { throw .aside }
    if let connection = found.connection { return (connection, found.generation) }
    return (try connect(since: found.generation), found.generation)
  }

  /// A new connection to the server that was verified.
  private func connect(since generation: UInt64) throws(DatabaseFault) -> DatabaseConnection {
    let number = books.withLock { $0.number() }
    let connection: DatabaseConnection
    do throws(DatabaseFault) {
      connection = try DatabaseConnection(words, worker: number, preparing: Statement.prepared)
    } catch {
      books.withLock { $0.free.append(number) }
      lose("the database cannot be asked: \(error.text)")
      throw error
    }
    let (isSame, isNow) = books.withLock {
      ($0.server == connection.server, $0.generation == generation && !$0.isAway)
    }
    if isSame, isNow { return connection }
    books.withLock { $0.free.append(number) }
    if isNow { lose("the database server changed or restarted; verifying it") }
    throw .away
  }

  /// It is closed with the last reference. Its number is used again only if the server has ended
  /// the statement: otherwise its row may stay locked.
  private func drop(_ connection: DatabaseConnection, after fault: DatabaseFault) {
    switch fault {
    case .refused: books.withLock { $0.free.append(connection.worker) }
    case .unreachable, .outOfMemory, .away, .aside, .moved, .unusable, .warned: break
    case .broken: books.withLock { $0.forgetIdle() }
    case .silent:
      books.withLock { $0.wasSilent = true }
      lose("the database does not answer")
    }
  }

  /// All logins are refused until the watch has verified the server. `lost`: saves are gone that
  /// were acknowledged under this number of distrust.
  func lose(_ why: String, lost: UInt64? = nil) {
    let isFirst = books.withLock { books in
      if let lost { books.lose(under: lost) }
      defer { books.isAway = true }
      guard !books.isAway else { return false }
      books.generation += 1
      books.forgetIdle()
      return true
    }
    guard isFirst else { return }
    alert(why + "; logins are refused until it answers and passes the check")
    service_count_up(losses, 1)
  }

  // MARK: one after the other

  /// Runs `body` while no other thread of this verifier does so for this user; `busy` if it gets no
  /// turn in time. `deadline`: in nanoseconds of CLOCK_MONOTONIC.
  func alone<R>(
    for user: UInt64, until deadline: UInt64, _ body: () throws(StoreTrouble) -> R
  ) throws(StoreTrouble) -> R {
    let stripe = stripes[Int(user % UInt64(Database.stripes))]
    guard stripe.lock(until: deadline) else { throw .busy(path: "fleet") }
    defer { stripe.unlock() }
    return try body()
  }
}

extension Database.Books {
  mutating func number() -> Int {
    if let number = free.popLast() { return number }
    next += 1
    return next - 1
  }

  mutating func putBack(_ connection: DatabaseConnection, _ generation: UInt64) {
    if self.generation == generation {
      idle.append(connection)
    } else {
      free.append(connection.worker)
    }
  }

  /// Other connections to the same server, which may be gone too.
  mutating func forgetIdle() {
    free += idle.map(\.worker)
    idle = []
  }
}

/// A lock that a thread may hold while it asks the database.
@safe private final class UserLock: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

  // SAFETY: the mutex is made here, stays where it is, and ends with this object alone.
  init() { unsafe pthread_mutex_init(mutex, nil) }
  func lock(until deadline: UInt64) -> Bool { unsafe pg_lock(mutex, deadline) == 0 }
  func unlock() { unsafe pthread_mutex_unlock(mutex) }

  deinit {
    unsafe pthread_mutex_destroy(mutex)
    unsafe mutex.deallocate()
  }
}

/// The number of connections at a time.
@safe private final class ConnectionSlots: @unchecked Sendable {
  private let free = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  // SAFETY: the semaphore is made here, stays where it is, and ends with this object alone.
  init(_ count: Int) { unsafe sem_init(free, 0, UInt32(count)) }
  func leave() { unsafe sem_post(free) }

  /// false if no connection is free in the time that a question may take.
  func take() -> Bool { unsafe pg_take(free, Database.patience) == 0 }

  deinit {
    unsafe sem_destroy(free)
    unsafe free.deallocate()
  }
}
