import CService
import Glibc
import OneTimePassword
package import SallyportLogin
package import SallyportService
import SallyportSystem
import Synchronization

/// The database of a fleet as one verifier has it: connections, the floor, and whether it is away.
package final class Database: Sendable {
  /// How long an answer is waited for, in milliseconds.
  package static let patience: Int32 = 2000
  /// The same for the connection that looks whether the database is back. Each that is given up
  /// leaves one at the server, which waits on.
  private static let patienceOfProbe: Int32 = 60_000
  private static let stripes = 1024

  let key: FleetKey
  let floor = Floor()
  /// In the rows of table `worker`.
  private let verifier: [UInt8]
  private let words: String
  private let log: @Sendable (LogLevel, LogLine) -> Void
  private let pool = Mutex(Pool())
  private let stripes = (0..<Database.stripes).map { _ in Stripe() }
  private let away = Atomic<Bool>(false)
  /// What the probe sleeps on: one for each time that it went away.
  private let losses: Int32

  private struct Pool {
    var idle: [DatabaseLine] = []
    /// Numbers of workers that no connection has.
    var free: [Int] = []
    /// 0 is the probe's.
    var next = 1
  }

  /// `words`: as libpq has them. `verifier`: this one's name, of which there must be no other.
  package init(
    _ words: String, key: FleetKey, verifier: [UInt8],
    log: @escaping @Sendable (LogLevel, LogLine) -> Void
  ) throws(ServiceError) {
    (self.words, self.key, self.verifier, self.log) = (words, key, verifier, log)
    losses = try ServiceError.check(service_counter(), "eventfd")
  }

  deinit { close(losses) }

  // MARK: asking

  /// Asks one statement that begins with these values.
  func ask(_ statement: String, _ values: [Value]) throws(DatabaseFault) -> Rows {
    try ask(statement) { _ in values }
  }

  /// The same of a save, whose last values tell which connection it went by. `more` follow them.
  func save(_ statement: String, _ values: [Value], _ more: [Value] = []) throws(DatabaseFault)
    -> Rows
  {
    try ask(statement) { line in values + self.values(of: line) + more }
  }

  private func values(of line: DatabaseLine) -> [Value] {
    [.text(verifier), .number(UInt64(line.worker)), .text(line.timeline)]
  }

  private func ask(_ statement: String, _ values: (DatabaseLine) -> [Value])
    throws(DatabaseFault) -> Rows
  {
    if away.load(ordering: .acquiring) { throw .away }
    let line = try takeLine()
    do throws(DatabaseFault) {
      let rows = try line.ask(statement, values(line), Database.patience)
      pool.withLock { $0.idle.append(line) }
      return rows
    } catch {
      drop(line, after: error)
      throw error
    }
  }

  private func takeLine() throws(DatabaseFault) -> DatabaseLine {
    let (line, number) = pool.withLock { pool -> (DatabaseLine?, Int) in
      if let line = pool.idle.popLast() { return (line, 0) }
      if let number = pool.free.popLast() { return (nil, number) }
      pool.next += 1
      return (nil, pool.next - 1)
    }
    if let line { return line }
    do throws(DatabaseFault) {
      return try DatabaseLine(words, worker: number)
    } catch {
      pool.withLock { $0.free.append(number) }
      throw error
    }
  }

  /// It is closed with the last reference. Its number is used again only where the server has ended
  /// what was asked: else its row may be locked for as long as that goes on.
  private func drop(_ line: DatabaseLine, after fault: DatabaseFault) {
    switch fault {
    case .refused: pool.withLock { $0.free.append(line.worker) }
    case .unreachable, .outOfMemory, .away, .warned: break
    case .broken: forgetIdle()
    case .silent:
      forgetIdle()
      lose()
    }
  }

  /// Of the same server, and perhaps gone too.
  private func forgetIdle() {
    let idle = pool.withLock { pool in
      defer { pool.idle = [] }
      return pool.idle
    }
    pool.withLock { $0.free += idle.map(\.worker) }
  }

  // MARK: away

  private func lose() {
    guard !away.exchange(true, ordering: .acquiringAndReleasing) else { return }
    log(.alert, LogLine("the database does not answer: nobody is judged until it does"))
    service_count_up(losses, 1)
  }

  /// Starts the thread that looks, while the database is away, whether it is back.
  package func watch() throws(ServiceError) {
    try startThread { [self] in
      while true {
        service_count_down(losses)
        while !isBack { _ = poll(nil, 0, Database.patience) }
        away.store(false, ordering: .releasing)
        log(.notice, LogLine("the database answers again"))
      }
    }
  }

  /// Whether a save is acknowledged: behind a standby that is gone, reading works and says nothing.
  private var isBack: Bool {
    do throws(DatabaseFault) {
      let line = try DatabaseLine(words, worker: 0)
      _ = try line.ask(Statement.probe, values(of: line), Database.patienceOfProbe)
      return true
    } catch {
      return false
    }
  }

  /// What another process of this name left. Throws where the database cannot be used.
  package func begin() throws(DatabaseFault) {
    guard try ask(Statement.needs, []).number(0, 0) == 1 else {
      throw .refused("", "the schema is not one of this version of sallyport-verifier")
    }
    _ = try ask(Statement.forgetWorkers, [.text(verifier)])
  }

  // MARK: one after the other

  /// Runs `body` while no other thread of this verifier does so for this user.
  func alone<R>(for user: UInt64, _ body: () throws(StoreTrouble) -> R) throws(StoreTrouble) -> R {
    let stripe = stripes[Int(user % UInt64(Database.stripes))]
    stripe.lock()
    defer { stripe.unlock() }
    return try body()
  }

  func note(_ level: LogLevel, _ line: LogLine) { log(level, line) }
}

/// A lock that may be held while the database is asked.
@safe private final class Stripe: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

  // SAFETY: the mutex is made here, stays where it is, and ends with this object alone.
  init() { unsafe pthread_mutex_init(mutex, nil) }
  func lock() { unsafe pthread_mutex_lock(mutex) }
  func unlock() { unsafe pthread_mutex_unlock(mutex) }

  deinit {
    unsafe pthread_mutex_destroy(mutex)
    unsafe mutex.deallocate()
  }
}
