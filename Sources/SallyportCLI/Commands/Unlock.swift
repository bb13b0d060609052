import ArgumentParser
import SallyportCore
import SallyportSystem

/// `sallyport unlock`
struct Unlock: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Forget wrong codes, so that the next one is judged at once.")

  @Option(help: ArgumentHelp("Whose wrong codes.", valueName: "name"))
  var user: String

  @OptionGroup var users: UserOptions
  @OptionGroup var policy: PolicyOptions
  @OptionGroup var store: StoreOptions

  func user(in context: Context) -> String? { user }

  func run(in context: Context) throws(CommandError) {
    let place = try context.store(store)
    let now = try context.time()
    let policy = context.policy(policy, for: try context.account(user), in: place)
    let (name, before) = try context.settled(at: store.path) { () throws(CommandError) in
      let record = try context.record(user, users, in: place)
      return try storing { () throws(StoreTrouble) in
        try place.transact(record) { (enrollment, state) throws(StoreTrouble) in
          let before = Allowances(enrollment, state, under: policy, at: now)
          var state = state
          (state.known, state.other, state.slip) = (.full, .full, nil)
          return ((enrollment.user.text, before), state)
        }
      }
    }
    context.voice(store).answer(
      .object([
        ("user", .text(name)), ("unlocked", .flag(true)), ("wrongCodesBefore", before.json),
      ]), "The wrong codes of \(name) are forgotten. Before: \(before.text).")
  }
}
