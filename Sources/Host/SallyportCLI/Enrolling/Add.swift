import ArgumentParser
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

/// `sallyport add`
struct Add: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Add another authenticator for a user, after checking a code.",
    discussion: """
      Asks for a code of an existing authenticator, or a backup code; then shows the new secret as \
      enroll does and asks for a code of the new authenticator. Remembered addresses are forgotten.
      """)

  @OptionGroup var shared: SubjectOptions<CallerConfirmed>

  @OptionGroup var authenticator: AuthenticatorOptions

  @Flag(help: "Do not ask for a first code of the new authenticator.")
  var noConfirm = false

  @Flag(help: "Add it without a code of an existing authenticator.")
  var force = false

  @OptionGroup var policy: PolicyOptions

  func run(in context: Context) throws(CommandError) {
    if let names = try shared.own(
      in: context, naming: [(authenticator.argument.word, authenticator.argument.option)],
      roots: [
        "--force": force, "--no-confirm": noConfirm, "--conf": policy.conf != nil,
        "--secret-from": authenticator.secretFrom != nil, "--device": authenticator.isToken,
        "--json": shared.storeOptions.json,
      ])
    {
      let session = OwnSession(context, shared.storeOptions)
      let name = authenticator.argument.meant(names[0], after: shared.argument, session.output)
      return try session.add(name, authenticator, context)
    }
    let (subject, typed) = try shared.open(in: context, naming: authenticator.argument)
    let given = authenticator.argument.meant(typed, after: shared.argument, subject.output)
    let person = try subject.person(policy)
    let output = subject.output
    try person.rehearse()
    let pending = try person.enrolled()
    let name = try newName(given, beside: person.names(of: pending))
    let before = try person.enrolledRecord().enrollment
    context.terminal.watchForInterruption()
    try authenticator.argument.insist(on: name, of: subject, asks: !noConfirm, or: .nothingChanged)
    let consequence =
      force
      ? Consequence.nothingChanged
      : try person.prove("Code of an existing authenticator, or backup code: ", pending, subject)
    let draft = try authenticator.draft(
      named: name, for: person.account, after: before.newest, confirming: !noConfirm, output,
      context, or: consequence)
    if !(output.isJSON && noConfirm) {
      draft.show(
        "Another authenticator for \(person.account.name.text) on \(draft.issuer.text)",
        qr: authenticator.qr, output, context)
    }
    let confirmation =
      noConfirm
      ? nil
      : try draft.confirmation(
        under: person.policy, output, context, or: consequence)
    try context.stopIfInterrupted(consequence)
    let added = draft.authenticator.confirmed(by: confirmation)
    try person.amend(.add([added], backupCodes: nil), of: pending)
    tell(
      draft, confirmation, output, of: before.authenticators + [added], under: person.policy)
  }

  /// The name from `--name`, or a free default name.
  private func newName(_ given: Label?, beside names: [Label]) throws(CommandError) -> Label {
    let name = try given?.clear() ?? authenticator.freeName(beside: names)
    try checking(names) { (names) throws(EnrollmentChange.Flaw) in try names.check(adding: name) }
    return name
  }

  /// The range of codes that are now accepted, for all authenticators.
  private struct Window: Encodable {
    let adjacentIntervals, lookAhead: UInt8
  }

  private func tell(
    _ draft: Draft, _ confirmation: AuthenticatorState?, _ output: Output,
    of all: [Authenticator], under policy: Policy
  ) {
    let throttle = Throttle(for: all, under: policy)
    let lines = ["Added \(draft.text(confirmation))."] + narrowing(throttle, under: policy)
    output.answer(
      Joined(
        draft.facts(confirmation),
        Window(adjacentIntervals: throttle.adjacentIntervals, lookAhead: throttle.lookAhead)),
      lines.joined(separator: "\n"))
  }
}

/// The lines that say so if this many authenticators narrow the policy's intervals or look-ahead.
func narrowing(_ throttle: Throttle, under policy: Policy) -> [String] {
  var lines: [String] = []
  let (adjacent, ahead) = (throttle.adjacentIntervals, throttle.lookAhead)
  if adjacent < policy.adjacentIntervals {
    lines.append(
      "\(adjacent) time steps on either side are accepted now, not \(policy.adjacentIntervals).")
  }
  if ahead < policy.lookAhead {
    lines.append("\(ahead) counters ahead are accepted now, not \(policy.lookAhead).")
  }
  if !lines.isEmpty { lines.append("With more, codes would be too easy to guess.") }
  return lines
}
