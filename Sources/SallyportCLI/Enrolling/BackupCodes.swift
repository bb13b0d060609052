import ArgumentParser
import OneTimePassword
import SallyportCore
import SallyportSystem
import SallyportText

/// `sallyport backup-codes`
struct BackupCodes: Verb {
  static let configuration = CommandConfiguration(
    commandName: "backup-codes", abstract: "Show how many backup codes are left, or make new ones.")

  @OptionGroup var shared: SubjectOptions<Caller>

  @Flag(help: "Make a new set; the old codes no longer work.")
  var regenerate = false

  func validate() throws {
    if regenerate, shared.argument.name == nil {
      throw ValidationError("--regenerate needs a user")
    }
  }

  func run(in context: Context) throws(CommandError) {
    let subject = try shared.open(in: context)
    if regenerate {
      try renew(subject)
    } else {
      tell(try subject.record(), subject.output)
    }
  }

  private struct Left: Encodable {
    let user: String
    let left, total: Int
  }

  private struct New: Encodable {
    let user: String
    let backupCodes: [String]
  }

  private func tell(_ record: Record, _ output: Output) {
    let (left, all) = backupCodeCount(record)
    output.answer(
      Left(user: record.enrollment.user.text, left: left, total: all),
      "\(left) of \(counted(all, "backup code")) left")
  }

  private func renew(_ subject: Subject) throws(CommandError) {
    let first = try subject.record()
    let count = first.enrollment.backupCodes?.digests.count ?? 0
    let fresh = try FreshBackupCodes(count: count > 0 ? count : BackupCodeSet.usualCodes)
    if let set = fresh.set { _ = try subject.amend(.renew(set)) }
    let name = first.enrollment.user.text
    subject.output.answer(
      New(user: name, backupCodes: fresh.shown),
      fresh.text + "\nThe old backup codes of \(name) no longer work.")
    if let number = subject.context.terminal.failure { throw .backupCodesUnseen(errno: number) }
  }
}

/// How many backup codes are left, and how many there were.
func backupCodeCount(_ record: Record) -> (left: Int, all: Int) {
  guard let set = record.enrollment.backupCodes else { return (0, 0) }
  return (set.left(record.state.backupCodes), set.count)
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
