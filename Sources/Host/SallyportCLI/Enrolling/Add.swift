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
      enroll does and asks for a code of the new authenticator. Addresses that logged in before \
      are forgotten.
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
        "--secret-from": authenticator.secretFrom != nil, "--json": shared.storeOptions.json,
      ])
    {
      let session = OwnSession(context, shared.storeOptions)
      let name = authenticator.argument.meant(names[0], after: shared.argument, session.output)
      return try session.add(name, authenticator, context)
    }
    let (subject, typed) = try shared.open(in: context, naming: authenticator.argument)
    let given = authenticator.argument.meant(typed, after: shared.argument, subject.output)
    if let person = try subject.inFleet(policy) {
      return try add(given, to: person, subject, context)
    }
    let record = try subject.record()
    let name = try newName(given, beside: record.enrollment.authenticators.map(\.name))
    let policy = try subject.policy(policy)
    let output = subject.output
    try storing { () throws(StoreTrouble) in try subject.store.rehearse() }
    context.terminal.watchForInterruption()
    try authenticator.argument.insist(on: name, of: subject, asks: !noConfirm, or: .nothingChanged)
    let consequence =
      force
      ? Consequence.nothingChanged
      : try subject.prove("Code of an existing authenticator, or backup code: ", under: policy)
    let draft = try authenticator.draft(
      named: name, for: try subject.account(), after: record.enrollment.newest,
      confirming: !noConfirm, output, context, or: consequence)
    if !(output.isJSON && noConfirm) {
      let user = record.enrollment.user.text
      draft.show(
        "Another authenticator for \(user) on \(draft.issuer.text)", authenticator.qr, output,
        context)
    }
    let confirmation =
      noConfirm
      ? nil : try draft.confirmation(under: policy, output, context, or: consequence)
    try context.stopIfInterrupted(consequence)
    let enrollment = try save(draft, confirmation, to: record, of: subject)
    tell(draft, confirmation, enrollment, under: policy, output)
  }

  private func save(
    _ draft: Draft, _ confirmation: AuthenticatorState?, to record: Record, of subject: Subject
  ) throws(CommandError) -> Enrollment {
    let added = draft.authenticator.confirmed(by: confirmation)
    return try subject.amend(.add([added], backupCodes: nil), of: record.enrollment.id) { state in
      state.note(confirmation, of: added.id)
      state.origins = []
    }
  }

  private func add(
    _ given: Label?, to person: any FleetAccount, _ subject: Subject, _ context: Context
  ) throws(CommandError) {
    let output = subject.output
    try person.rehearse()
    let pending = try person.enrolled()
    let name = try newName(given, beside: person.names(of: pending))
    context.terminal.watchForInterruption()
    try authenticator.argument.insist(on: name, of: subject, asks: !noConfirm, or: .nothingChanged)
    let consequence =
      force
      ? Consequence.nothingChanged
      : try person.prove("Code of an existing authenticator, or backup code: ", pending, subject)
    // When the others were made, the fleet does not say.
    let draft = try authenticator.draft(
      named: name, for: person.account, after: UnixTime(0), confirming: !noConfirm, output,
      context, or: consequence)
    if !(output.isJSON && noConfirm) {
      let heading = "Another authenticator for \(person.account.name.text)"
      draft.show("\(heading) on \(draft.issuer.text)", authenticator.qr, output, context)
    }
    let confirmation =
      noConfirm
      ? nil
      : try draft.confirmation(
        under: try subject.policy(policy), output, context, or: consequence)
    try context.stopIfInterrupted(consequence)
    let added = draft.authenticator.confirmed(by: confirmation)
    try person.amend(.add([added], backupCodes: nil), of: pending)
    output.answer(draft.facts(confirmation), "Added \(draft.text(confirmation)).")
  }

  /// The name from `--name`, or a free default name.
  private func newName(_ given: Label?, beside names: [Label]) throws(CommandError) -> Label {
    let name = try given?.clear() ?? freeName(for: authenticator.parameters.type, beside: names)
    if let other = names.first(like: name) { throw .nameTaken(other.text) }
    if names.count >= Enrollment.maximumAuthenticators { throw .tooManyAuthenticators }
    return name
  }

  /// The range of codes that are now accepted, for all authenticators.
  private struct Window: Encodable {
    let adjacentIntervals, lookAhead: UInt8
  }

  private func tell(
    _ draft: Draft, _ confirmation: AuthenticatorState?, _ enrollment: Enrollment,
    under policy: Policy, _ output: Output
  ) {
    let throttle = Throttle(for: enrollment.authenticators, under: policy)
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
