import ArgumentParser
import OneTimePassword
import SallyportAdministration
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
      let count = backupCodeCount(enrollment, state)
      session.output.say(session.words.words(.codesLeft, "\(count.left)", "\(count.all)"))
      return
    }
    // Not those of the user who typed sudo, unless he says so.
    if regenerate, shared.argument.name == nil { throw .nobodyNamed }
    let subject = try shared.open(in: context, for: regenerate ? .onStored : .none)
    let person = try subject.person(usesPolicy: false)
    if regenerate { return try renew(person, subject) }
    if person.isInFleet { return try tellLeft(person, subject.output) }
    let found = try person.enrolledRecord()
    let count = backupCodeCount(found.enrollment, found.state)
    subject.output.answer(
      Left(user: person.account.name.text, left: count.left, total: count.all), left(count))
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

  private func left(_ count: (left: Int, all: Int)) -> String {
    "\(count.left) of \(counted(count.all, "backup code")) left"
  }

  /// Any host may ask the fleet for that.
  private func tellLeft(_ person: any Person, _ output: Output) throws(CommandError) {
    let left = try person.enrolled().shape.backupCodesLeft ?? 0
    output.answer(
      LeftInFleet(user: person.account.name.text, left: left),
      "\(counted(left, "backup code")) left")
  }

  private func renew(_ person: any Person, _ subject: Subject) throws(CommandError) {
    try person.rehearse()
    let pending = try person.enrolled()
    let before = try person.enrolledRecord().enrollment.backupCodes
    let fresh = try storing { () throws(StoreTrouble) in
      try BackupCodeSet.fresh(count: BackupCodeSet.maximumCodes)
    }
    guard let set = fresh.set?.replacing(before) else { return }
    try person.amend(.renew(set), of: pending)
    let codes = Array(fresh.codes.prefix(set.count))
    try show(FreshBackupCodes((codes, set)), of: person.account.name, subject)
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
    self.init(
      try storing { () throws(StoreTrouble) in
        try BackupCodeSet.fresh(count: count, scratchCodes: scratchCodes)
      })
  }

  init(_ fresh: (codes: [Secret], set: BackupCodeSet?)) {
    (shown, set) = (fresh.codes.map(BackupCode.grouped), fresh.set)
  }

  static let heading = "Backup codes: each works once, when the phone is not at hand."

  /// The text that shows the codes.
  var text: String { text(under: "\(FreshBackupCodes.heading) Not shown again.") }

  func text(under heading: String) -> String {
    ([heading, ""] + columns(ofBackupCodes: shown) + [""]).joined(separator: "\n")
  }
}
