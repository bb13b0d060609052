import ArgumentParser
import SallyportCore
import SallyportSystem

/// `sallyport remove`
struct Remove: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Remove one of a user's authenticators, after a fresh code.",
    discussion: """
      Its codes are refused from then on, and addresses that logged in before are forgotten. The \
      last authenticator stays: unenroll removes everything.
      """)

  @Option(help: ArgumentHelp("Whose authenticator.", valueName: "name"))
  var user: String

  @Option(help: ArgumentHelp("The authenticator to remove.", valueName: "text"))
  var name: Label

  @Flag(help: "Remove it without a code.")
  var force = false

  @OptionGroup var users: UserOptions
  @OptionGroup var policy: PolicyOptions
  @OptionGroup var store: StoreOptions

  func user(in context: Context) -> String? { user }

  func run(in context: Context) throws(CommandError) {
    let place = try context.store(store)
    let record = try context.record(user, users, in: place)
    _ = try index(in: record.enrollment)
    let voice = context.voice(store)
    if !force {
      let policy = context.policy(policy, for: try context.account(user), in: place)
      try CodeCheck(store: place, context: context, policy: policy)
        .ask("Verification code: ", for: user, users, voice)
    }
    let change = Amendment(user: user, users: users, store: place, path: store.path)
    let enrollment = try change.run(
      in: context, of: record.enrollment.id,
      { enrollment throws(CommandError) in
        enrollment.authenticators.remove(at: try index(in: enrollment))
      },
      then: { state in
        state.origins = []
        state.forgetRemembered()
        state.slip = nil
      })
    let (who, left) = (enrollment.user.text, enrollment.authenticators.map(\.name.text))
    voice.answer(
      .object([
        ("user", .text(who)), ("removed", .text(name.text)),
        ("authenticators", .list(left.map { .text($0) })),
      ]), "Removed \"\(name.text)\". \(who) has \(left.joined(separator: ", ")).")
  }

  private func index(in enrollment: Enrollment) throws(CommandError) -> Int {
    guard let index = enrollment.index(of: name) else { throw .noSuchAuthenticator(name.text) }
    guard enrollment.authenticators.count > 1 else { throw .lastAuthenticator }
    return index
  }
}
