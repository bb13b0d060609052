package import FleetProtocol
import OneTimePassword
import SallyportAdministration
package import SallyportCore
import SallyportSupport
package import SallyportSystem

/// The reserve of a host of a fleet: the hashed backup codes of users who have logged in here, and
/// which of them are used, so that they can log in while no verifier can be asked. It never has an
/// authenticator's secret.
///
/// Only this service changes it. Before an answer the code is marked as used on disk, and before
/// that, the report to the fleet as pending.
package final class Reserve: Sendable {
  /// One person in it.
  package typealias Entry = ReserveQuestion.Entry

  let store: Store
  private let moment: @Sendable () -> ReserveAge.Moment
  /// When it was confirmed; nil: not known yet.
  private let age = Locked<ReserveAge?>(nil)
  /// The users with a pending report.
  private let pending = Locked<Set<[UInt8]>>([])
  /// Which start of the service this is; nil: none can be kept.
  private let begun = Locked<HostStart?>(nil)
  // Of some size: the thread sanitizer takes one of none for the object that has it.
  private let puts = Locked(0)
  private let wake = Locked<(@Sendable () -> Void)?>(nil)

  /// `moment`: for tests.
  package init(
    at path: String = Store.usualReserve, owner: Store.Owner = .root,
    moment: @escaping @Sendable () -> ReserveAge.Moment = { .now() }
  ) {
    (store, self.moment) = (Store(reserve: path, owner: owner), moment)
  }

  /// Makes what is missing, and reads what an earlier service has left.
  package func prepare() throws(StoreTrouble) {
    try store.prepareWithParent()
    let text = try store.confirmation()
    age.withLock { $0 = text.flatMap { ReserveAge.read($0) } }
    let names = try store.pendingNames().map { Array($0.directory.utf8) }
    pending.withLock { $0.formUnion(names) }
    try raiseStart()
  }

  /// What the fleet is told of it.
  var start: HostStart? { begun.withLock { $0 } }

  private static func newRandom() throws(StoreTrouble) -> [UInt8] {
    let random = try Random.secret(count: HostStart.randomLength)
    return random.bytes(in: 0..<random.count)
  }

  /// One more: on disk before anybody can be told.
  private func raiseStart() throws(StoreTrouble) {
    let done = begun.withLock { begun in
      Result { () throws(StoreTrouble) in
        let last = max(try store.startNumber() ?? 0, begun?.number ?? 0)
        let number = last < UInt64.max ? last + 1 : last
        var random = begun?.random ?? []
        if random.isEmpty { random = try Self.newRandom() }
        try store.note(startNumber: number)
        begun = HostStart(random: random, number: number)
      }
    }
    try done.get()
  }

  /// Called after a code was used here.
  func onUse(_ body: @escaping @Sendable () -> Void) { wake.withLock { $0 = body } }

  // MARK: its age

  /// Whether the fleet has confirmed it within this many seconds.
  package func isGood(for seconds: UInt64) -> Bool {
    guard let age = age.withLock({ $0 })?.age(at: moment()) else { return false }
    return age < seconds
  }

  /// When the fleet confirmed it last, and how long ago that is; nil: never, or unknown.
  package var confirmed: (at: UnixTime, ago: UInt64?)? {
    age.withLock { $0 }.map { ($0.confirmed, $0.age(at: moment())) }
  }

  /// The fleet has confirmed all of it, as it was at that moment.
  func confirm(at moment: ReserveAge.Moment) throws(StoreTrouble) {
    let new = ReserveAge(confirmedAt: moment)
    try store.confirm(new.written())
    age.withLock { $0 = new }
  }

  /// Records its age every ten minutes, so that a boot or a clock that goes back does not make it
  /// younger.
  func noteAge() throws(StoreTrouble) {
    guard let old = age.withLock({ $0 }) else { return }
    let new = old.noted(at: moment())
    guard new.noted.boot != old.noted.boot || new.noted.uptime >= old.noted.uptime + 600 else {
      return
    }
    try store.confirm(new.written())
    age.withLock { if $0 == old { $0 = new } }
  }

  var now: ReserveAge.Moment { moment() }

  // MARK: its entries

  /// Stores a verifier's answer: other codes replace those that are here; of the same codes, the
  /// used ones are merged.
  ///
  /// One at a time: of two that find nothing there, the slower one would put what it has in the
  /// place of an entry of which a code was used since then.
  package func put(_ name: UserName, _ section: ReserveAnswer.Section) throws(StoreTrouble) {
    let done = puts.withLock { _ in
      Result { () throws(StoreTrouble) in try putAlone(name, section) }
    }
    try done.get()
  }

  private func putAlone(_ name: UserName, _ section: ReserveAnswer.Section) throws(StoreTrouble) {
    let new = ReserveEntry(
      Enrollment(
        id: section.enrollmentID, user: name, uid: nil, created: moment().clock,
        authenticators: [], backupCodes: section.set),
      receipt: section.receipt)
    for _ in 0..<3 {
      guard let (old, record) = try readable(name), old.enrollment.id == new.enrollment.id,
        old.enrollment.backupCodes?.id == section.set.id
      else {
        var state = LoginState(initialFor: new.enrollment)
        state.backupCodes?.used = section.used
        return try store.replace(new, state)
      }
      if try join(section, to: record, old, as: new) { return }
    }
    throw .busy(path: Store.usualReserve)
  }

  /// false if the entry has changed.
  private func join(
    _ section: ReserveAnswer.Section, to record: Record, _ old: ReserveEntry, as new: ReserveEntry
  ) throws(StoreTrouble) -> Bool {
    if old.receipt != section.receipt || old.enrollment.backupCodes != section.set {
      let written = try store.rewrite(record, new) { $0.joined(section.used) }
      if case .committed = written { return true }
      return false
    }
    if let used = record.state.backupCodes?.used, section.used & ~used == 0 { return true }
    return try raise(record, by: section.used)
  }

  /// Marks codes as used that were used elsewhere. false if the entry has changed.
  private func raise(_ record: Record, by used: UInt64) throws(StoreTrouble) -> Bool {
    let done = try store.transact(record, asKnown: true) {
      (enrollment, state) throws(StoreTrouble) -> (Void, LoginState) in
      var state = state
      state.reconcile(with: enrollment)
      return ((), state.joined(used))
    }
    if case .committed = done { return true }
    return false
  }

  /// Marks a backup code as used that a verifier has accepted just now; does nothing for any other
  /// response. It needs no report.
  func use(_ typed: Secret, of name: UserName) throws(StoreTrouble) {
    for _ in 0..<3 {
      guard let (_, record) = try readable(name) else { return }
      let used = try codes(of: record.enrollment, by: typed)
      if used == 0 { return }
      if try raise(record, by: used) { return }
    }
    throw .busy(path: Store.usualReserve)
  }

  /// The codes that were typed, as bits.
  private func codes(of enrollment: Enrollment, by typed: Secret) throws(StoreTrouble) -> UInt64 {
    do throws(CryptoError) {
      guard case .backupCode(let digest) = try Response.classify(typed, for: enrollment) else {
        return 0
      }
      return enrollment.backupCodes?.backupCodes(digest) ?? 0
    } catch {
      throw .crypto(error)
    }
  }

  /// nil where there is none, and for one that cannot be read, which is replaced as a whole.
  private func readable(_ name: UserName) throws(StoreTrouble) -> (ReserveEntry, Record)? {
    do throws(StoreTrouble) {
      return try store.entry(stored: try store.storedName(of: name))
    } catch {
      if error.isBrokenEnrollment { return nil }
      throw error
    }
  }

  /// Wipes this user's entry, if there is one, and nothing of it has to go up.
  package func remove(_ name: UserName) throws(StoreTrouble) {
    try removeUnlessPending(try store.storedName(of: name))
  }

  /// A login marks it as pending while it has the lock of the state, as this does.
  private func removeUnlessPending(_ name: StoredName) throws(StoreTrouble) {
    try store.remove(
      stored: name, if: { (_) throws(StoreTrouble) in !isPending(stored: name) },
      done: { () throws(StoreTrouble) in try forget(name) })
  }

  /// Wipes what the fleet does not have any more, when it has heard of it what is here: a code that
  /// was used since then goes up before.
  func remove(reported entry: Entry, stored name: StoredName) throws(StoreTrouble) {
    try store.remove(
      stored: name,
      if: { (record) throws(StoreTrouble) in
        guard let record, let set = record.enrollment.backupCodes else { return true }
        let used = record.state.backupCodes.map { $0.setID == set.id ? $0.used : 0 } ?? 0
        return set.id == entry.setID && used & ~entry.used == 0
      }, done: { () throws(StoreTrouble) in try forget(name) })
  }

  func remove(stored name: StoredName) throws(StoreTrouble) {
    _ = try store.remove(stored: name)
    try forget(name)
  }

  /// Ends it, as of a host that was revoked: no code of it is taken any more. What was used here
  /// and may not have gone up stays, for root to see, until this host leaves; the rest is wiped.
  /// `tell` is told whose that is, when it is ended and not again.
  func end(_ tell: (StoredName) -> Void) throws(StoreTrouble) {
    let isGood = age.withLock { $0 != nil }
    if isGood {
      pendingNames.forEach(tell)
      try store.confirm([])
      age.withLock { $0 = nil }
    }
    try void()
  }

  /// Wipes what need not go up.
  func void() throws(StoreTrouble) {
    for name in try store.enrolledNames() where !isPending(stored: name) {
      try removeUnlessPending(name)
    }
  }

  /// The names of all directories, sorted.
  func names() throws(StoreTrouble) -> [StoredName] { try store.enrolledNames() }

  /// nil where it is gone. Throws where it cannot be read.
  func entry(stored name: StoredName) throws(StoreTrouble) -> Entry? {
    try store.entry(stored: name).flatMap { Entry($1, $0.receipt) }
  }

  /// All that can be read, sorted.
  package func entries() throws(StoreTrouble) -> [Entry] {
    var entries: [Entry] = []
    for name in try store.enrolledNames() {
      do throws(StoreTrouble) {
        if let entry = try entry(stored: name) { entries.append(entry) }
      } catch {
        // Left out, as what cannot be read.
      }
    }
    return entries
  }

  // MARK: pending reports

  /// Whether a report about this user is pending, which has to precede a question about him.
  package func isPending(_ name: UserName) throws(StoreTrouble) -> Bool {
    let directory = Array(try store.storedName(of: name).directory.utf8)
    return pending.withLock { $0.contains(directory) }
  }

  func isPending(stored name: StoredName) -> Bool {
    let directory = Array(name.directory.utf8)
    return pending.withLock { $0.contains(directory) }
  }

  var pendingNames: [StoredName] {
    pending.withLock { $0 }.sorted { $0.lexicographicallyPrecedes($1) }
      .map { StoredName(directory: $0) }
  }

  /// Before the state is saved that says so: on disk when it returns.
  func willUse(_ name: UserName) throws(StoreTrouble) {
    try raiseStart()
    try store.markPending(name)
    let directory = Array(try store.storedName(of: name).directory.utf8)
    pending.withLock { _ = $0.insert(directory) }
  }

  func hasUsed() { wake.withLock { $0 }?() }

  /// The fleet has acknowledged the report; `known`: other codes that the fleet knows to be used.
  /// Under the lock of the state, because more codes may have been used meanwhile; then the report
  /// stays pending.
  func wentUp(_ entry: Entry, besides known: UInt64 = 0, stored name: StoredName)
    throws(StoreTrouble)
  {
    guard let record = try store.load(stored: name) else { return try forget(name) }
    _ = try store.transact(record, asKnown: true) {
      (_, state) throws(StoreTrouble) -> (Void, LoginState) in
      // Codes that replaced them meanwhile may have been used as well.
      if let codes = state.backupCodes, codes.setID == entry.setID,
        codes.used & ~(entry.used | known) == 0
      {
        try forget(name)
      }
      return ((), state)
    }
  }

  func forget(_ name: StoredName) throws(StoreTrouble) {
    try store.unmarkPending(name)
    let directory = Array(name.directory.utf8)
    pending.withLock { _ = $0.remove(directory) }
  }

  /// The codes of it that the fleet knows to be used.
  func join(_ used: UInt64, to entry: Entry, stored name: StoredName) throws(StoreTrouble) {
    guard used & ~entry.used != 0, let record = try store.load(stored: name),
      record.enrollment.backupCodes?.id == entry.setID
    else { return }
    _ = try raise(record, by: used)
  }
}

extension ReserveQuestion.Entry {
  init?(_ record: Record, _ receipt: [UInt8]) {
    guard let set = record.enrollment.backupCodes else { return nil }
    let state = record.state.backupCodes
    self.init(
      name: record.enrollment.user, enrollmentID: record.enrollment.id, receipt: receipt,
      setID: set.id, used: state?.setID == set.id ? state?.used ?? 0 : 0)
  }
}

extension LoginState {
  /// With these backup codes marked as used too.
  fileprivate func joined(_ used: UInt64) -> LoginState {
    var state = self
    state.backupCodes?.used |= used
    return state
  }
}
