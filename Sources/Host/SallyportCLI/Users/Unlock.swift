import ArgumentParser
import SallyportCore
import SallyportSystem

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

  func run(in context: Context) throws(CommandError) {
    let subject = try shared.open(in: context)
    let now = try context.time()
    let (name, before) = try unlock(subject, at: now)
    subject.output.answer(
      Answer(user: name, wrongCodesBefore: before),
      Unlock.text(name, before))
  }

  /// Gives the name, and what was left before.
  private func unlock(_ subject: Subject, at now: UnixTime) throws(CommandError)
    -> (String, Allowances)
  {
    if let person = try subject.inFleet(policy) {
      let found = try person.record().enrolled.get()
      try person.unlock(found.enrollment.id)
      return (
        found.enrollment.user.text,
        Allowances(found.enrollment, found.state, under: person.policy, at: now)
      )
    }
    let policy = try subject.policy(policy)
    return try subject.transact { enrollment, state in
      let before = Allowances(enrollment, state, under: policy, at: now)
      return ((enrollment.user.text, before), state.unlocked)
    }
  }

  private static func text(_ name: String, _ before: Allowances) -> String {
    if before.known.left > 0, before.other.left > 0 {
      return "\(name) was not locked: \(before.known.left) more wrong codes before a wait, and "
        + "\(before.other.left) from elsewhere. All that were typed are forgotten now."
    }
    return "\(name) is unlocked: the next code is checked at once. Before: \(before.text)."
  }
}
