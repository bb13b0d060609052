import ArgumentParser
import SallyportAdministration
import SallyportCore
import SallyportSystem
import SessionProtocol

/// `sallyport rename`
struct Rename: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Give one of a user's authenticators another name.")

  @OptionGroup var shared: SubjectOptions<NoDefault>

  @OptionGroup var authenticator: AuthenticatorArgument

  @Argument(help: ArgumentHelp("Its new name.", valueName: "new-name"))
  var newName: String?

  @Option(help: ArgumentHelp("The same, as an option.", valueName: "new-name"))
  var to: Label?

  private struct Answer: Encodable {
    let user, renamed, name: String
  }

  func run(in context: Context) throws(CommandError) {
    let pairs = [(authenticator.word, authenticator.option), (newName, to)]
    if let names = try shared.own(
      in: context, naming: pairs, isWhole: true, roots: ["--json": shared.storeOptions.json])
    {
      guard let name = names[0] else { throw .noAuthenticatorNamed }
      guard let to = try names[1]?.clear() else { throw .noNewName }
      let session = OwnSession(context, shared.storeOptions)
      guard case .done = try session.ask(for: .rename(name, to: to)) else {
        throw session.fault(.garbage)
      }
      session.output.say(session.words.words(.renamed, name.text, to.text))
      return
    }
    let (subject, names) = try shared.open(
      in: context,
      naming: pairs)
    guard let name = names[0] else { throw .noAuthenticatorNamed }
    guard let to = try names[1]?.clear() else { throw .noNewName }
    let person = try subject.person(usesPolicy: false)
    try person.rehearse()
    try person.amend(.rename(name, to: to), of: try person.enrolled())
    let who = person.account.name.text
    subject.output.answer(
      Answer(user: who, renamed: name.text, name: to.text),
      "\"\(name.text)\" of \(who) is \"\(to.text)\" now.")
  }
}
