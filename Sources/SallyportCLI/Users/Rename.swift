import ArgumentParser
import SallyportCore
import SallyportSystem

/// `sallyport rename`
struct Rename: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Give one of a user's authenticators another name.")

  @OptionGroup var shared: SubjectOptions<NamedUser>

  @Option(help: ArgumentHelp("The authenticator to rename.", valueName: "text"))
  var name: Label

  @Option(help: ArgumentHelp("Its new name.", valueName: "text"))
  var to: Label

  private struct Answer: Encodable {
    let user, renamed, name: String
  }

  func run(in context: Context) throws(CommandError) {
    let subject = try shared.open(in: context)
    let enrollment = try subject.amend { enrollment throws(CommandError) in
      guard let index = enrollment.index(of: name) else { throw .noSuchAuthenticator(name.text) }
      if let other = enrollment.index(of: to), other != index { throw .nameTaken(to.text) }
      enrollment.authenticators[index].name = to
    }
    let who = enrollment.user.text
    subject.voice.answer(
      Answer(user: who, renamed: name.text, name: to.text),
      "\"\(name.text)\" of \(who) is \"\(to.text)\" now.")
  }
}
