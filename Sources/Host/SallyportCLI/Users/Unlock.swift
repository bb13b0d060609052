import ArgumentParser
import SallyportCore
import SallyportSupport
import SallyportSystem
import SessionProtocol

/// `sallyport unlock`
struct Unlock: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Forget wrong codes, so that the next code is checked at once.")

  @OptionGroup var shared: SubjectOptions<NoDefault>

  @OptionGroup var policy: PolicyOptions

  private struct Answer: Encodable {
    let user: String
    var unlocked = true
    let wrongCodesBefore: Allowances
  }

  private struct Lent: Encodable {
    let user: String
    let lent: UInt8
  }

  func run(in context: Context) throws(CommandError) {
    if case .lent(let user, let tries)? = try shared.helped(
      .unlock, in: context, roots: ["--conf": policy.conf != nil])
    {
      let more = counted(Int(tries), "more code")
      return context.output(shared.storeOptions).answer(
        Lent(user: user.text, lent: tries),
        "\(user.text) may type \(more) where none was checked. They were taken from what is "
          + "allowed from elsewhere, and helpers can do this once in seven days.")
    }
    let subject = try shared.open(in: context)
    let person = try subject.person(policy)
    let (enrollment, state) = try person.enrolledRecord()
    let before = Allowances(
      enrollment, state, under: person.policy, at: try context.time())
    try person.unlock(enrollment.id)
    let name = enrollment.user.text
    subject.output.answer(
      Answer(user: name, wrongCodesBefore: before),
      Unlock.text(name, before))
  }

  private static func text(_ name: String, _ before: Allowances) -> String {
    if before.known.left > 0, before.other.left > 0 {
      return "\(name) was not locked: \(before.known.left) more wrong codes before a wait, and "
        + "\(before.other.left) from elsewhere. All that were typed are forgotten now."
    }
    return "\(name) is unlocked: the next code is checked at once. Before: \(before.text)."
  }
}
