import ArgumentParser
import SallyportAdministration
import SallyportCore
import SallyportSupport
import SallyportSystem

/// `sallyport forget`
struct Forget: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Forget the addresses from which a user is not asked for a code.",
    discussion: """
      The next login from there is asked for a code again. The policy says which addresses may \
      be remembered, and for how long.
      """)

  @OptionGroup var shared: SubjectOptions<NoDefault>

  private struct Answer: Encodable {
    let user: String
    let forgotten: [RememberedFacts]
  }

  func run(in context: Context) throws(CommandError) {
    let subject = try shared.open(in: context)
    let person = subject.files(of: try subject.account(), under: Policy())
    let enrollment = try person.enrolledRecord().enrollment
    let forgotten = try person.change { () throws(StoreTrouble) in
      try subject.store.forget(person.account, id: enrollment.id)
    }
    let name = enrollment.user.text
    subject.output.answer(
      Answer(user: name, forgotten: forgotten.map(RememberedFacts.init)),
      "Forgot \(counted(forgotten.count, "remembered address", "es")) of \(name).")
  }
}
