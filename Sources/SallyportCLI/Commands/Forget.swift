import ArgumentParser
import SallyportCore
import SallyportSystem
import SallyportText

/// `sallyport forget`
struct Forget: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Forget from where a user is not asked for a code.",
    discussion: """
      The next login from there is asked again. Which addresses may be remembered, and for how \
      long, the policy says.
      """)

  @Option(help: ArgumentHelp("Whose remembered addresses.", valueName: "name"))
  var user: String

  @OptionGroup var users: UserOptions
  @OptionGroup var store: StoreOptions

  func user(in context: Context) -> String? { user }

  func run(in context: Context) throws(CommandError) {
    let place = try context.store(store)
    let (name, forgotten) = try context.settled(at: store.path) { () throws(CommandError) in
      let record = try context.record(user, users, in: place)
      return try storing { () throws(StoreTrouble) in
        try place.transact(record) { (enrollment, state) throws(StoreTrouble) in
          var next = state
          next.forgetRemembered()
          return ((enrollment.user.text, state.remembered), next)
        }
      }
    }
    context.voice(store).answer(
      .object([("user", .text(name)), ("forgotten", .list(forgotten.map(fact)))]),
      "Forgot \(counted(forgotten.count, "remembered address", "es")) of \(name).")
  }
}
