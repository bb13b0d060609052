import ArgumentParser
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportSupport
import SallyportSystem

/// `sallyport resync`
struct Resynchronize: Verb {
  static let configuration = CommandConfiguration(
    commandName: "resync", abstract: "Resynchronize an authenticator with two consecutive codes.",
    discussion: """
      For a counter that is too far ahead, and for a machine whose clock was once ahead. If the \
      app's clock is off by more than logins accept, it says by how much: set that clock. What a \
      token's clock is, is taken from the codes. Without a name it is the authenticator that the \
      codes match.
      """)

  @OptionGroup var shared: SubjectOptions<CallerConfirmed>

  @OptionGroup var authenticator: AuthenticatorArgument

  @Option(
    help: ArgumentHelp(
      "In place of a user: the token with this serial number.", valueName: "serial"),
    completion: .custom(Completions.tokens))
  var token: String?

  @OptionGroup var policy: PolicyOptions

  func validate() throws {
    let names = [shared.argument.name, authenticator.word, authenticator.option?.text]
    if token != nil, names.contains(where: { $0 != nil }) {
      throw ValidationError("either a user or --token")
    }
  }

  func user(in context: Context) -> String? {
    guard let token else { return shared.user(in: context) }
    let store = try? context.store(shared.storeOptions)
    return (try? store?.known(token))?.holder?.user.typedOrShown
  }

  /// The codes tell which authenticator a token is.
  private func opened(in context: Context) throws(CommandError) -> (Subject, Label?) {
    guard let token else { return try shared.open(in: context, naming: authenticator) }
    let found = try context.store(shared.storeOptions).known(token)
    guard let holder = found.holder else { throw .isNobodys(found) }
    return (try shared.subject(holder.user.typedOrShown, in: context), nil)
  }

  func run(in context: Context) throws(CommandError) {
    let (subject, name) = try opened(in: context)
    let person = try subject.person(policy)
    let enrollment = try person.enrolledRecord().enrollment
    if let name, enrollment.index(of: name) == nil { throw .noSuchAuthenticator(name.text) }
    let output = subject.output
    context.terminal.watchForInterruption()
    let question = "Code shown by the \(enrollment.devices(named: name)): "
    let first = try output.ask(question, echo: false, or: .nothingChanged)
    let second = try output.ask("The next code: ", echo: false, or: .nothingChanged)
    try context.stopIfInterrupted(.nothingChanged)
    if let ignored = try person.ignored(byAppOf: [first, second], named: name) {
      if output.isJSON { output.answer(Answer(.notFound), "") }
      throw .ignored(ignored)
    }
    let codes = try pair(first, second, enrollment)
    let result = try person.resynchronize(by: codes, named: name, enrollment.id)
    switch result {
    case .done(let name, let drift, let reopened):
      output.answer(
        Answer(name, drift, reopened),
        text(name, drift: drift, reopened: reopened, of: enrollment, context))
    case .refused(let refusal):
      if output.isJSON { output.answer(Answer(refusal), "") }
      throw .resync(refusal)
    }
  }

  /// Throws `code` if one of them is malformed, `resync` if they are not two codes of the same
  /// length.
  private func pair(_ first: Secret, _ second: Secret, _ enrollment: Enrollment)
    throws(CommandError) -> CodePair
  {
    var responses: [Response] = []
    for typed in [first, second] {
      let response = try computing { () throws(CryptoError) in
        try Response.classify(typed, for: enrollment)
      }
      if case .malformed(let malformation) = response {
        throw .code(CodeRefused(refusal: .malformed(malformation), wait: 0))
      }
      responses.append(response)
    }
    guard let codes = CodePair(responses[0], responses[1]) else { throw .resync(.notFound) }
    return codes
  }
}

// MARK: output

extension Resynchronize {
  private func text(
    _ name: Label, drift: Int32, reopened: UnixTime?, of enrollment: Enrollment,
    _ context: Context
  ) -> String {
    let type = enrollment.index(of: name).map { enrollment.authenticators[$0].parameters.type }
    let clock = type.flatMap { driftText(drift, $0) }.map { "; its clock is \($0)" } ?? ""
    let line = "\"\(name.text)\" is synchronized\(clock). The next codes are accepted."
    guard let reopened else { return line }
    return """
      \(line)
      Codes accepted while the clock was ahead will be accepted again at their time, up to
      \(internetText(reopened)). A new secret prevents that:
      \(invocation(in: context).command("enroll", "--force"))
      """
  }

  fileprivate struct Answer: Encodable {
    var accepted = false
    var authenticator, reason: String?
    var drift: Int32?
    /// `drift` in seconds, if the clock is off by too much.
    var seconds: Int64?
    var adjacentIntervals: UInt8?
    var reopenedUntil: OrNull<String>?
    var waitsUntil: String?

    init(_ name: Label, _ drift: Int32, _ reopened: UnixTime?) {
      (accepted, authenticator, self.drift) = (true, name.text, drift)
      reopenedUntil = OrNull(wrappedValue: reopened.flatMap { fact($0) })
    }

    init(_ refusal: ResyncRefusal) {
      switch refusal {
      case .clockOff(let name, let drift, let period, let accepted):
        (reason, authenticator, self.drift) = ("clock-off", name.text, drift)
        (seconds, adjacentIntervals) = (Int64(drift) * Int64(period), accepted)
      case .replayed(let name): (reason, authenticator) = ("replayed", name.text)
      case .waits(let name, let until):
        (reason, authenticator) = ("waits", name.text)
        waitsUntil = fact(until)
      case .notFound: reason = "not-found"
      }
    }
  }
}

extension Enrollment {
  /// What shows the codes of this authenticator, or of any, as a word.
  fileprivate func devices(named name: Label?) -> String {
    let meant = authenticators.filter { name == nil || $0.name == name }
    let tokens = meant.count { $0.clockOffset != nil }
    return tokens == 0 ? "app" : tokens == meant.count ? "token" : "app or token"
  }
}

extension CommandError {
  /// The two codes do not resynchronize an authenticator.
  static func resync(_ refusal: ResyncRefusal) -> CommandError {
    switch refusal {
    case .clockOff(let name, let drift, let period, let accepted):
      let off = driftText(drift, .totp(period: period)) ?? "right"
      let most = offsetText(UInt64(accepted) * UInt64(period))
      return CommandError(
        .refused,
        "the clock of \"\(name.text)\" is \(off), at most \(most) is accepted: set that clock",
        hints: [Message.clockHint])
    case .replayed(let name):
      return CommandError {
        Message(
          "those codes of \"\(name.text)\" have already been used", .refused,
          hints: [$0.again(remark: "with the next two codes")])
      }
    case .waits(let name, let until):
      return CommandError {
        Message(
          "the last accepted code of \"\(name.text)\" is of a time to come, as a clock here was "
            + "ahead: its codes wait until \(internetText(until)); backup codes are accepted",
          .refused,
          hints: [$0.command("pass", remark: "where no backup code is at hand")])
      }
    case .notFound:
      return CommandError {
        Message(
          "not two consecutive codes of any authenticator of \($0.who): the search went a day each "
            + "way, 200 time steps for a token, and 1,000 counters",
          .refused,
          hints: [$0.command("status", remark: "shows the authenticators")])
      }
    }
  }
}

private func internetText(_ time: UnixTime) -> String {
  CalendarDate(time, inUTC: true)?.internetText ?? "\(time.seconds)"
}
