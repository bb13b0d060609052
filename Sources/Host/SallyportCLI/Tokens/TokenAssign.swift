import ArgumentParser
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

/// `sallyport token assign`
struct TokenAssign: Verb {
  static let configuration = CommandConfiguration(
    commandName: "assign", abstract: "Give a token to a user, after checking a code that it shows.",
    discussion: """
      Enrolls who is not enrolled, with backup codes; else the token is one more authenticator, \
      and a code of an existing one is asked for first. Where the token's clock is off, it asks \
      for two codes in a row.
      """)

  @Argument(
    help: ArgumentHelp("The token's serial number.", valueName: "serial"),
    completion: .custom(Completions.tokens))
  var serial: String

  @OptionGroup var shared: SubjectOptions<NoDefault>

  @Option(help: ArgumentHelp("The authenticator's name. (default: the serial number)"))
  var name: Label?

  @Option(
    help: ArgumentHelp("Number of backup codes for who is not enrolled, 0 to 32.", valueName: "n"))
  var backupCodes = BackupCodeSet.usualCodes

  @Flag(help: "Do not ask for a code that the token shows.")
  var noConfirm = false

  @Flag(help: "Add it without a code of an existing authenticator.")
  var force = false

  @OptionGroup var policy: PolicyOptions

  func validate() throws {
    guard (0...BackupCodeSet.maximumCodes).contains(backupCodes) else {
      throw ValidationError("--backup-codes takes 0 to \(BackupCodeSet.maximumCodes)")
    }
  }

  func invocation(in context: Context) -> Invocation {
    Invocation(
      verb: "token assign", user: user(in: context), store: shared.storeOptions.store)
  }

  func run(in context: Context) throws(CommandError) {
    guard user(in: context) != nil else { throw .nobodyGets(serial) }
    let subject = try shared.open(in: context, for: .onAccount)
    let account = try subject.account()
    guard account.uid != nil || subject.users.allowMissing else { throw .noSuchUser }
    let person = try subject.person(policy)
    let token = try subject.store.known(serial)
    try person.rehearse()
    let pending = try person.found()
    try check(token, of: person, pending)
    let name = try self.name?.clear() ?? Label(token.serial.bytes) ?? Label("token")
    try checking(pending.map { person.names(of: $0) } ?? []) {
      (names) throws(EnrollmentChange.Flaw) in try names.check(adding: name)
    }
    if noConfirm, token.needsCode { throw .needsCode(token) }
    context.terminal.watchForInterruption()
    var consequence: Consequence = pending == nil ? .notEnrolled : .nothingChanged
    if let pending, !force {
      consequence = try person.prove(
        "Code of an existing authenticator, or backup code: ", pending, subject)
    }
    let given = token.given(
      as: name, id: try freshIdentifier(), at: try context.time(), confirmed: !noConfirm)
    let confirmation =
      noConfirm ? nil : try confirmation(of: given, person, subject.output, or: consequence)
    try context.stopIfInterrupted(consequence)
    let made = confirmation.map { given.confirmed(by: $0) } ?? given
    let fresh = try FreshBackupCodes(count: pending == nil ? backupCodes : 0)
    try subject.recorder.record(
      .tokenAssign, for: account.name, [Act.Fact("token", token.serial.bytes)]
    ) { () throws(CommandError) in
      try subject.store.exclusively(about: token) { () throws(CommandError) in
        try assign(token, as: made, to: person, pending, with: fresh, in: subject.store)
      }
    }
    tell(token, as: made, isConfirmed: !noConfirm, with: fresh, subject)
    if !fresh.shown.isEmpty, let number = context.terminal.failure {
      throw .backupCodesUnseen(errno: number)
    }
  }

  private func confirmation(
    of given: Authenticator, _ person: any Person, _ output: Output, or consequence: Consequence
  ) throws(CommandError) -> AuthenticatorState {
    let context = person.context
    if let wait = given.waitText(at: try context.time()) {
      output.say("Its \(wait): those up to then may have been used.")
    }
    return try given.started(
      for: person.account.name, under: person.policy, output, or: consequence
    ) { () throws(CommandError) in try context.time() }
  }

  /// Throws where it is somebody's, also of one who does not have it any more: what the inventory
  /// knows of it is of before it was used. `unassign` takes it back first.
  private func check(_ token: Token, of person: any Person, _ pending: PendingLogin?)
    throws(CommandError)
  {
    if pending != nil {
      let record = try person.enrolledRecord().enrollment
      try HeldToken.checkSuspended(token, person, record)
      let own = record.authenticators.first { HeldToken.isSame($0, token, person) }
      if let own { throw .hasToken(token, as: own.name) }
    }
    if token.holder != nil { throw .tokenHeld(token) }
  }

  /// First the inventory, then the person: a crash between the two leaves a token that is assigned
  /// and that she does not have, which `unassign` mends. What fails leaves it
  /// nobody's.
  private func assign(
    _ token: Token, as made: Authenticator, to person: any Person, _ pending: PendingLogin?,
    with fresh: FreshBackupCodes, in store: Store
  ) throws(CommandError) {
    let account = person.account
    let now = try storing { () throws(StoreTrouble) in try store.token(token.serial) }
    guard let now, now.isSame(as: token), now.holder == token.holder,
      now.authenticator.id == token.authenticator.id,
      now.authenticator.initialLastAccepted == token.authenticator.initialLastAccepted,
      now.authenticator.clockOffset == token.authenticator.clockOffset
    else { throw .tokenChanged(token) }
    // Another command may have done it since it was looked at.
    try check(now, of: person, pending)
    var given = token
    given.holder = Token.Holder(
      user: account.name, uid: account.uid, authority: person.isInFleet ? .fleet : .files)
    given.authenticator = made
    try storing { () throws(StoreTrouble) in try store.replace(given) }
    do throws(CommandError) {
      if let pending {
        try person.amend(.add([made], backupCodes: nil), of: pending)
      } else {
        let enrollment = Enrollment(
          id: try freshIdentifier(), user: account.name, uid: account.uid, created: made.created,
          authenticators: [made], backupCodes: fresh.set)
        try person.enroll(enrollment, replacing: false, isCodeShown: false)
      }
    } catch {
      // It may have been done all the same.
      if !error.isUnsettled, lacks(token, person) { try? store.replace(now) }
      throw error
    }
  }
}

extension TokenAssign {
  /// Whether it is certain that the person does not have it.
  private func lacks(_ token: Token, _ person: any Person) -> Bool {
    do throws(CommandError) {
      let record = try person.enrolledRecord().enrollment
      return !person.isInFleet
        && !record.authenticators.contains { HeldToken.isSame($0, token, person) }
    } catch {
      return error.isNotEnrolled
    }
  }
}

// MARK: output

extension TokenAssign {
  fileprivate struct Answer: Encodable {
    let user, serial: String
    let authenticator: AuthenticatorFacts
    let enrolled: Bool
    let backupCodes: [String]
  }

  private func tell(
    _ token: Token, as made: Authenticator, isConfirmed: Bool, with fresh: FreshBackupCodes,
    _ subject: Subject
  ) {
    let user = printable(subject.user.utf8, limit: 255)
    let off = made.clockOffset.flatMap { offset in
      offset.magnitude < 30 ? nil : "; its clock is \(offText(Int64(offset)))"
    }
    let kind = description(of: made.parameters, every: "every ")
    var lines = [
      "\(token.serial.text) is assigned to \(user) as \"\(made.name.text)\" (\(kind)\(off ?? ""))."
    ]
    if isConfirmed {
      lines.append("Wait for its next code before the first login.")
    } else if let now = try? subject.context.time(), let wait = made.waitText(at: now) {
      lines.append("Its \(wait): those up to then may have been used.")
    }
    if !fresh.shown.isEmpty { lines += ["", fresh.text] }
    subject.output.answer(
      Answer(
        user: user, serial: token.serial.text,
        authenticator: AuthenticatorFacts(made), enrolled: fresh.set != nil,
        backupCodes: fresh.shown), lines.joined(separator: "\n"))
  }
}

extension Store {
  /// Calls `body` while no other command assigns a token or takes one back. Throws where the
  /// inventory is gone, and `token` with it.
  func exclusively(about token: Token, _ body: () throws(CommandError) -> Void)
    throws(CommandError)
  {
    let result = try storing { () throws(StoreTrouble) in
      try holdingTokens { () -> Result<Void, CommandError> in
        do throws(CommandError) { return .success(try body()) } catch { return .failure(error) }
      }
    }
    guard let result else { throw .tokenChanged(token) }
    try result.get()
  }
}

extension CommandError {
  fileprivate static func nobodyGets(_ serial: String) -> CommandError {
    CommandError {
      let own = Invocation(verb: $0.verb, store: $0.store)
      return Message(
        "no user given", .usage,
        hints: [own.command("token assign", shellQuoted(serial) + " NAME")])
    }
  }

  static func hasToken(_ token: Token, as name: Label) -> CommandError {
    CommandError {
      Message(
        "\($0.who) has the token \(token.serial.text) already, as \"\(name.text)\"", .exists,
        hints: [Invocation(verb: $0.verb, user: $0.user, store: $0.store).command("status")])
    }
  }

  /// Another command was faster.
  static func tokenChanged(_ token: Token) -> CommandError {
    CommandError {
      Message(
        "the token \(token.serial.text) was changed meanwhile: nothing was changed", .exists,
        hints: [Invocation(verb: $0.verb, store: $0.store).command("token list")])
    }
  }

  fileprivate static func needsCode(_ token: Token) -> CommandError {
    CommandError {
      let again = Invocation(verb: $0.verb, user: nil, store: $0.store)
        .command("token assign", commandWords([token.serial.text, $0.user ?? "USER"]))
      return Message(
        "\(token.serial.text) counts, and which codes were used is not known: "
          + "it needs one that it shows",
        .refused, hints: [again])
    }
  }
}
