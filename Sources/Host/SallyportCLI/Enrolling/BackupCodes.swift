import ArgumentParser
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

/// `sallyport backup-codes`
struct BackupCodes: Verb {
  static let configuration = CommandConfiguration(
    commandName: "backup-codes", abstract: "Show how many backup codes are left, or make new ones.")

  @OptionGroup var shared: SubjectOptions<Caller>

  @Flag(help: "Make a new set; the old codes no longer work.")
  var regenerate = false

  func run(in context: Context) throws(CommandError) {
    if try shared.own(in: context, roots: ["--json": shared.storeOptions.json]) != nil {
      let session = OwnSession(context, shared.storeOptions)
      if regenerate { return try session.renewBackupCodes() }
      let (enrollment, state) = try session.status()
      session.output.say(left(backupCodeCount(enrollment, state)))
      return
    }
    // Not those of the user who typed sudo, unless he says so.
    if regenerate, shared.argument.name == nil { throw .nobodyNamed }
    let subject = try shared.open(in: context, for: regenerate ? .onStored : .none)
    if let person = try subject.inFleet() {
      regenerate ? try renew(person, subject) : tell(try person.enrolled(), person, subject.output)
    } else if regenerate {
      try renew(subject)
    } else {
      tell(try subject.record(), subject.output)
    }
  }

  private struct Left: Encodable {
    let user: String
    let left, total: Int
  }

  /// Of the fleet, which does not say how many there were.
  private struct LeftInFleet: Encodable {
    let user: String
    let left: Int
  }

  private struct New: Encodable {
    let user: String
    let backupCodes: [String]
  }

  private func tell(_ record: Record, _ output: Output) {
    let count = backupCodeCount(record.enrollment, record.state)
    output.answer(
      Left(user: record.enrollment.user.text, left: count.left, total: count.all), left(count))
  }

  private func left(_ count: (left: Int, all: Int)) -> String {
    "\(count.left) of \(counted(count.all, "backup code")) left"
  }

  private func tell(_ pending: PendingLogin, _ person: any FleetAccount, _ output: Output) {
    let left = pending.shape.backupCodesLeft ?? 0
    output.answer(
      LeftInFleet(user: person.account.name.text, left: left),
      "\(counted(left, "backup code")) left")
  }

  private func renew(_ person: any FleetAccount, _ subject: Subject) throws(CommandError) {
    try person.rehearse()
    let pending = try person.enrolled()
    let fresh = try FreshBackupCodes(count: BackupCodeSet.usualCodes)
    if let set = fresh.set { try person.amend(.renew(set), of: pending) }
    try show(fresh, of: person.account.name, subject)
  }

  private func renew(_ subject: Subject) throws(CommandError) {
    let first = try subject.record()
    let count = first.enrollment.backupCodes?.digests.count ?? 0
    let fresh = try FreshBackupCodes(count: count > 0 ? count : BackupCodeSet.usualCodes)
    if let set = fresh.set { _ = try subject.amend(.renew(set)) }
    try show(fresh, of: first.enrollment.user, subject)
  }

  private func show(_ fresh: FreshBackupCodes, of user: UserName, _ subject: Subject)
    throws(CommandError)
  {
    let name = user.text
    subject.output.answer(
      New(user: name, backupCodes: fresh.shown),
      fresh.text + "\nThe old backup codes of \(name) no longer work.")
    if let number = subject.context.terminal.failure { throw .backupCodesUnseen(errno: number) }
  }
}

/// How many backup codes are left, and how many there were.
func backupCodeCount(_ enrollment: Enrollment, _ state: LoginState) -> (left: Int, all: Int) {
  guard let set = enrollment.backupCodes else { return (0, 0) }
  return (set.left(state.backupCodes), set.count)
}

/// A new set of backup codes: the codes to show, and the digests to store.
struct FreshBackupCodes {
  /// The codes in groups, to be shown once.
  let shown: [String]
  /// nil if there are no codes.
  let set: BackupCodeSet?

  /// `scratchCodes`: those of another module, stored beside the new codes.
  init(count: Int, scratchCodes: [Secret] = []) throws(CommandError) {
    let fresh = try storing { () throws(StoreTrouble) in
      try BackupCodeSet.fresh(count: count, scratchCodes: scratchCodes)
    }
    (shown, set) = (fresh.codes.map(BackupCode.grouped), fresh.set)
  }

  static let heading = "Backup codes: each works once, when the phone is not at hand."

  /// The text that shows the codes.
  var text: String {
    let heading = "\(FreshBackupCodes.heading) Not shown again."
    return ([heading, ""] + columns(ofBackupCodes: shown) + [""]).joined(separator: "\n")
  }
}
