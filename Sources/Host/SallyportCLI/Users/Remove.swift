import ArgumentParser
import SallyportAdministration
import SallyportCore
import SallyportSystem
import SessionProtocol

/// `sallyport remove`
struct Remove: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Remove one of a user's authenticators, after checking a code.",
    discussion: """
      Its codes are refused from then on, and addresses that logged in before are forgotten. The \
      last authenticator cannot be removed: unenroll removes everything.
      """)

  @OptionGroup var shared: SubjectOptions<NoDefault>

  @OptionGroup var authenticator: AuthenticatorArgument

  @Flag(help: "Remove it without a code.")
  var force = false

  @OptionGroup var policy: PolicyOptions

  private struct Answer: Encodable {
    let user, removed: String
    /// The names of those that are left.
    let authenticators: [String]
  }

  func run(in context: Context) throws(CommandError) {
    if let names = try shared.own(
      in: context, naming: [(authenticator.word, authenticator.option)], isWhole: true,
      roots: [
        "--force": force, "--conf": policy.conf != nil, "--json": shared.storeOptions.json,
      ])
    {
      guard let name = names[0] else { throw .noAuthenticatorNamed }
      let session = OwnSession(context, shared.storeOptions)
      guard case .done(_, _, let left) = try session.ask(for: .remove(name)) else {
        throw session.fault(.garbage)
      }
      let rest = left.map(\.text).joined(separator: ", ")
      session.output.say(session.words.words(.removed, name.text, rest))
      return
    }
    let (subject, given) = try shared.open(in: context, naming: authenticator)
    guard let name = given else { throw .noAuthenticatorNamed }
    let person = try subject.person(policy, usesPolicy: !force)
    try person.rehearse()
    let pending = try person.enrolled()
    let names = person.names(of: pending)
    try checking(names) { (names) throws(EnrollmentChange.Flaw) in try names.check(removing: name) }
    if !force { try person.prove("Verification code: ", pending, subject) }
    try person.amend(.remove(name), of: pending)
    let (user, left) = (person.account.name.text, names.filter { $0 != name }.map(\.text))
    subject.output.answer(
      Answer(user: user, removed: name.text, authenticators: left),
      "Removed \"\(name.text)\". \(user) has \(left.joined(separator: ", ")).")
  }
}
