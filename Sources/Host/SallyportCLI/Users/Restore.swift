import ArgumentParser
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

/// `sallyport restore`
struct Restore: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Bring back what a pass has replaced.",
    discussion: """
      For seven days after a login with a pass of --enroll: the authenticators and backup codes of \
      before are good again, but for codes up to now and those that were used. What the pass \
      enrolled ends, with all that was changed since. Where several were replaced, the earliest \
      one is meant, which was there before the first of these passes.
      """)

  @OptionGroup var shared: SubjectOptions<NoDefault>

  @Option(help: ArgumentHelp("Another one of several, as status names it.", valueName: "id"))
  var from: String?

  @Flag(help: "Do not ask.")
  var yes = false

  private struct Answer: Encodable {
    let user: String
    let authenticators: [String]
    let backupCodesLeft: Int
  }

  func run(in context: Context) throws(CommandError) {
    let subject = try shared.open(in: context)
    let person = try subject.person()
    try person.rehearse()
    let present = try person.enrolledRecord().enrollment
    let suspension = try chosen(of: present, at: try context.time())
    let former = try person.former(suspension, present.id)
    let name = person.account.name.text
    if !yes {
      let when = whenText(suspension.since, seenFrom: try context.time())
      subject.output.say("Comes back, as it was until \(when): \(listed(former))")
      subject.output.say("Ends, with all that was changed since: \(listed(present))")
      try subject.output.insist("Restore it for \(name)?", or: .nothingChanged)
    }
    try person.restore(suspension, present.id)
    let codes = former.backupCodes?.count ?? 0
    subject.output.answer(
      Answer(
        user: name, authenticators: former.authenticators.map(\.name.text), backupCodesLeft: codes),
      "\(name) has what was enrolled before: \(listed(former)). Codes up to now count as used.")
  }

  private func chosen(of enrollment: Enrollment, at now: UnixTime) throws(CommandError)
    -> Suspension
  {
    let kept = enrollment.suspended.filter { now < $0.until }
    guard !kept.isEmpty else { throw .nothingSuspended }
    guard let from else { return kept[0] }
    guard let found = kept.first(where: { $0.name == from }) else {
      throw .noSuchSuspension(kept.map(\.name))
    }
    return found
  }

  private func listed(_ enrollment: Enrollment) -> String {
    let names = enrollment.authenticators.map { "\"\($0.name.text)\"" }
    let codes = enrollment.backupCodes?.count ?? 0
    return (names + [codes == 0 ? "no backup code" : counted(codes, "backup code")])
      .joined(separator: ", ")
  }
}

extension Suspension {
  /// As people type it.
  var name: String { String(decoding: hexadecimal(id), as: UTF8.self) }
}

/// What can be restored.
struct SuspensionFacts: Encodable {
  let id: String
  @OrNull var since: String?
  @OrNull var until: String?

  init(_ suspension: Suspension) {
    id = suspension.name
    (since, until) = (fact(suspension.since), fact(suspension.until))
  }
}

extension CommandError {
  fileprivate static let nothingSuspended = CommandError {
    Message(
      "\($0.who) has not been enrolled again by a pass within seven days: nothing can be restored",
      .refused)
  }

  fileprivate static func noSuchSuspension(_ names: [String]) -> CommandError {
    CommandError { invocation in
      Message(
        "nothing of that id can be restored", .refused,
        hints: names.map { invocation.command("restore --from \($0)") })
    }
  }
}
