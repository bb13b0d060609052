import CService
import FleetProtocol
package import FleetTransport
import Glibc
import OneTimePassword
import SallyportAdministration
package import SallyportCore
import SallyportLogin
import SallyportService
package import SallyportSupport
import SallyportSystem

/// Keeps the reserve of this host as the fleet has it: it reports codes that were used here while
/// no verifier could be asked, wipes what the fleet has no more, and fetches the backup codes of
/// each user who logs in here.
///
/// One thread asks one question at a time. Without an answer that it can read nothing changes.
package final class ReserveSync: Sendable {
  let reserve: Reserve
  let logins: ReserveLogins
  private let verifiers: any FleetVerifiers
  let pace: Pace
  let log: LogWriter
  /// Whether this host is still in the fleet.
  private let isMember: @Sendable () -> Bool
  let state = Locked(SyncQueue())
  private let starting = Locked(0)
  /// What the thread sleeps on.
  private let bell: Int32

  package init(
    _ reserve: Reserve, _ verifiers: any FleetVerifiers, pace: Pace = Pace(),
    isMember: @escaping @Sendable () -> Bool = { true },
    log: @escaping LogWriter
  ) throws(ServiceError) {
    (self.reserve, self.verifiers, self.pace, self.log) = (reserve, verifiers, pace, log)
    self.isMember = isMember
    logins = ReserveLogins(reserve, log: log)
    bell = try ServiceError.check(service_counter(), "eventfd")
    reserve.onUse { [weak self] in self?.ring() }
  }

  deinit { close(bell) }

  /// Makes the reserve and starts the thread, once, where this host is in a fleet; it ends after
  /// `stop`, or when the host has left. On every other machine nothing is done. When it returns the
  /// reserve is there, also to one who was not the first.
  package func start() {
    if state.withLock({ $0.isRunning || $0.isOver }) { return }
    starting.withLock { _ in
      if isMember(), !state.withLock({ $0.isRunning || $0.isOver }) { startAlone() }
    }
  }

  private func startAlone() {
    prepare()
    do throws(ServiceError) {
      state.withLock { $0.isRunning = true }
      try startThread { self.run() }
    } catch {
      state.withLock { $0.isRunning = false }
      log(.error, LogLine("error: no thread for the reserve"))
    }
  }

  package func stop() {
    state.withLock { $0.isOver = true }
    ring()
  }

  // MARK: what logins say

  /// Somebody was let in by a verifier here; `backupCode`: by one of the codes that are kept.
  /// Without that once a minute is enough, however often he logs in: verifiers have other things
  /// to do.
  package func fetch(_ name: UserName, after backupCode: Bool = true) {
    let isNew = state.withLock { queue -> Bool in
      guard backupCode || !queue.hasFetched(name, at: sys_monotonic()) else { return false }
      guard queue.fetches.count < SyncQueue.mostFetches, !queue.fetches.contains(name) else {
        return false
      }
      queue.fetches.append(name)
      return true
    }
    if isNew { ring() }
  }

  /// No verifier could be asked, or the database is away: look for them until they answer.
  package func noteAway() {
    let isNews = state.withLock { queue -> Bool in
      defer { queue.wasAway = true }
      return !queue.wasAway
    }
    if isNews { ring() }
  }

  /// Whether the whole was confirmed since a verifier could not be asked.
  package var isConfirmed: Bool { state.withLock { !$0.wasAway && $0.confirmed != nil } }

  /// A verifier answers again after none could be asked.
  package func noteBack() {
    state.withLock { $0.wasAway = true }
    ring()
  }

  /// Reports what was used here of this person's, if no verifier is known to have it, for no longer
  /// than that. Throws where this host is none of the fleet.
  package func report(_ name: UserName, within milliseconds: UInt64) throws(TransportFault)
    -> ReserveReport
  {
    let progress: Progress
    do throws(StoreTrouble) {
      guard try reserve.isPending(name) else { return .taken }
      let stored = try reserve.store.storedName(of: name)
      progress = try bringUp([stored], within: milliseconds)
      if progress == .done { return try reserve.isPending(name) ? .notTaken : .taken }
    } catch {
      complain(error)
      return .away
    }
    switch progress {
    case .stranger: throw .stranger
    case .revoked: throw .revoked
    case .done, .garbled: return .notTaken
    case .away: return .away
    }
  }

  private func ring() {
    let isFirst = state.withLock { queue -> Bool in
      defer { queue.isRung = true }
      return !queue.isRung
    }
    if isFirst { service_count_up(bell, 1) }
  }

  // MARK: the thread

  /// A function, and never inlined: it has no end that the optimizer could see.
  @inline(never) private func run() {
    var isRung = false
    var wasMember = true
    while !state.withLock({ $0.isOver }) {
      let isStill = isMember()
      // Somebody may be changing the file.
      if !isStill, !wasMember { return leave() }
      wasMember = isStill
      let pause = isStill ? work(isRung: isRung) : pace.pinging
      var waiting = pollfd(fd: bell, events: Int16(POLLIN), revents: 0)
      // SAFETY: one, which lives for the call.
      let chosen = UInt64.random(in: (pause - pause / 4)...(pause + pause / 4))
      isRung = unsafe poll(&waiting, 1, Int32(clamping: chosen)) > 0
      if isRung { service_count_down(bell) }
      state.withLock { $0.isRung = false }
    }
  }

  private func leave() {
    state.withLock {
      ($0.isRunning, $0.wasAway, $0.fetches, $0.fetched) = (false, true, [], [:])
      ($0.mark, $0.marked) = (nil, nil)
    }
    dismantle()
  }

  /// All that is to be done now, in this order: what was used goes up, the whole is confirmed where
  /// it is time, those who logged in are fetched. Milliseconds to the next time. `isRung`: woken by
  /// somebody who has something to do; else it looks whether the verifiers are still there.
  @discardableResult
  func work(isRung: Bool = false) -> UInt64 {
    do throws(StoreTrouble) {
      var progress = isDue || state.withLock { $0.mustTell } ? try tellStart() : .done
      if progress == .done { progress = try bringUpPending() }
      let rests = progress == .done ? try rest() : false
      if progress == .done, isDue { progress = try confirmAll() }
      if progress == .done, !rests { progress = try fetchAll() }
      if progress == .done, !isRung { progress = try ping() }
      return try pause(after: progress)
    } catch {
      complain(error)
      // Somebody has removed it.
      if case .noStore = error { prepare() }
      return pace.pinging
    }
  }

  private func pause(after progress: Progress) throws(StoreTrouble) -> UInt64 {
    let misses = state.withLock { queue in
      queue.misses = progress == .away ? queue.misses + 1 : 0
      return queue.misses
    }
    switch progress {
    case .done: return pace.pinging
    case .garbled:
      complain(LogLine("error: unrecognized answer from a verifier about the reserve"))
      return pace.pinging
    case .away:
      state.withLock { $0.wasAway = true }
      try reserve.noteAge()
      return min(pace.probing << min(misses - 1, 8), pace.pinging)
    case .stranger:
      state.withLock { $0.wasAway = true }
      complain(LogLine("no verifier knows this host: the reserve is kept, and used by nobody"))
      try reserve.noteAge()
      return pace.pinging
    case .revoked:
      state.withLock { $0.wasAway = true }
      try end()
      complain(LogLine("this host was revoked: its reserve has ended (sallyport fleet leave)"))
      return pace.pinging
    }
  }

  private func prepare() {
    do throws(StoreTrouble) {
      try reserve.prepare()
    } catch {
      complain(error)
    }
  }

  private var isDue: Bool {
    let now = sys_monotonic()
    return state.withLock { queue in
      guard !queue.wasAway, let last = queue.confirmed else { return true }
      return now - last >= pace.confirming * 1_000_000_000
    }
  }

  // MARK: questions

  /// Whether somebody is there; it shows the mark by the way.
  private func ping() throws(StoreTrouble) -> Progress {
    guard let shown = ping(showing: mark) else { throw .outOfMemory }
    do throws(TransportFault) {
      let answer = try verifiers.ask(.ping, shown, within: min(pace.patience, 1000))
      if answer == .databaseAway { return .away }
      take(pong: answer.body)
    } catch {
      return Progress(error)
    }
    try keepMark()
    return .done
  }

  /// nil where there is no answer that counts. Where others ask, it waits a moment.
  func ask(_ question: ReserveQuestion, within milliseconds: UInt64) throws(StoreTrouble)
    -> (Progress, ReserveAnswer?)
  {
    guard let body = question.encoded() else { throw .outOfMemory }
    let start = sys_monotonic()
    while true {
      let passed = (sys_monotonic() - start) / 1_000_000
      guard passed < milliseconds else { return (.away, nil) }
      do throws(TransportFault) {
        let answer = try verifiers.ask(.reserve, body, within: milliseconds - passed)
        if answer == .databaseAway || answer == .notServed { return (.away, nil) }
        guard answer.answers(.reserve),
          let read = ReserveAnswer.decode(answer.body, to: question)
        else { return (.garbled, nil) }
        if read != .busy { return (.done, read) }
      } catch {
        return (Progress(error), nil)
      }
      _ = poll(nil, 0, Int32.random(in: 20...200))
    }
  }

  private func bringUpPending() throws(StoreTrouble) -> Progress {
    var rest = reserve.pendingNames[...]
    while !rest.isEmpty {
      let part = Array(rest.prefix(ReserveQuestion.most))
      rest = rest.dropFirst(part.count)
      let progress = try bringUp(part, within: pace.patience)
      guard progress == .done else { return progress }
    }
    return .done
  }

  /// The whole reserve, in parts. What could not be looked at keeps it from being confirmed.
  private func confirmAll() throws(StoreTrouble) -> Progress {
    let (moment, start) = (reserve.now, sys_monotonic())
    let wasAway = state.withLock { queue in
      defer { queue.wasAway = false }
      return queue.wasAway
    }
    // Before all names are read, for perhaps nobody.
    if wasAway {
      let progress = try bringUp([], within: pace.patience)
      guard progress == .done else { return progress }
    }
    var rest = try reserve.names()[...]
    repeat {
      let part = Array(rest.prefix(ReserveQuestion.most))
      rest = rest.dropFirst(part.count)
      let progress = try bringUp(part, within: pace.patience)
      guard progress == .done else { return progress }
    } while !rest.isEmpty
    try reserve.confirm(at: moment)
    state.withLock { $0.confirmed = start }
    return try tellStart()
  }

  /// Sends up what is used of these, and does what the answers say.
  private func bringUp(_ names: [StoredName], within milliseconds: UInt64) throws(StoreTrouble)
    -> Progress
  {
    var left: [(StoredName, Reserve.Entry)] = []
    for name in names {
      if let entry = try readable(name) { left.append((name, entry)) }
    }
    repeat {
      let (progress, answer) = try ask(.confirm(left.map(\.1)), within: milliseconds)
      guard case .confirmed(let verdicts)? = answer else { return progress }
      for ((name, entry), verdict) in zip(left, verdicts) {
        let progress = try take(verdict, of: entry, name, within: milliseconds)
        guard progress == .done else { return progress }
      }
      left.removeFirst(verdicts.count)
    } while !left.isEmpty
    return .done
  }

  /// One that cannot be read is of no use, and is wiped; nil for it, and where it is gone.
  private func readable(_ name: StoredName) throws(StoreTrouble) -> Reserve.Entry? {
    do throws(StoreTrouble) {
      if let entry = try reserve.entry(stored: name) { return entry }
      try reserve.forget(name)
      return nil
    } catch {
      guard error.isBrokenEnrollment else { throw error }
      complain(error)
      try reserve.remove(stored: name)
      return nil
    }
  }

  private func take(
    _ verdict: ReserveAnswer.Verdict, of entry: Reserve.Entry, _ name: StoredName,
    within milliseconds: UInt64
  ) throws(StoreTrouble) -> Progress {
    switch verdict {
    case .keep(let used):
      try reserve.join(used, to: entry, stored: name)
      // A verifier that disbelieves its rows has saved nothing: it is reported again.
      if entry.used & ~used == 0, reserve.isPending(stored: name) {
        try reserve.wentUp(entry, besides: used, stored: name)
      }
      return .done
    case .delete:
      try reserve.remove(reported: entry, stored: name)
      return .done
    case .replace: return try fetch(entry.name, entry.receipt, within: milliseconds)
    }
  }

  private func fetchAll() throws(StoreTrouble) -> Progress {
    while let name = state.withLock({ $0.fetches.first }) {
      let entry = try readable(try reserve.store.storedName(of: name))
      let progress = try fetch(name, entry?.receipt, within: pace.patience)
      // One that is not understood is left for the next login.
      guard progress == .done || progress == .garbled else { return progress }
      state.withLock { queue in
        if queue.fetches.first == name { queue.fetches.removeFirst() }
        if progress == .done { queue.note(name, at: sys_monotonic()) }
      }
    }
    return .done
  }

  private func fetch(_ name: UserName, _ receipt: [UInt8]?, within milliseconds: UInt64)
    throws(StoreTrouble) -> Progress
  {
    let (progress, answer) = try ask(.fetch(name, receipt: receipt), within: milliseconds)
    switch answer {
    case .section(let section)?: try reserve.put(name, section)
    case ReserveAnswer.none?: try reserve.remove(name)
    case .confirmed?, .busy?, .start?, nil: break
    }
    return progress
  }

  func complain(_ trouble: StoreTrouble) {
    complain(.trouble(trouble, user: [], from: nil, .unknown))
  }

  /// The same words once in ten minutes.
  func complain(_ line: LogLine) {
    let now = sys_monotonic()
    let isNew = state.withLock { queue -> Bool in
      let isOld = queue.complaint.map { $0.0 == line.bytes && now - $0.1 < 600_000_000_000 }
      if isOld != true { queue.complaint = (line.bytes, now) }
      return isOld != true
    }
    if isNew { log(.error, line) }
  }
}
