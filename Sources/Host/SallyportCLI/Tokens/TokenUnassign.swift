import ArgumentParser
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

/// `sallyport token unassign`
struct TokenUnassign: Verb {
  static let configuration = CommandConfiguration(
    commandName: "unassign", abstract: "Take a token back from its user, after checking a code.",
    discussion: """
      As remove does: the user's last authenticator is not taken away. The token keeps what was \
      used of it, so that none of its codes is good again for the next user.
      """)

  @Argument(
    help: ArgumentHelp("The token's serial number.", valueName: "serial"),
    completion: .custom(Completions.tokens))
  var serial: String

  @Flag(help: "Take it without a code.")
  var force = false

  @Flag(help: "Make it nobody's although its user may still have it.")
  var unchecked = false

  @OptionGroup var policy: PolicyOptions
  @OptionGroup var users: UserOptions
  @OptionGroup var shared: StoreOptions

  func user(in context: Context) -> String? {
    guard let store = try? context.store(shared), let token = try? store.known(serial) else {
      return nil
    }
    return token.holder?.user.typedOrShown
  }

  func invocation(in context: Context) -> Invocation {
    Invocation(verb: "token unassign", user: user(in: context), store: shared.store)
  }

  private struct Answer: Encodable {
    let serial, user: String
    /// Whether the user had it.
    let removed: Bool
  }

  /// Whether the user had it.
  private enum Finding {
    case held(HeldToken)
    case nobody, unknown
  }

  func run(in context: Context) throws(CommandError) {
    let store = try context.store(shared)
    let token = try store.known(serial)
    guard let holder = token.holder else { throw .nobodyHas(token) }
    let subject = Subject(
      user: holder.user.typedOrShown, users: users, store: store,
      isStoreNamed: shared.store != nil, output: context.output(shared), context: context)
    let first = try finding(of: token, by: holder, subject)
    if case .held(let found) = first {
      try found.check()
      try found.person.rehearse()
      if !force {
        try found.person.prove("Verification code: ", try found.person.enrolled(), subject)
      }
    }
    var found = Finding.nobody
    try subject.recorder.record(
      .tokenUnassign, for: holder.user, [Act.Fact("token", token.serial.bytes)]
    ) { () throws(CommandError) in
      try store.exclusively(about: token) { () throws(CommandError) in
        found = try take(token, subject, after: first)
      }
    }
    // It is done: what cannot be told is left out.
    let now = try? context.time()
    let back = try? store.token(token.serial)
    let wait = now.flatMap { back?.authenticator.waitText(at: $0) }
    tell(found, of: holder, token, next: wait, subject.output)
  }

  private func tell(
    _ found: Finding, of holder: Token.Holder, _ token: Token, next wait: String?,
    _ output: Output
  ) {
    let (user, serial) = (holder.user.text, token.serial.text)
    var wasHeld = false
    let text: String
    switch found {
    case .held:
      wasHeld = true
      text = ", and is removed from \(user)."
    case .nobody: text = ". \(user) did not have it: codes up to now count as used."
    case .unknown:
      text = ". If \(user) still has it, it logs \(user) in: codes up to now count as used."
    }
    let next = wait.map { "\nIts next user waits: \($0)." } ?? ""
    output.answer(
      Answer(serial: serial, user: user, removed: wasHeld),
      "\(serial) is nobody's now\(text)\(next)")
  }

  /// The person with the authenticator, by the name of then or, where the account has another one
  /// by now, by its uid. What cannot be known throws, unless it is `unchecked`.
  private func finding(of token: Token, by holder: Token.Holder, _ subject: Subject)
    throws(CommandError) -> Finding
  {
    do throws(CommandError) {
      return try held(token, by: holder, subject).map { .held($0) } ?? .nobody
    } catch {
      if unchecked, error.isHolderUnknown { return .unknown }
      throw error
    }
  }

  /// nil where nobody has it for certain.
  private func held(_ token: Token, by holder: Token.Holder, _ subject: Subject)
    throws(CommandError) -> HeldToken?
  {
    var isSame = users.allowMissing
    do throws(CommandError) {
      if let found = try search(token, subject) { return found }
      if !isSame { isSame = try subject.account().uid == holder.uid }
    } catch {
      guard error.isNoSuchUser else { throw error }
    }
    if let uid = holder.uid,
      let other = try storing({ () throws(StoreTrouble) in try Accounts.find(uid: uid) }),
      other.name != holder.user
    {
      var renamed = subject
      renamed.user = other.name.typedOrShown
      if let found = try search(token, renamed) { return found }
    }
    if !isSame { throw .holderGone(token, holder) }
    return nil
  }

  /// Asks all who may verify its codes: the fleet too, unless only the files ever did.
  private func search(_ token: Token, _ subject: Subject) throws(CommandError) -> HeldToken? {
    let person = try subject.person(policy)
    if let found = try search(token, person) { return found }
    switch token.holder?.authority {
    case .files: return nil
    case .fleet where person.isInFleet: return nil
    case .fleet, nil:
      guard token.holder?.authority != nil, let other = subject.personOfFleet(person) else {
        throw .holderElsewhere(token)
      }
      return try search(token, other)
    }
  }

  private func search(_ token: Token, _ person: any Person) throws(CommandError) -> HeldToken? {
    do throws(CommandError) {
      return try HeldToken(token, of: person, besides: try others(token, person))
    } catch {
      if error.isNotEnrolled { return nil }
      throw error
    }
  }

  /// The ids under which the fleet has other tokens, as far as the inventory knows.
  private func others(_ token: Token, _ person: any Person) throws(CommandError) -> [UInt64] {
    guard person.isInFleet else { return [] }
    let store = try person.context.store(shared)
    let held = try storing { () throws(StoreTrouble) in try store.heldTokens() }
    return held.filter { $0.serial != token.serial }.map(\.authenticator.id)
  }

  /// Called while no token is assigned. First what was learnt of it, then the person, then the
  /// inventory: a crash in between leaves a token that is assigned and that she does not have, of
  /// which all codes up to then count as used by the next call.
  private func take(_ token: Token, _ subject: Subject, after first: Finding)
    throws(CommandError) -> Finding
  {
    let (store, context) = (subject.store, subject.context)
    let now = try storing { () throws(StoreTrouble) in try store.token(token.serial) }
    guard let now, let holder = now.holder, holder == token.holder,
      now.authenticator.id == token.authenticator.id
    else { throw .tokenChanged(token) }
    // As it is now: it may have been given to her, or used, since it was looked at.
    let finding = try finding(of: now, by: holder, subject)
    var back = now.distrusted(at: try context.time())
    if case .held(let found) = finding {
      // No code was asked for where it was not found before.
      guard case .held = first else { throw .tokenChanged(token) }
      try found.check()
      back = now.returned(found.values, at: try context.time(), under: found.person.policy)
      back.holder = holder
      let learnt = back
      try storing { () throws(StoreTrouble) in try store.replace(learnt) }
      try found.person.amend(.remove(found.name), of: try found.person.enrolled())
      if try search(now, found.person) != nil { throw .tokenChanged(token) }
    }
    back.holder = nil
    let nobodys = back
    try storing { () throws(StoreTrouble) in try store.replace(nobodys) }
    return finding
  }
}

/// A token that somebody has as an authenticator.
struct HeldToken {
  let person: any Person
  let name: Label
  /// What logins made of it.
  let values: AuthenticatorState
  private let names: [Label]

  /// nil where it is certain that the person does not have it. On files the secret says so: after
  /// `restore` it has another id. Of people in a fleet no secret is here. Throws where it may come
  /// back, or may be one of another id.
  /// `others`: the ids of other tokens.
  init?(_ token: Token, of person: any Person, besides others: [UInt64]) throws(CommandError) {
    let (enrollment, state) = try person.enrolledRecord()
    try HeldToken.checkSuspended(token, person, enrollment)
    let own = enrollment.authenticators.first { HeldToken.isSame($0, token, person) }
    guard let own else {
      let alike = enrollment.authenticators.first { one in
        person.isInFleet && one.parameters == token.authenticator.parameters
          && (one.clockOffset == nil) == (token.authenticator.clockOffset == nil)
          && !others.contains(one.id)
      }
      if let alike { throw .mayBeToken(token, alike.name) }
      return nil
    }
    var known = state
    known.reconcile(with: enrollment)
    guard let values = known.authenticators.first(where: { $0.id == own.id }) else { return nil }
    (self.person, name, self.values) = (person, own.name, values)
    names = enrollment.authenticators.map(\.name)
  }

  static func isSame(_ one: Authenticator, _ token: Token, _ person: any Person) -> Bool {
    person.isInFleet
      ? one.id == token.authenticator.id
      : one.parameters == token.authenticator.parameters
        && constantTimeEquals(one.secret, token.authenticator.secret)
  }

  /// What a login with a pass has replaced comes back by `restore`.
  static func checkSuspended(
    _ token: Token, _ person: any Person, _ enrollment: Enrollment
  ) throws(CommandError) {
    let now = try person.context.time()
    for one in enrollment.suspended where now < one.until {
      let former = try person.former(one, enrollment.id)
      let isThere = former.authenticators.contains {
        person.isInFleet
          ? $0.parameters == token.authenticator.parameters
            && ($0.clockOffset == nil) == (token.authenticator.clockOffset == nil)
          : isSame($0, token, person)
      }
      if isThere { throw .tokenSuspended(token, until: one.until) }
    }
  }

  /// As `remove` does.
  func check() throws(CommandError) {
    if names == [name] { throw .lastIsToken }
    try checking(names) { (names) throws(EnrollmentChange.Flaw) in try names.check(removing: name) }
  }
}

extension CommandError {
  fileprivate static func nobodyHas(_ token: Token) -> CommandError {
    CommandError {
      Message(
        "nobody has the token \(token.serial.text)", .noInput,
        hints: [Invocation(verb: $0.verb, store: $0.store).command("token list")])
    }
  }

  fileprivate static func uncheckedHint(_ own: Invocation, _ token: Token) -> String {
    own.command(
      "token unassign", shellQuoted(token.serial.text) + " --unchecked",
      remark: "if nobody can log in with it any more")
  }

  /// There is no account of that name any more, or it is somebody else's.
  fileprivate static func holderGone(_ token: Token, _ holder: Token.Holder) -> CommandError {
    CommandError(.holderUnknown) {
      let own = Invocation(verb: $0.verb, store: $0.store)
      let name = shellQuoted(holder.user.typedOrShown)
      return Message(
        "the account of \(holder.user.text) that has \(token.serial.text) is not found: nothing "
          + "was changed", .noUser,
        hints: [
          "getent passwd \(name)",
          own.command(
            "token unassign", shellQuoted(token.serial.text) + " --allow-missing",
            remark: "if the account was deleted"),
        ])
    }
  }

  /// Its codes are verified by what cannot be asked here.
  fileprivate static func holderElsewhere(_ token: Token) -> CommandError {
    CommandError(.holderUnknown) {
      let own = Invocation(verb: $0.verb, store: $0.store)
      let isFleet = token.holder?.authority == .fleet
      let plain = Invocation(verb: $0.verb, store: nil)
        .command("token unassign", shellQuoted(token.serial.text), remark: "asks the fleet")
      return Message(
        (isFleet
          ? "the fleet verifies the codes of \($0.who), and cannot be asked here"
          : "it is not known what verifies the codes of \($0.who)")
          + ": whether \(token.serial.text) is still used is not known, and nothing was changed",
        .refused,
        hints: (isFleet && $0.store != nil ? [plain] : []) + [uncheckedHint(own, token)])
    }
  }

  fileprivate static func tokenSuspended(_ token: Token, until end: UnixTime) -> CommandError {
    CommandError {
      Message(
        "\($0.who) had \(token.serial.text) before a login with a pass, and may get it back until "
          + "\(endText(end)): nothing was changed", .refused,
        hints: [
          Invocation(verb: $0.verb, user: $0.user, store: $0.store)
            .command("restore", remark: "brings it back now")
        ])
    }
  }

  fileprivate static func mayBeToken(_ token: Token, _ name: Label) -> CommandError {
    CommandError(.holderUnknown) {
      let own = Invocation(verb: $0.verb, user: $0.user, store: $0.store)
      return Message(
        "\"\(name.text)\" of \($0.who) may be \(token.serial.text), and the fleet does not show "
          + "its secret: nothing was changed", .refused,
        hints: [
          own.command("remove", shellQuoted(name.text), remark: "if it is"),
          uncheckedHint(Invocation(verb: $0.verb, store: $0.store), token),
        ])
    }
  }
}
