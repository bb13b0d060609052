import CService
import OneTimePassword
import SallyportAdministration
package import SallyportCore
import SallyportLogin
import SallyportSupport
package import SallyportSystem

/// The enrollments and states of a fleet, for one question of one host.
///
/// Nothing is locked in the database: a save expects the version that was loaded. Where another
/// verifier was faster, the question is decided again. A save of unknown outcome is a refusal.
package struct FleetStore: ManagedStore, Sendable {
  /// How often a login is verified again.
  static let attempts = 32

  let database: Database
  let event: Event
  /// What is counted of the host with each save; nil: nothing, as of a login.
  let spending: Spending?
  /// The uid of the account on the host; nil: there is none.
  private let uid: UInt32?
  /// Until when it may wait for its turn, in nanoseconds of CLOCK_MONOTONIC.
  let deadline: UInt64
  /// Whether codes count at known places alone.
  private let isClosed: Bool
  let loaded = Loaded()
  var voice = Voice.usual

  /// What is logged of what cannot be answered.
  enum Voice {
    case usual
    /// Not that the database does not answer.
    case ofRows
    /// Nothing: who asks tells it.
    case silent
  }

  /// What was loaded for this question.
  final class Loaded: Sendable {
    let rows = Locked<[[UInt8]: Columns]>([:])
    let isAway = Locked(false)
    /// Why the database did not answer; nil: it did.
    let unanswered = Locked<String?>(nil)
    /// What is wrong with somebody's rows.
    let rowFault = Locked<RowFault?>(nil)
    let isUsedUp = Locked(false)
    /// Whether the rows that `load` takes are there, and nothing has happened since.
    let isAhead = Locked(false)
  }

  package init(
    _ database: Database, _ event: Event, uid: UInt32?, until deadline: UInt64 = UInt64.max,
    isClosed: Bool = false
  ) {
    self.init(database, event, uid: uid, until: deadline, isClosed: isClosed, spending: nil)
  }

  init(
    _ database: Database, _ event: Event, uid: UInt32?, until deadline: UInt64 = UInt64.max,
    isClosed: Bool = false, spending: Spending?
  ) {
    (self.database, self.event, self.uid) = (database, event, uid)
    (self.isClosed, self.spending) = (isClosed, spending)
    self.deadline = min(deadline, sys_monotonic() + 5_000_000_000)
  }

  /// Whether the database could not be asked before anything was saved: nothing was verified.
  package var wasAway: Bool { loaded.isAway.withLock { $0 } }

  /// Whether the database did not answer a question, for whatever reason; else what was thrown is
  /// of the rows themselves.
  var wasUnanswered: Bool { unanswered != nil }
  /// For people.
  var unanswered: String? { loaded.unanswered.withLock { $0 } }

  /// The host has looked it up.
  package func account(named name: UserName) -> Account { Account(name: name, uid: uid) }

  package func now() throws(StoreTrouble) -> UnixTime {
    if let now = database.now { return now() }
    return try Clock.now()
  }

  // MARK: loading

  package func load(_ account: Account) throws(StoreTrouble) -> Record? {
    let name = account.name.bytes
    // Where the question has asked just now whether he is blocked, that was loaded with it.
    let isAhead = loaded.isAhead.withLock { isAhead in
      defer { isAhead = false }
      return isAhead
    }
    if !isAhead { try fetch([name, try decoy(of: name)]) }
    guard let row = try row(of: name) else { return nil }
    return try record(name, row, decoyOf: nil)
  }

  /// What the question has loaded, or else all that `load` takes.
  func rowBesideDecoy(of key: [UInt8]) throws(StoreTrouble) -> Row? {
    if loaded.rows.withLock({ $0[key] == nil }) {
      try fetch([key, try decoy(of: key)])
      loaded.isAhead.withLock { $0 = true }
    }
    return try row(of: key)
  }

  /// One of a few: which one, the name alone says.
  package func loadDecoy(for name: [UInt8]) throws(StoreTrouble) -> Record {
    let key = try decoy(of: name)
    guard let row = try row(of: key), let record = try record(key, row, decoyOf: name) else {
      throw fault("the database has no decoys: sallyport-verifier init makes them")
    }
    return record
  }

  /// By the name alone: in a fleet a name is one person, and its hosts differ in uids.
  package func level(of account: Account) throws(StoreTrouble) -> UserNote.Level? {
    try row(of: account.name.bytes)?.document.note.level
  }

  package func isElsewhere(_ name: UserName) throws(StoreTrouble) -> Bool {
    if case .taken = try row(of: name.bytes)?.document.place { true } else { false }
  }

  private func record(_ key: [UInt8], _ row: Row, decoyOf name: [UInt8]?) throws(StoreTrouble)
    -> Record?
  {
    guard let enrollment = row.document.enrollment, let state = row.state else { return nil }
    return Record(
      enrollment: try withoutEnded(enrollment), state: state, path: "fleet", kept: row.mark.bytes,
      decoyOf: name)
  }

  /// nil: this user has no rows, and had none. Asks the database once for each question, or again
  /// with `reload`.
  func row(of key: [UInt8], reload: Bool = false) throws(StoreTrouble) -> Row? {
    if reload || loaded.rows.withLock({ $0[key] == nil }) { try fetch([key]) }
    guard let found = loaded.rows.withLock({ $0[key] }) else { return nil }
    do throws(RowFault) {
      guard found.enrollment != nil else {
        if found.seenBefore != nil, !found.isStrangerOfBeforeLoss { throw .gone }
        return nil
      }
      var row = try database.key.row(found, of: key)
      guard let user = found.user else { return row }
      try check(&row, found, key)
      database.rollbackGuard.raise(user, to: row.seen)
      return row
    } catch {
      loaded.rowFault.withLock { $0 = error }
      if voice != .silent { database.note(error, of: found) }
      throw fault(error.text)
    }
  }

  /// The decoy's row is loaded with each user's: whether he is enrolled does not show in the number
  /// of questions.
  private func fetch(_ keys: [[UInt8]]) throws(StoreTrouble) {
    let names = (0..<2).map { Value.bytes(keys[min($0, keys.count - 1)]) }
    try fetch(keys, by: Statement.load, names)
  }

  /// `statement`: gives what `load` gives, of all keys.
  func fetch(_ keys: [[UInt8]], by statement: String, _ values: [Value]) throws(StoreTrouble) {
    // Before the question: what is saved meanwhile may be newer than the answer.
    var found: [[UInt8]: Columns] = [:]
    for key in keys {
      let user = try mark(of: key)
      found[key] = Columns(user: user, seenBefore: user.flatMap { database.rollbackGuard[$0] })
    }
    let highest = database.books.withLock { $0.highest }
    let (rows, generation) = try ask { () throws(DatabaseFault) in
      try database.ask(statement, values)
    }
    guard rows.count > 0, let fleet = database.fleet(rows, 0, from: 4, since: highest) else {
      if let seal = rows.bytes(0, 8), database.key.lacks(seal) != nil {
        throw fault(DatabaseFault.away)
      }
      throw fault("fleet row missing, modified or rolled back")
    }
    let distrust = Distrust(number: fleet.distrust, time: UnixTime(fleet.distrusted))
    for key in keys {
      found[key]?.distrust = distrust
      found[key]?.generation = generation
    }
    for row in 0..<rows.count {
      guard let key = rows.bytes(row, 0), var columns = found[key] else { continue }
      columns.enrollment = rows.bytes(row, 1)
      columns.state = rows.bytes(row, 2)
      columns.version = rows.number(row, 3)
      found[key] = columns
    }
    let loadedNow = found
    loaded.rows.withLock { $0.merge(loadedNow) { _, new in new } }
  }

  // MARK: saving

  package func transact<Verdict>(
    _ record: Record, asKnown isKnown: Bool,
    _ body: (Enrollment, LoginState) throws(StoreTrouble) -> (Verdict, LoginState)
  ) throws(StoreTrouble) -> Transaction<Verdict> {
    let key = try key(of: record)
    return try eachTurn(key, record) { (row) throws(StoreTrouble) -> (Verdict?) in
      var (verdict, state) = try body(
        record.enrollment, isClosed ? row.state.closedToStrangers : row.state)
      if isClosed { state.other = row.state.other }
      if database.writesFormer { state.keepOrigins(of: row.state) }
      if !database.writesNew { state.notices = OwnerNotices() }
      let sealed = try sealing { () throws(RowFault) in
        try database.key.body(state, row.mark, of: key)
      }
      let word = verdict as? any EventWord
      let told = event.values(word, row.state, state, isWritten: isWritten(word))
      let isSaved = try save(
        sealed, beside: (record.enrollment, state), of: key, over: row.mark,
        by: record.decoyOf == nil ? .state : .decoy, told)
      return isSaved ? verdict : nil
    }
  }

  package func rewrite(
    _ record: Record, _ enrollment: Enrollment, _ change: (LoginState) -> LoginState
  ) throws(StoreTrouble) -> Transaction<Void> {
    try rewrite(record, enrollment) { ((), change($0)) }
  }

  /// As `transact`, with a new document: what was used may be less than before.
  func rewrite<Verdict>(
    _ record: Record, _ enrollment: Enrollment,
    _ body: (LoginState) throws(StoreTrouble) -> (Verdict, LoginState)
  ) throws(StoreTrouble) -> Transaction<Verdict> {
    let key = try key(of: record)
    return try eachTurn(key, record) { (row) throws(StoreTrouble) -> (Verdict?) in
      // As it was loaded with this state: what root has said of him stays.
      var document = try self.row(of: key)?.document ?? FleetDocument(.notEnrolled)
      document.place = .enrolled(enrollment)
      let (verdict, state) = try body(row.state)
      return try saveBoth(document, state, of: key, over: row.mark) ? verdict : nil
    }
  }

  package func create(_ enrollment: Enrollment, _ state: LoginState) throws(StoreTrouble) {
    try change(enrollment.user) { (old, _) throws(StoreTrouble) in
      // Or blocked, since it was asked.
      let isBlocked = try isHeld(old.block, of: enrollment.user)
      if isBlocked || old.enrollment != nil { throw .exists(path: "fleet") }
      var new = old
      new.begin(enrollment)
      new.logins = 0
      return (new, state)
    }
  }

  /// Not while he is enrolled: 0.
  package func countLogin(of account: Account) throws(StoreTrouble) -> UInt32 {
    var count: UInt32 = 0
    try change(account.name) { (old, _) throws(StoreTrouble) in
      if old.enrollment != nil { return nil }
      var new = old
      new.logins = old.logins < UInt32.max ? old.logins + 1 : old.logins
      count = new.logins
      return (new, nil)
    }
    return count
  }

  /// That a row can be read; whether one can be written, the grants say.
  package func rehearse() throws(StoreTrouble) { _ = try loadDecoy(for: []) }

  /// Until it is saved: of the record as it was loaded, then of what others saved.
  func eachTurn<Verdict>(
    _ key: [UInt8], _ record: Record,
    _ turn: ((mark: RowVersion, state: LoginState)) throws(StoreTrouble) -> Verdict?
  ) throws(StoreTrouble) -> Transaction<Verdict> {
    try database.alone(for: try hash(of: key), until: deadline) {
      () throws(StoreTrouble) -> Transaction<Verdict> in
      var (mark, state) = (RowVersion(record.kept), record.state)
      let digest = mark.digest
      for _ in 0..<Self.attempts {
        if let verdict = try turn((mark, state)) { return .committed(verdict) }
        guard let row = try row(of: key, reload: true), let other = row.state,
          row.mark.digest == digest || row.mark.isResealed(since: mark)
        else { return .changed }
        (mark, state) = (row.mark, other)
      }
      throw .busy(path: "fleet")
    }
  }

  /// The same of a document, and of the state beside it. `body` gives nil where there is nothing to
  /// change.
  func change(
    _ name: UserName,
    _ body: (FleetDocument, LoginState?) throws(StoreTrouble) -> (FleetDocument, LoginState?)?
  ) throws(StoreTrouble) {
    let key = name.bytes
    try database.alone(for: try hash(of: key), until: deadline) { () throws(StoreTrouble) in
      for _ in 0..<Self.attempts {
        let row = try row(of: key, reload: true)
        guard
          let (new, state) = try body(
            row?.document ?? FleetDocument(.notEnrolled), row?.state)
        else {
          return
        }
        if try saveBoth(new, state, of: key, over: row?.mark) { return }
      }
      throw .busy(path: "fleet")
    }
  }

  /// `old`: the row in whose place it comes; nil: nothing is kept there. `isSame`: nothing of the
  /// document has changed, so that its serial stays.
  func saveBoth(
    _ document: FleetDocument, _ state: LoginState?, of key: [UInt8], over old: RowVersion?,
    isSame: Bool = false
  ) throws(StoreTrouble) -> Bool {
    var (document, state) = (document, state)
    if !database.writesFormer { document.ended = [] }
    if !database.writesNew { state?.notices = OwnerNotices() }
    let mark: RowVersion
    if let old { mark = old } else { mark = try markOfNothing(key) }
    if !isSame { document.serial = mark.next }
    let whole = document
    let bodies = try sealing { () throws(RowFault) in
      try database.key.bodies(whole, state, mark, of: key)
    }
    var after = mark
    after.serial = whole.serial
    return try save(
      bodies.state, beside: (document.enrollment, state), of: key, over: after,
      by: old == nil ? .new : .both, event.values(nil, nil, nil),
      [.bytes(bodies.enrollment)])
  }

  private func markOfNothing(_ key: [UInt8]) throws(StoreTrouble) -> RowVersion {
    guard let columns = loaded.rows.withLock({ $0[key] }) else { throw fault("nothing was loaded") }
    return RowVersion(ofNothing: columns)
  }

  /// false where the version is another by now. The guard is raised before the answer. `open`: what
  /// the row says then.
  private func save(
    _ body: [UInt8], beside open: (Enrollment?, LoginState?), of key: [UInt8],
    over mark: RowVersion, by kind: Save, _ event: [Value], _ more: [Value] = []
  ) throws(StoreTrouble) -> Bool {
    let values: [Value] = [.bytes(key), .number(mark.version), .bytes(body), .number(mark.next)]
    let seen = LastSeen(
      version: mark.next, serial: mark.serial,
      digest: try sealing { () throws(RowFault) in number(try database.key.digest(of: body)) },
      distrust: mark.distrust, open.0, open.1)
    let found: Rows?
    let now = spending == nil ? UnixTime(0) : try now()
    do throws(DatabaseFault) {
      found = try saved(kind, at: now) { (statement, charge) throws(DatabaseFault) in
        try database.save(statement, values + event, more + charge, since: mark.generation)
      }
    } catch {
      // Serializable: another one was faster. Moved: nothing was asked, it is loaded again.
      if case .refused("40001", _) = error { return false }
      if error == .moved { return false }
      if error.isUnknown { database.meters.noteUnknown() }
      throw fault(error)
    }
    guard let rows = found else { throw usedUp() }
    guard rows.number(0, 0) == 1 else { return false }
    if let user = try self.mark(of: key) { database.rollbackGuard.raise(user, to: seen) }
    return true
  }
}
