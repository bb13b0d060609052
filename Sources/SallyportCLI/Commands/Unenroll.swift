import ArgumentParser
import OneTimePassword
import SallyportCore
import SallyportSystem

/// `sallyport unenroll`
struct Unenroll: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Remove a user's enrollment, after a fresh code.")

  @Option(help: ArgumentHelp("Whose enrollment.", valueName: "name"))
  var user: String

  @Flag(help: "Remove it without a code.")
  var force = false

  @OptionGroup var users: UserOptions
  @OptionGroup var policy: PolicyOptions
  @OptionGroup var store: StoreOptions

  func user(in context: Context) -> String? { user }

  func run(in context: Context) throws(CommandError) {
    let place = try context.store(store)
    if !force { try prove(in: place, context) }
    try context.settled(at: store.path) { () throws(CommandError) in
      try remove(from: place, context)
    }
    let name = printable(user.utf8, limit: 255)
    context.voice(store).answer(
      .object([("user", .text(name)), ("removed", .flag(true))]),
      "\(name) is not enrolled any more.")
  }

  private func remove(from place: Store, _ context: Context) throws(CommandError) -> Transaction<
    Void
  > {
    let record: Record
    do throws(CommandError) {
      record = try context.record(user, users, in: place)
    } catch {
      guard force, case .store(let trouble) = error, trouble.isBrokenEnrollment else { throw error }
      try removeUnread(from: place, context)
      return .committed(())
    }
    return try storing { () throws(StoreTrouble) in try place.remove(record) }
  }

  /// What is stored under the user's name and cannot be read.
  private func removeUnread(from place: Store, _ context: Context) throws(CommandError) {
    let account = try context.account(user)
    let removed = try storing { () throws(StoreTrouble) in
      guard let name = try place.enrolledNames().first(where: { $0.user == account.name }) else {
        return false
      }
      return try place.remove(stored: name)
    }
    guard removed else { throw .notEnrolled }
  }

  private func prove(in place: Store, _ context: Context) throws(CommandError) {
    _ = try context.record(user, users, in: place)
    let policy = context.policy(policy, for: try context.account(user), in: place)
    try CodeCheck(store: place, context: context, policy: policy)
      .ask("Verification code: ", for: user, users, context.voice(store))
  }
}
