import ArgumentParser
import SallyportCore
import SallyportSystem

/// `sallyport rename`
struct Rename: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Give one of a user's authenticators another name.")

  @OptionGroup var shared: SubjectOptions<Nobody>

  @OptionGroup var authenticator: AuthenticatorArgument

  @Argument(help: ArgumentHelp("Its new name.", valueName: "new-name"))
  var newName: String?

  @Option(help: ArgumentHelp("The same, as an option.", valueName: "new-name"))
  var to: Label?

  private struct Answer: Encodable {
    let user, renamed, name: String
  }

  func run(in context: Context) throws(CommandError) {
    let (subject, names) = try shared.open(
      in: context,
      naming: [(authenticator.word, authenticator.option), (newName, to)])
    guard let name = names[0] else { throw .noAuthenticatorNamed }
    guard let to = names[1] else { throw .noNewName }
    let enrollment = try subject.amend(.rename(name, to: to))
    let who = enrollment.user.text
    subject.output.answer(
      Answer(user: who, renamed: name.text, name: to.text),
      "\"\(name.text)\" of \(who) is \"\(to.text)\" now.")
  }
}
