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
    /// nil: of somebody in the fleet, whose addresses are not told.
    let forgotten: [RememberedFacts]?
  }

  func run(in context: Context) throws(CommandError) {
    let subject = try shared.open(in: context)
    let person = try subject.person(usesPolicy: false)
    let enrollment = try person.enrolledRecord().enrollment
    let forgotten = try person.forget(enrollment.id)
    let name = enrollment.user.text
    let what = forgotten.map { counted($0.count, "remembered address", "es") }
    subject.output.answer(
      Answer(user: name, forgotten: forgotten?.map(RememberedFacts.init)),
      "Forgot \(what ?? "the remembered addresses") of \(name).")
  }
}
