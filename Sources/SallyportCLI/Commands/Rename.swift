import ArgumentParser
import SallyportCore
import SallyportSystem

/// `sallyport rename`
struct Rename: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Give one of a user's authenticators another name.")

  @Option(help: ArgumentHelp("Whose authenticator.", valueName: "name"))
  var user: String

  @Option(help: ArgumentHelp("The authenticator to rename.", valueName: "text"))
  var name: Label

  @Option(help: ArgumentHelp("Its new name.", valueName: "text"))
  var to: Label

  @OptionGroup var users: UserOptions
  @OptionGroup var store: StoreOptions

  func user(in context: Context) -> String? { user }

  func run(in context: Context) throws(CommandError) {
    let place = try context.store(store)
    let change = Amendment(user: user, users: users, store: place, path: store.path)
    let enrollment = try change.run(in: context) { enrollment throws(CommandError) in
      guard let index = enrollment.index(of: name) else { throw .noSuchAuthenticator(name.text) }
      if let other = enrollment.index(of: to), other != index { throw .nameTaken(to.text) }
      enrollment.authenticators[index].name = to
    }
    let who = enrollment.user.text
    context.voice(store).answer(
      .object([
        ("user", .text(who)), ("renamed", .text(name.text)), ("name", .text(to.text)),
      ]), "\"\(name.text)\" of \(who) is \"\(to.text)\" now.")
  }
}
