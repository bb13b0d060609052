import ArgumentParser
import OneTimePassword
import SallyportCore
import SallyportSystem
import SallyportText

/// `sallyport backup-codes`
struct BackupCodes: Verb {
  static let configuration = CommandConfiguration(
    commandName: "backup-codes", abstract: "Tell how many backup codes are left, or make new ones.")

  @Option(
    help: ArgumentHelp("Whose codes. (default, when looking: who called sudo)", valueName: "name"))
  var user: String?

  @Flag(help: "Make a new set; the old codes no longer work.")
  var regenerate = false

  @OptionGroup var users: UserOptions
  @OptionGroup var store: StoreOptions

  func validate() throws {
    if regenerate, user == nil { throw ValidationError("--regenerate needs --user") }
  }

  func user(in context: Context) -> String? { user ?? context.sudoUser }

  func run(in context: Context) throws(CommandError) {
    let place = try context.store(store)
    guard let user = user(in: context) else { throw .nobodyNamed }
    if regenerate {
      try renew(user, in: place, context)
    } else {
      tell(try context.record(user, users, in: place), context.voice(store))
    }
  }

  private func tell(_ record: Record, _ voice: Output) {
    let (left, all) = backupCodeCount(record)
    voice.answer(
      .object([
        ("user", .text(record.enrollment.user.text)), ("left", .number(Int64(left))),
        ("total", .number(Int64(all))),
      ]), "\(left) of \(counted(all, "backup code")) left")
  }

  private func renew(_ user: String, in place: Store, _ context: Context) throws(CommandError) {
    let first = try context.record(user, users, in: place)
    let count = first.enrollment.backupCodes?.digests.count ?? 0
    let fresh = try FreshBackupCodes(count: count > 0 ? count : BackupCodeSet.usualCodes)
    let change = Amendment(user: user, users: users, store: place, path: store.path)
    _ = try change.run(
      in: context, { $0.backupCodes = fresh.set }, then: { $0.forgetRemembered() })
    let voice = context.voice(store)
    let name = first.enrollment.user.text
    voice.answer(
      .object([("user", .text(name)), ("backupCodes", fresh.json)]),
      fresh.text + "\nThe old backup codes of \(name) no longer work.")
    if let number = context.terminal.failure { throw .backupCodesUnseen(errno: number) }
  }
}

/// How many backup codes are left, and how many there were.
func backupCodeCount(_ record: Record) -> (left: Int, all: Int) {
  guard let set = record.enrollment.backupCodes else { return (0, 0) }
  return (set.left(record.state.backupCodes), set.count)
}
