import ArgumentParser
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportImport
import SallyportSupport
import SallyportSystem

/// The options of every import.
struct ImportOptions: ParsableArguments {
  @Flag(help: "Change nothing; show what would be done.")
  var dryRun = false

  @Option(help: ArgumentHelp("Number of backup codes for each user, 0 to 32.", valueName: "n"))
  var backupCodes = 0

  @Flag(help: "Import weak secrets too: shorter than 80 bits, or one byte repeated.")
  var force = false

  @OptionGroup var users: UserOptions

  func validate() throws {
    guard (0...BackupCodeSet.maximumCodes).contains(backupCodes) else {
      throw ValidationError("--backup-codes takes 0 to \(BackupCodeSet.maximumCodes)")
    }
  }
}

/// Whose clock it is that the codes of a source go by.
struct DeviceOfSource: ParsableArguments {
  @Option(help: "A phone, or tokens, whose clocks nobody can set. (default: phone)")
  var device: DeviceOption?

  /// A counter has no clock.
  func marked(_ candidates: [Candidate]) -> [Candidate] {
    guard device == .token else { return candidates }
    return candidates.map { candidate in
      var marked = candidate
      if marked.authenticator.map({ $0.parameters.type != .hotp }) == true {
        marked.authenticator?.isToken = true
      }
      return marked
    }
  }
}

/// The result for one user.
struct Imported {
  enum Result {
    case imported
    /// An earlier import enrolled every secret. `caughtUp`: codes were used with the other module
    /// since then, and are now marked as used here.
    case already(caughtUp: Bool)
    case not([Obstacle])
  }

  let person: ImportedPerson
  let result: Result
  /// New backup codes, to be shown once.
  var backupCodes: [String] = []
}

/// Imports candidates into a store.
struct Importer {
  let options: ImportOptions
  let store: Store
  let context: Context
  let recorder: Recorder

  /// Joins the candidates of each account, in the order of its first one. A candidate whose user
  /// name is not valid stands alone.
  func persons(_ candidates: [Candidate]) throws(CommandError) -> [ImportedPerson] {
    var accounts = try storing { () throws(StoreTrouble) in
      try AccountBook(forNames: candidates.count)
    }
    var persons: [ImportedPerson] = []
    var places: [[UInt8]: Int] = [:]
    for candidate in candidates {
      guard let name = UserName(candidate.user) else {
        var stranger = ImportedPerson(candidate, nil)
        stranger.add(candidate)
        stranger.stop(Obstacle("user-name", "not a valid user name"))
        persons.append(stranger)
        continue
      }
      let account = try storing { () throws(StoreTrouble) in try accounts.find(name) }
      let place = places[account.name.bytes] ?? persons.count
      if place == persons.count { persons.append(ImportedPerson(candidate, account)) }
      places[account.name.bytes] = place
      persons[place].add(candidate)
    }
    for index in persons.indices {
      persons[index].check(allowMissing: options.users.allowMissing, force: options.force)
    }
    return persons
  }

  /// Enrolls users in batches. Throws `importStopped` if interrupted: what is done is kept, and the
  /// same command continues from there.
  func run(_ persons: [ImportedPerson]) throws(CommandError) -> [Imported] {
    let now = try context.time()
    context.terminal.watchForInterruption()
    if !options.dryRun { try storing { () throws(StoreTrouble) in try context.prepare(store) } }
    var done: [Imported] = []
    done.reserveCapacity(persons.count)
    let progress = Progress(of: persons.count, on: context.terminal)
    var next = 0
    while next < persons.count {
      if let interruption = context.terminal.interruption() {
        progress.end()
        let fate = "stopped after \(next) of \(counted(persons.count, "user"))"
        throw .stopped(interruption, "\(fate); run the same command again to continue")
      }
      let end = min(next + Store.batch, persons.count)
      done += try enroll(persons[next..<end], at: now)
      next = end
      progress.show(next)
      if next < persons.count, !options.dryRun { store.makeWay() }
    }
    progress.end()
    return done
  }

  private func enroll(_ persons: ArraySlice<ImportedPerson>, at now: UnixTime) throws(CommandError)
    -> [Imported]
  {
    var results: [Imported] = []
    var (new, places): ([(Enrollment, LoginState)], [Int]) = ([], [])
    for person in persons {
      var result = Imported(person: person, result: try outcome(of: person))
      if case .imported = result.result, !options.dryRun {
        let codes = try FreshBackupCodes(
          count: options.backupCodes, scratchCodes: person.scratchCodes)
        if let enrollment = try person.enrollment(codes.set, at: now) {
          result.backupCodes = codes.shown
          new.append(enrollment)
          places.append(results.count)
        }
      }
      results.append(result)
    }
    if new.isEmpty { return results }
    let troubles = try create(new)
    for (trouble, place) in zip(troubles, places) {
      guard let trouble else { continue }
      results[place] = Imported(person: results[place].person, result: .not([.store(trouble)]))
    }
    return results
  }

  /// Why each was not made. Each of them leaves lines of his own.
  private func create(_ new: [(Enrollment, LoginState)]) throws(CommandError) -> [StoreTrouble?] {
    func act(_ enrollment: Enrollment, _ stage: Act.Stage) -> Act {
      let facts = enrollment.authenticators.map { Act.Fact("authenticator", $0.name.bytes) }
      return Act(.import, stage, for: enrollment.user, facts)
    }
    recorder.note(new.map { act($0.0, .will) })
    do throws(StoreTrouble) {
      let troubles = try store.create(all: new)
      recorder.note(zip(new, troubles).map { act($0.0, $1 == nil ? .done : .failed) })
      return troubles
    } catch {
      recorder.note(new.map { act($0.0, .failed) })
      throw .store(error)
    }
  }

  /// Marks codes as used that were used with the other module since the earlier import. Returns
  /// whether there were any.
  private func catchUp(_ person: ImportedPerson, _ record: Record) throws(StoreTrouble) -> Bool {
    let scratchCodes = try person.scratchCodesUsedUp(in: record.enrollment)
    let change = { (enrollment: Enrollment, state: LoginState) in
      person.caughtUp(state, with: enrollment, scratchCodes)
    }
    var before = record.state
    before.reconcile(with: record.enrollment)
    guard change(record.enrollment, before) != before else { return false }
    if options.dryRun { return true }
    let result = try store.transact(record) { (enrollment, state) throws(StoreTrouble) in
      ((), change(enrollment, state))
    }
    switch result {
    case .committed: return true
    case .changed: throw .unsettled(path: record.path)
    }
  }

  private func outcome(of person: ImportedPerson) throws(CommandError) -> Imported.Result {
    guard person.obstacles.isEmpty, let account = person.account else {
      return .not(person.obstacles)
    }
    do throws(StoreTrouble) {
      guard let record = try store.load(account) else { return .imported }
      guard person.isEnrolled(in: record.enrollment) else {
        let count = counted(record.enrollment.authenticators.count, "authenticator")
        return .not([
          Obstacle("enrolled", "already enrolled, with another secret (\(count))") {
            [$0.command("status", remark: "shows what is enrolled")]
          }
        ])
      }
      let caughtUp = try catchUp(person, record)
      // Not by removing it first: its used codes would be good again.
      if person.isEnrolledAsPhone(in: record.enrollment) {
        return .not([
          Obstacle(
            "enrolled",
            "already enrolled, with a clock that can be set: what was used is marked, "
              + "and it stays so"
          ) { [$0.command("status", remark: "shows what is enrolled")] }
        ])
      }
      return .already(caughtUp: caughtUp)
    } catch {
      if case .noStore = error, options.dryRun { return .imported }
      guard error.isBrokenEnrollment else { throw .store(error) }
      return .not([.store(error)])
    }
  }
}
