import CService
package import FleetProtocol
package import FleetTransport
package import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

extension Statement {
  /// $1 the key of a host, $2 whether it has shown a receipt by the fleet's former key: when it did
  /// so last, or asked first, and when it asked last.
  fileprivate static let renew = """
    UPDATE host SET asked = now(),
      formerly = CASE WHEN $2::boolean THEN now() ELSE coalesce(formerly, now()) END
    WHERE key = $1
    """
}

/// Answers what hosts ask about their reserves: gives the backup codes of who has just logged in
/// there, takes what was used while a host was cut off, and says what a host has no more.
///
/// A host gets the codes of a person only after a login of his there that a verifier accepted, with
/// a receipt that no other host can use. Without one it can neither mark a code as used nor learn
/// anything: so a hostile host spends only codes of people who log in there. What it says is used
/// is saved as a login is, with an event for each code.
package final class ReserveHandler: FrameHandler {
  /// Questions that are answered at a time, so that logins have connections of the database left;
  /// and of one host.
  private static let (most, mostOfOne) = (3, 2)
  /// Nanoseconds after which a question is answered as far as it got.
  private static let patience: UInt64 = 1_000_000_000

  private let database: Database
  private let logins: RecentLogins
  private let policies: FleetPolicy
  private let presences: Presences
  private let busy = Locked<[Pin: Int]>([:])

  /// `revocations`: nil for ones that nothing remembers.
  package init(
    _ database: Database, _ logins: RecentLogins, _ policies: FleetPolicy,
    revocations: Revocations? = nil
  ) {
    (self.database, self.logins, self.policies) = (database, logins, policies)
    presences = Presences(database: database, revocations: revocations)
  }

  /// An empty answer to what is no question about a reserve.
  package func read(_ body: Secret) -> ReserveQuestion? { ReserveQuestion.decode(body) }

  package func answer(_ question: ReserveQuestion?, from asker: HostIdentity, arrived: UInt64)
    -> VerifierAnswer
  {
    guard let question else { return VerifierAnswer(to: .reserve, []) }
    guard takeTurn(asker.pin) else { return VerifierAnswer(to: .reserve, ReserveAnswer.busy) }
    defer { endTurn(asker.pin) }
    do throws(StoreTrouble) {
      return VerifierAnswer(to: .reserve, try answer(question, asker))
    } catch {
      return .databaseAway
    }
  }

  private func takeTurn(_ pin: Pin) -> Bool {
    busy.withLock { busy in
      let all = busy.values.reduce(0, +)
      guard all < Self.most, busy[pin, default: 0] < Self.mostOfOne else { return false }
      busy[pin, default: 0] += 1
      return true
    }
  }

  private func endTurn(_ pin: Pin) {
    busy.withLock { busy in
      let left = busy[pin, default: 1] - 1
      busy[pin] = left > 0 ? left : nil
    }
  }

  /// nil: none that the host would understand, so that it leaves what it has until the next login.
  /// Throws where the database cannot be asked.
  private func answer(_ question: ReserveQuestion, _ holder: HostIdentity) throws(StoreTrouble)
    -> ReserveAnswer?
  {
    switch question {
    case .start(let start): return .start(try take(start, holder))
    case .fetch(let name, let receipt):
      return try mayHold(holder) ? try fetch(name, receipt, holder) : ReserveAnswer.none
    case .confirm(let entries):
      // Also of none: whether somebody is there.
      _ = try ask(Statement.fleet)
      let start = sys_monotonic()
      var verdicts: [ReserveAnswer.Verdict] = []
      for entry in entries {
        if !verdicts.isEmpty, sys_monotonic() - start > Self.patience { break }
        verdicts.append(try verdict(on: entry, holder))
      }
      if database.key.isSealedByNext { try note(entries, holder) }
      return .confirmed(verdicts)
    }
  }

  /// While the fleet's key changes: whether this host still has receipts by the one of before.
  private func note(_ entries: [ReserveQuestion.Entry], _ holder: HostIdentity)
    throws(StoreTrouble)
  {
    var isFormer = false
    for one in entries {
      let id = try keyOfReceipt(one.receipt, of: one.enrollmentID, one.name, holder)
      if let id, id != database.key.id { isFormer = true }
    }
    _ = try ask(
      Statement.renew, [.bytes(holder.pin.bytes), .text(bytes(of: isFormer ? "t" : "f"))])
  }

  /// Root may have accepted it since the hosts were read.
  private func mayHold(_ holder: HostIdentity) throws(StoreTrouble) -> Bool {
    if holder.holdsReserve { return true }
    if holder.isSilent { return false }
    return try rethrow(
      { () throws(DatabaseFault) in try presences.mayHold(holder) },
      as: { _ in
        StoreTrouble.service(path: "fleet", .trouble(mayBeTheCallers: false))
      })
  }

  private func take(_ start: HostStart, _ holder: HostIdentity) throws(StoreTrouble)
    -> HostStartReply
  {
    try rethrow(
      { () throws(DatabaseFault) in try presences.take(start, from: holder) },
      as: { _ in
        StoreTrouble.service(path: "fleet", .trouble(mayBeTheCallers: false))
      })
  }

  private func ask(_ statement: String, _ values: [Value] = []) throws(StoreTrouble) -> Rows {
    try rethrow(
      { () throws(DatabaseFault) in try database.ask(statement, values).0 },
      as: { _ in
        StoreTrouble.service(path: "fleet", .trouble(mayBeTheCallers: false))
      })
  }

  // MARK: what a host gets

  private func fetch(_ name: UserName, _ receipt: [UInt8]?, _ holder: HostIdentity)
    throws(StoreTrouble) -> ReserveAnswer?
  {
    let record: Record
    switch try load(name, holder) {
    case .record(let found): record = found
    case .nobody, .blocked: return ReserveAnswer.none
    case .disbelieved: return nil
    }
    guard let set = record.enrollment.backupCodes, !set.digests.isEmpty, policies.isFor(name)
    else { return ReserveAnswer.none }
    let right = try self.receipt(record.enrollment.id, name, holder)
    var holdsOne = false
    if let receipt {
      holdsOne = try keyOfReceipt(receipt, of: record.enrollment.id, name, holder) != nil
    }
    // The verifier that has let him in is nearly always the one that is asked next. Nobody is
    // believed by the table of events: somebody else may have written there.
    if !holdsOne, !logins.has(name.bytes, on: holder.pin) { return ReserveAnswer.none }
    return .section(
      ReserveAnswer.Section(
        enrollmentID: record.enrollment.id, receipt: right,
        set: BackupCodeSet(id: set.id, salt: set.salt, digests: set.digests),
        used: record.usedCodes(of: set)))
  }

  private enum Loaded {
    case record(Record)
    case nobody
    /// A host must not have his codes, but what it has used of them counts.
    case blocked(Record)
    /// There are rows that cannot be believed, of which the store has told. Others may come in
    /// their place that are older: a host must not forget then what was used there.
    case disbelieved
  }

  /// Throws where the database cannot be asked.
  private func load(_ name: UserName, _ holder: HostIdentity) throws(StoreTrouble) -> Loaded {
    let store = store(for: name, holder)
    do throws(StoreTrouble) {
      let account = Account(name: name, uid: nil)
      guard let record = try store.load(account) else { return .nobody }
      return try store.isBlocked(account, at: store.now) ? .blocked(record) : .record(record)
    } catch {
      // Also where one question alone was refused.
      if store.wasUnanswered { throw error }
      return .disbelieved
    }
  }

  private func store(for name: UserName, _ holder: HostIdentity) -> FleetStore {
    let event = Event(of: "sallyport-reserve", on: holder.host, name: name.bytes)
    return FleetStore(database, event, uid: nil)
  }

  private func receipt(_ enrollment: UInt64, _ name: UserName, _ holder: HostIdentity)
    throws(StoreTrouble) -> [UInt8]
  {
    try rethrow(
      { () throws(CryptoError) in
        try database.key.receipt(enrollment, of: name.bytes, for: holder.pin)
      }, as: StoreTrouble.crypto)
  }

  /// By which key of the fleet this receipt was made; nil: it is none.
  private func keyOfReceipt(
    _ receipt: [UInt8], of enrollment: UInt64, _ name: UserName, _ holder: HostIdentity
  ) throws(StoreTrouble) -> UInt32? {
    try rethrow(
      { () throws(CryptoError) in
        for id in database.key.ids {
          let right = try database.key.key(id)?.receipt(enrollment, of: name.bytes, for: holder.pin)
          if let right, constantTimeEquals(receipt, right) { return id }
        }
        return nil
      }, as: StoreTrouble.crypto)
  }

  // MARK: what a host says

  private func verdict(on entry: ReserveQuestion.Entry, _ holder: HostIdentity) throws(StoreTrouble)
    -> ReserveAnswer.Verdict
  {
    let key = try keyOfReceipt(entry.receipt, of: entry.enrollmentID, entry.name, holder)
    guard let key else { return .delete }
    // One by the former key is replaced, once it is said that what was used is saved.
    var isSaved = false
    // One code after the other: each is an event. Again where somebody else was faster.
    for _ in 0..<4 * BackupCodeSet.maximumCodes {
      let found = try load(entry.name, holder)
      let (record, isBlocked): (Record, Bool)
      switch found {
      case .disbelieved: return .keep(used: 0)
      case .nobody: return .delete
      case .record(let own): (record, isBlocked) = (own, false)
      case .blocked(let own): (record, isBlocked) = (own, true)
      }
      guard record.enrollment.id == entry.enrollmentID,
        let set = record.enrollment.backupCodes, !set.digests.isEmpty
      else { return .delete }
      guard set.id == entry.setID else { return .replace }
      let used = record.usedCodes(of: set)
      let new = entry.used & set.bitsOfCodes & ~used
      if new == 0 {
        let isKept = policies.isFor(entry.name) && !isBlocked && holder.holdsReserve
        if isKept, !isSaved, key != database.key.id { return .replace }
        return isKept ? .keep(used: used) : .delete
      }
      try use(new & (~new + 1), of: entry.name, in: record, by: holder)
      isSaved = true
    }
    throw .busy(path: "fleet")
  }

  private func use(_ code: UInt64, of name: UserName, in record: Record, by holder: HostIdentity)
    throws(StoreTrouble)
  {
    let done = try store(for: name, holder).transact(record, asKnown: true) {
      (enrollment, state) throws(StoreTrouble) -> (UsedOffline, LoginState) in
      var state = state
      state.reconcile(with: enrollment)
      let isNew = (state.backupCodes?.used ?? 0) & code == 0
      state.backupCodes?.used |= code
      return (isNew ? .used : .was, state)
    }
    guard case .committed(let what) = done else { return }
    database.counts.note(what.word, on: holder.host)
    if what == .was { return }
    database.note(
      .warning, "backup code used on a host that was cut off:", of: name, on: holder.host)
  }
}

extension FleetPolicy {
  /// Whether hosts may keep this person's backup codes. The policy that applies where the file
  /// cannot be used does not say so: what hosts have stays.
  fileprivate func isFor(_ name: UserName) -> Bool {
    let reading = reading(service: [], user: name.bytes, isRemote: true, address: nil)
    if reading.isStrict { return true }
    let found = reading.policy
    return !found.isRefusedAway && found.backupCode != .off && found.reserveFor > 0
  }
}

/// What became of a backup code that a host has used while it was cut off.
private enum UsedOffline: EventWord {
  case used
  /// It was used before: also at a verifier, or on another host that was cut off.
  case was

  var word: [UInt8] { bytes(of: self == .used ? "used-away" : "used-before") }
}

extension Record {
  fileprivate func usedCodes(of set: BackupCodeSet) -> UInt64 {
    guard let codes = state.backupCodes, codes.setID == set.id else { return 0 }
    return codes.used & set.bitsOfCodes
  }
}

extension FleetKey {
  /// By the present key.
  func receipt(_ enrollment: UInt64, of name: [UInt8], for pin: Pin) throws(CryptoError) -> [UInt8]
  {
    try present.receipt(enrollment, of: name, for: pin)
  }
}

extension SealingKey {
  /// What a host with this key shows to prove that it was given the backup codes of this
  /// enrollment (docs/fleet-format.md).
  func receipt(_ enrollment: UInt64, of name: [UInt8], for pin: Pin) throws(CryptoError) -> [UInt8]
  {
    let parts = [OneTimePassword.bytes(of: "reserve"), name, pin.bytes, number(enrollment)]
    let made = try derive(parts.flatMap { FleetKey.counted($0) })
    return made.bytes(in: 0..<made.count)
  }
}

/// Who was let in by this verifier in the last minute, and on which host: whose backup codes that
/// host may fetch.
package final class RecentLogins: Sendable {
  private static let lifetime: UInt64 = 60_000_000_000
  /// More than there are in a minute, but for a flood: then the oldest are forgotten, and fetched
  /// at the next login.
  private static let most = 65_536

  private struct Login: Hashable {
    let name: [UInt8]
    let pin: Pin
  }

  private let logins = Locked<[Login: UInt64]>([:])

  package init() {}

  func note(_ name: [UInt8], on pin: Pin) {
    let now = sys_monotonic()
    logins.withLock { logins in
      if logins.count >= Self.most {
        logins = logins.filter { now - $0.value < Self.lifetime }
        if logins.count >= Self.most { logins = [:] }
      }
      logins[Login(name: name, pin: pin)] = now
    }
  }

  func has(_ name: [UInt8], on pin: Pin) -> Bool {
    let now = sys_monotonic()
    return logins.withLock {
      $0[Login(name: name, pin: pin)].map { now - $0 < Self.lifetime } ?? false
    }
  }
}
