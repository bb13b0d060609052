import CService
package import FleetProtocol
package import FleetTransport
package import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

extension Statement {
  /// $1 the key of a host that has shown a receipt by the fleet's former key.
  fileprivate static let shownFormer = "UPDATE host SET formerly = now() WHERE key = $1"

  /// $1 the key of a host, $2 for how many seconds all that it holds is confirmed.
  fileprivate static let confirmed = """
    UPDATE host SET asked = now() - $2::bigint * interval '1 second' WHERE key = $1
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
  /// Questions of one host that are answered at a time, of those that are.
  private static let mostOfOne = 2
  /// Nanoseconds after which a question is answered as far as it got; and how long one waits for
  /// others. A host that has no answer by then asks again; one that hears nothing for three seconds
  /// would take this verifier for silent.
  private static let patience: UInt64 = 1_000_000_000

  private let database: Database
  private let logins: RecentLogins
  private let policies: FleetPolicy
  private let presences: Presences
  private let revocations: Revocations?
  /// Hosts and people about whom it was told that the host shows codes as used, and cannot be
  /// believed.
  private let told = Locked<Set<[UInt8]>>([])
  private let busy = Locked<[Pin: Int]>([:])

  /// `revocations`: nil for ones that nothing remembers.
  package init(
    _ database: Database, _ logins: RecentLogins, _ policies: FleetPolicy,
    revocations: Revocations? = nil
  ) {
    (self.database, self.logins, self.policies) = (database, logins, policies)
    presences = Presences(database: database, revocations: revocations)
    self.revocations = revocations
  }

  /// An empty answer to what is no question about a reserve.
  package func read(_ body: Secret) -> ReserveQuestion? { ReserveQuestion.decode(body) }

  /// Thousands of hosts that come back at once ask one after the other, in the order in which they
  /// came: were they all sent away, answering that they are would take all the time.
  package func line(of question: ReserveQuestion) -> FleetServer.Line? { .reserves }

  package func answer(_ question: ReserveQuestion?, from asker: HostIdentity, arrived: UInt64)
    -> VerifierAnswer
  {
    guard let question else { return VerifierAnswer(to: .reserve, []) }
    guard sys_monotonic() - arrived < Self.patience, takeTurn(asker.pin) else {
      return VerifierAnswer(to: .reserve, ReserveAnswer.busy)
    }
    defer { endTurn(asker.pin) }
    do throws(StoreTrouble) {
      return VerifierAnswer(to: .reserve, try answer(question, asker))
    } catch {
      return .databaseAway
    }
  }

  private func takeTurn(_ pin: Pin) -> Bool {
    busy.withLock { busy in
      guard busy[pin, default: 0] < Self.mostOfOne else { return false }
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
    case .start(let start):
      if let age = start.confirmed { try note(confirmed: age, holder) }
      return .start(try take(start, holder))
    case .fetch(let name, let receipt):
      return try mayHold(holder) ? try fetch(name, receipt, holder) : ReserveAnswer.none
    case .confirm(let entries):
      // Also of none: whether somebody is there.
      _ = try ask(Statement.fleet)
      let start = sys_monotonic()
      var (verdicts, isFormer): ([ReserveAnswer.Verdict], Bool) = ([], false)
      for entry in entries {
        if !verdicts.isEmpty, sys_monotonic() - start > Self.patience { break }
        verdicts.append(try verdict(on: entry, holder, &isFormer))
      }
      if isFormer { _ = try ask(Statement.shownFormer, [.bytes(holder.pin.bytes)]) }
      return .confirmed(verdicts)
    }
  }

  /// While the fleet's key changes: since when this host has confirmed all that it holds, of which
  /// nothing is by the former key that it has shown before.
  private func note(confirmed age: UInt64, _ holder: HostIdentity) throws(StoreTrouble) {
    guard database.key.former != nil else { return }
    // A host cannot have done so in the future, nor before there were clocks.
    let seconds = Value.number(min(age, 1 << 31))
    _ = try ask(Statement.confirmed, [.bytes(holder.pin.bytes), seconds])
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
      holdsOne = try maker(of: receipt, for: record.enrollment.id, name, holder) != nil
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

  /// How a receipt was made.
  private struct Maker {
    /// By the key of the fleet that seals, for the key that the host has now.
    let isPresent: Bool
    /// By the fleet's key of before.
    let isFormer: Bool
  }

  /// nil: it is none. One that was made for a key that a host of this name had before is one: what
  /// it has used is not lost by its new key.
  private func maker(
    of receipt: [UInt8], for enrollment: UInt64, _ name: UserName, _ holder: HostIdentity
  ) throws(StoreTrouble) -> Maker? {
    let former = revocations?.formerKeys(of: holder.host).compactMap(Pin.init) ?? []
    return try rethrow(
      { () throws(CryptoError) in
        for pin in [holder.pin] + former {
          for id in database.key.ids {
            let right = try database.key.key(id)?.receipt(enrollment, of: name.bytes, for: pin)
            guard let right, constantTimeEquals(receipt, right) else { continue }
            let isFormer = id != database.key.id
            return Maker(isPresent: !isFormer && pin == holder.pin, isFormer: isFormer)
          }
        }
        return nil
      }, as: StoreTrouble.crypto)
  }

  // MARK: what a host says

  /// `isFormer`: where the receipt is by the fleet's key of before.
  private func verdict(
    on entry: ReserveQuestion.Entry, _ holder: HostIdentity, _ isFormer: inout Bool
  ) throws(StoreTrouble) -> ReserveAnswer.Verdict {
    let maker = try maker(of: entry.receipt, for: entry.enrollmentID, entry.name, holder)
    guard let maker else { return try verdictWithout(entry, holder) }
    if maker.isFormer { isFormer = true }
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
        if isKept, !isSaved, !maker.isPresent { return .replace }
        return isKept ? .keep(used: used) : .delete
      }
      try use(new & (~new + 1), of: entry.name, in: record, by: holder)
      isSaved = true
    }
    throw .busy(path: "fleet")
  }

  /// Of an entry with a receipt that no key here has made. It is not believed; but where codes that
  /// are good would be lost, the host keeps it, and root is told.
  private func verdictWithout(_ entry: ReserveQuestion.Entry, _ holder: HostIdentity)
    throws(StoreTrouble) -> ReserveAnswer.Verdict
  {
    if entry.used == 0 { return .delete }
    switch try load(entry.name, holder) {
    case .disbelieved: return .keep(used: 0)
    case .nobody: return .delete
    case .record(let record), .blocked(let record):
      guard record.enrollment.id == entry.enrollmentID, let set = record.enrollment.backupCodes,
        set.id == entry.setID, entry.used & set.bitsOfCodes & ~record.usedCodes(of: set) != 0
      else { return .delete }
    }
    let mark = holder.host + [0] + entry.name.bytes
    if told.withLock({ $0.count < 10_000 && $0.insert(mark).inserted }) {
      var line = LogLine("ALERT: backup codes were used on a host that shows no receipt for them ")
      line.add("sealed with a key that is here: they count as unused; make new ones ")
      line.add("(sallyport backup-codes NAME --regenerate):")
      line.add(user: entry.name.bytes)
      line.add(" host=")
      line.add(field: holder.host)
      database.note(.alert, line)
    }
    return .keep(used: 0)
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
