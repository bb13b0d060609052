import ArgumentParser
import OneTimePassword
import PAMStack
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportLogin
import SallyportSupport
import SallyportSystem
import SessionProtocol

/// `sallyport pass`
struct GivePass: Verb {
  static let configuration = CommandConfiguration(
    commandName: "pass",
    abstract: "Let a user in who has no phone and no backup code at hand.",
    discussion: """
      Prints a code for one login, asked for like any other, that ends in two hours. It proves \
      that login alone: it changes nothing of what is enrolled, and makes no place remembered. \
      With --enroll the login must end in a new enrollment, which takes the place of the present \
      one; sallyport restore brings that back for seven days.
      """)

  @OptionGroup var shared: SubjectOptions<NoDefault>

  @Option(
    name: .customLong("for"),
    help: ArgumentHelp("How long it is good, 10m to 7d. (default: 2h)", valueName: "time"),
    transform: Lifetime.init(typed:))
  var lifetime: Lifetime?

  @Option(help: ArgumentHelp("For how many logins, 1 to 5. (default: 1)", valueName: "number"))
  var uses: UInt8?

  @Flag(help: "The login with it must enroll again: for a user who lost phone and codes for good.")
  var enroll = false

  @Flag(help: "End all passes of the user.")
  var revoke = false

  @Flag(help: "Also for root.")
  var force = false

  func validate() throws {
    guard Pass.usesRange.contains(UInt64(uses ?? 1)) else {
      throw ValidationError("--uses is a number from 1 to 5")
    }
    if revoke, lifetime != nil || uses != nil || force || enroll {
      throw ValidationError("--revoke takes no --for, --uses, --enroll and --force")
    }
    if enroll, uses != nil { throw ValidationError("--enroll takes no --uses: it enrolls once") }
  }

  func run(in context: Context) throws(CommandError) {
    let roots: KeyValuePairs = [
      "--for": lifetime != nil, "--uses": uses != nil, "--revoke": revoke, "--force": force,
    ]
    if case .passed(let user, let code, let end)? = try shared.helped(
      enroll ? .passEnroll : .pass, in: context, roots: roots)
    {
      let output = context.output(shared.storeOptions)
      try tell(
        of: user.text, code, until: end, uses: enroll ? Pass.claims : 1, output, context)
      if let number = context.terminal.failure { throw .helpersPassUnseen(errno: number) }
      return
    }
    let subject = try shared.open(in: context)
    let person = try subject.person()
    try person.rehearse()
    let pending = try person.enrolled()
    if revoke {
      return try revoke(of: person, pending, subject)
    }
    if person.account.uid == 0, !force { throw .passForRoot }
    try give(to: person, pending, subject)
  }

  private func revoke(of person: any Person, _ pending: PendingLogin, _ subject: Subject)
    throws(CommandError)
  {
    let now = try subject.context.time()
    let before = try? person.enrolledRecord()
    let count = before.map { $0.enrollment.openPasses($0.state, at: now).count }
    try person.amend(.revoke, of: pending)
    let name = person.account.name.text
    let done =
      switch count {
      case nil: ""
      case 0: " It had none before."
      case 1: " One was ended."
      case let count?: " \(count) were ended."
      }
    subject.output.answer(
      Revoked(user: name, passesRevoked: OrNull(wrappedValue: count)),
      "\(name) has no pass: what was given is refused.\(done)")
  }

  private func give(to person: any Person, _ pending: PendingLogin, _ subject: Subject)
    throws(CommandError)
  {
    let (now, uses) = (try subject.context.time(), enroll ? Pass.claims : uses ?? 1)
    let (code, pass) = try storing { () throws(StoreTrouble) in
      try Pass.fresh(
        of: pending.enrollmentID, from: now, for: lifetime?.seconds ?? 7200, uses: uses,
        enrolls: enroll)
    }
    try person.amend(.give(pass), of: pending)
    let name = person.account.name.text
    try tell(
      of: name, code, until: pass.expires, uses: uses, subject.output, subject.context)
    if let number = subject.context.terminal.failure { throw .passUnseen(errno: number) }
    let isBlockedHere = try? subject.store.isBlocked(person.account, at: subject.context.now)
    let blocked = person.isInFleet ? (try? person.record())?.blocked : nil
    if isBlockedHere == true || blocked?.isOver(at: now) == false {
      subject.output.warn("\(name) is blocked: the pass is refused until that is lifted")
    }
    warnOfLine(subject)
    if !person.policy.acceptsPasses || person.policy.demandsKind {
      subject.output.warn(
        "the policy refuses passes (factor_pass = off, or a mandatory factor), but in logins for "
          + "which a rule says otherwise")
    }
  }

  /// That sshd's line refuses it. The usual store alone is that of the services.
  private func warnOfLine(_ subject: Subject) {
    let machine = subject.context.machine
    guard enroll, shared.storeOptions.path == Store.usualRoot,
      !ModuleLines(of: ServiceStack(of: machine, "sshd")).enrolls
    else { return }
    subject.output.warn(
      "ssh to this machine refuses it: sshd has no auth line of ours with the word enroll "
        + "(`sudo sallyport pam enable sshd --enroll`)")
  }

  private func tell(
    of name: String, _ code: Secret, until end: UnixTime, uses: UInt8, _ output: Output,
    _ context: Context
  ) throws(CommandError) {
    let shown = BackupCode.grouped(code)
    let time = whenText(end, seenFrom: try context.time())
    output.answer(
      Given(
        user: name, pass: shown, expires: fact(end), uses: enroll ? 1 : uses,
        enrolls: enroll ? true : nil),
      """
      A pass for \(name), to be typed where a code is asked for:

          \(shown)

      \(purpose(uses)), until \(time). Not shown again.
      """)
  }

  private func purpose(_ uses: UInt8) -> String {
    if !enroll { return "Good for \(uses == 1 ? "one login" : "\(uses) logins")" }
    return "Good for one login that enrolls again, where the line has the word enroll (three tries)"
  }

  private struct Given: Encodable {
    let user, pass: String
    @OrNull var expires: String?
    let uses: UInt8
    let enrolls: Bool?
  }

  private struct Revoked: Encodable {
    let user: String
    var revoked = true
    let passesRevoked: OrNull<Int>
  }
}

/// How long a pass is good, typed as 90m, 2h or 1d.
struct Lifetime {
  let seconds: UInt64

  /// Throws unless it is a number with its unit, within what a pass may have.
  init(typed text: String) throws {
    let units: [Character: UInt64] = ["m": 60, "h": 3600, "d": 86_400]
    guard let unit = text.last.flatMap({ units[$0] }), let number = UInt64(text.dropLast()),
      number <= 10_080, Pass.lifetimes.contains(number * unit)
    else { throw ValidationError("expected 10m to 7d, such as 90m, 2h or 1d") }
    seconds = number * unit
  }
}

extension CommandError {
  fileprivate static let passForRoot = CommandError {
    Message(
      "\($0.who) has the uid 0: with a pass nothing but its password keeps root safe", .refused,
      hints: [$0.again("--force", remark: "gives it all the same")])
  }

  /// The same of a helper's, which he cannot end.
  fileprivate static func helpersPassUnseen(errno number: Int32) -> CommandError {
    CommandError {
      Message(
        "standard output: \(errnoText(number)); the pass was stored but not shown", .inputOutput,
        hints: ["sudo \($0.command("pass", "--revoke"))", $0.command("pass")])
    }
  }

  /// Writing to standard output failed after the pass was stored.
  fileprivate static func passUnseen(errno number: Int32) -> CommandError {
    CommandError {
      Message(
        "standard output: \(errnoText(number)); the pass was stored but not shown", .inputOutput,
        hints: [$0.command("pass", "--revoke"), $0.command("pass")])
    }
  }
}
