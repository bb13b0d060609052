import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem
import SessionProtocol

// The changes themselves: each is one `amend`, of the enrollment for which the code was verified.

extension Session {
  /// After the password.
  func change(_ change: ChangeRequest, _ id: UInt64, _ context: LoginContext) throws(Ending)
    -> FromSession
  {
    guard let pending = try enrolled(context), pending.enrollmentID == id else {
      throw .refused(.changed)
    }
    // Nobody uses up a code for what the verifiers would refuse.
    if context.policy.isFleet {
      try found { () throws(StoreTrouble) in
        try authority.rehearse(for: client.account, in: context)
      }
    }
    seenBefore = try seen()
    let taken = pending.shape.authenticators.map(\.name)
    let words = words(context)
    switch change {
    case .status, .enroll, .help: throw .refused(.changed)
    case .add(let given, let parameters):
      let name = given ?? freeName(for: parameters.type, beside: taken)
      try prove(words.text(.codeToAdd, name.bytes), pending)
      let draft = try confirmed(name, parameters, context)
      return try carry(out: .add([draft], backupCodes: nil), "added", of: [name], pending, context)
    case .remove(let name):
      try prove(words.text(.codeToRemove, name.bytes), pending)
      return try carry(out: .remove(name), "removed", of: [name], pending, context)
    case .rename(let name, let new):
      try prove(words.text(.codeToRename, name.bytes, new.bytes), pending)
      return try carry(out: .rename(name, to: new), "renamed", of: [name, new], pending, context)
    case .renew:
      try prove(words.text(.codeToRenew), pending)
      return try renew(pending, context)
    }
  }

  private func renew(_ pending: PendingLogin, _ context: LoginContext) throws(Ending) -> FromSession
  {
    // Who has the record keeps as many of them as there were.
    let fresh = try found { () throws(StoreTrouble) in
      try BackupCodeSet.fresh(count: BackupCodeSet.maximumCodes)
    }
    guard let set = fresh.set else { throw .refused(.failed) }
    return try carry(
      out: .renew(set), "backup-codes", of: [], pending, context, showing: fresh.codes)
  }

  func enroll(
    _ name: Label?, _ parameters: CodeParameters, backupCodes count: UInt8, _ context: LoginContext
  ) throws(Ending) -> FromSession {
    let name = name ?? freeName(for: parameters.type, beside: [])
    let authenticator = try confirmed(name, parameters, context)
    let fresh = try found { () throws(StoreTrouble) in
      try BackupCodeSet.fresh(count: Int(count))
    }
    let enrollment = Enrollment(
      id: try found { () throws(StoreTrouble) in try Random.identifier() },
      user: client.account.name, uid: client.account.uid, created: authenticator.created,
      authenticators: [authenticator], backupCodes: fresh.set)
    return try carry(
      out: .create(enrollment), "enrolled", of: [name], nil, context, showing: fresh.codes)
  }

  // MARK: the code

  func enrolled(_ context: LoginContext) throws(Ending) -> PendingLogin? {
    try found { () throws(StoreTrouble) in
      try authority.enrolled(client.account, in: context)
    }
  }

  /// Asks for a code, and uses it up. Only an accepted one lets the change go on. `question`: what
  /// for; a colon ends it.
  func prove(_ question: [UInt8], _ pending: PendingLogin) throws(Ending) {
    let typed = try ask(joined(question, [0x20]), echo: false)
    let outcome = try found { () throws(StoreTrouble) in
      try authority.attempt(
        typed, knownAs: nil, by: pending.forChange, as: .last(givingBack: nil))
    }
    SessionLog.write(
      outcome.logLevel,
      .outcome(outcome, user: pending.name, from: nil, pending.context.origin))
    switch outcome {
    case .accepted: return
    case .refused(.response(.throttled, _)): throw .refused(.throttled)
    case .refused: throw .refused(.code)
    }
  }

  /// A new authenticator whose first code was right; nothing is stored yet.
  private func confirmed(_ name: Label, _ parameters: CodeParameters, _ context: LoginContext)
    throws(Ending) -> Authenticator
  {
    let draft = try found { () throws(StoreTrouble) in
      try Draft(
        for: client.account.name, named: name, parameters,
        secret: try Random.secret(count: parameters.algorithm.secretLength),
        issuer: HostName.label, at: try Clock.now())
    }
    // No secret is shown that cannot be stored.
    try found { () throws(StoreTrouble) in
      try authority.rehearse(for: client.account, in: context)
    }
    try send(.secret(of: draft.user, name: name, draft.authenticator.secret))
    var last: Secret?
    let first = try draft.firstCode(
      under: context.policy, in: loginWords(context), now: Clock.now,
      ask: { question throws(Ending) in
        let typed = try ask(question, echo: true)
        last = typed
        return typed
      },
      show: { text throws(Ending) in
        try send(.text(text.bytes))
        guard let last else { return }
        let told = try found { () throws(StoreTrouble) in
          try draft.ignoredByApp(last, at: try Clock.now(), under: context.policy)
        }
        if let told { try send(.text(bytes(of: told))) }
      },
      // The command has the QR code, and draws it again itself.
      draw: { _ throws(Ending) in })
    guard let state = try found(first.get) else { throw .refused(.firstCode) }
    return draft.authenticator.confirmed(by: state)
  }

  // MARK: the change

  private func carry(
    out change: EnrollmentChange, _ action: StaticString, of names: [Label],
    _ pending: PendingLogin?, _ context: LoginContext, showing codes: [Secret] = []
  ) throws(Ending) -> FromSession {
    try insistOnPresence()
    try insistOnPermission()
    guard try seen() == seenBefore, try isStill(pending, context) else { throw .refused(.changed) }
    let user = client.account.name
    // First: where the answer is lost, this line is all that tells of the change.
    SessionLog.write(.notice, .begun(user.bytes, action: action, names, by: client.process))
    let act = SessionAct(change, of: user, by: client, in: store)
    act.note(.will)
    let amendment: Amendment
    var codes = codes
    do throws(StoreTrouble) {
      amendment = try amended(change, pending, context)
    } catch {
      SessionLog.write(.error, .trouble(error, user: user.bytes, from: nil, .local(own: true)))
      // A verifier that refuses a host has changed nothing.
      if case .service(_, .notServed) = error {
        act.note(.failed)
        throw .refused(.failed)
      }
      // Whether it was made is not known: its first line stands alone.
      throw .refused(.unknown)
    }
    if case .done = amendment { act.note(.done) } else { act.note(.failed) }
    switch amendment {
    case .done: break
    case .changed: throw .refused(.changed)
    case .flawed(let flaw): throw .refused(ChangeRefusal(flaw), about: names.first?.bytes ?? [])
    }
    SessionLog.write(
      .notice, .changed(user.bytes, action: action, names, by: client.process))
    if case .renew = change { codes = kept(codes, context) }
    let before = pending?.shape.authenticators.map(\.name) ?? []
    return .done(of: user, backupCodes: codes, names: change.names(after: before))
  }

  /// Asks once more where no answer came for new backup codes: the former ones may be void, and the
  /// new ones not be shown. The same set in its own place is the same.
  private func amended(
    _ change: EnrollmentChange, _ pending: PendingLogin?, _ context: LoginContext
  ) throws(StoreTrouble) -> Amendment {
    let user = client.account.name
    do throws(StoreTrouble) {
      return try authority.amend(change, of: user, pending, in: context)
    } catch {
      guard case .renew = change else { throw error }
      SessionLog.write(.error, .trouble(error, user: user.bytes, from: nil, .local(own: true)))
      return try authority.amend(change, of: user, pending, in: context)
    }
  }

  /// Those of the new codes that are stored, of which none was used yet. All of them where that
  /// cannot be asked: the former ones are void by now, and the new ones must reach their owner.
  private func kept(_ codes: [Secret], _ context: LoginContext) -> [Secret] {
    do throws(StoreTrouble) {
      if let count = try authority.enrolled(client.account, in: context)?.backupCodesLeft {
        return Array(codes.prefix(count))
      }
    } catch {
      SessionLog.write(
        .error, .trouble(error, user: client.account.name.bytes, from: nil, .local(own: true)))
    }
    // Where this cannot be sent, the codes are sent all the same.
    try? send(.text(words(context).text(.keepAllCodes)))
    return codes
  }

  // MARK: in which words

  private func words(_ context: LoginContext) -> Sentences {
    let language = context.policy.language
    if language == 0 { return .session(nil) }
    do throws(StoreTrouble) {
      let (path, catalog) = try store.catalog(of: language)
      do throws(SettingsError) {
        return try .session(in: catalog)
      } catch {
        throw .malformed(path: path.text, error)
      }
    } catch {
      SessionLog.write(.error, .brokenCatalog(error))
      return .session(nil)
    }
  }

  private func loginWords(_ context: LoginContext) -> Sentences {
    let language = context.policy.language
    if language == 0 { return Sentences() }
    do throws(StoreTrouble) {
      return try store.sentences(in: language)
    } catch {
      SessionLog.write(.error, .brokenCatalog(error))
      return Sentences()
    }
  }

  /// Which authenticators and which set of backup codes there are: an enrollment keeps its id when
  /// root takes a stolen one away.
  private func seen() throws(Ending) -> [UInt64]? {
    try found { () throws(StoreTrouble) in
      try store.load(client.account).map { record in
        [record.enrollment.id, record.enrollment.backupCodes?.id ?? 0]
          + record.enrollment.authenticators.map(\.id)
      }
    }
  }

  /// The same for people of the fleet, who have no files here, as far as a shape tells.
  private func isStill(_ pending: PendingLogin?, _ context: LoginContext) throws(Ending) -> Bool {
    guard context.policy.isFleet, let pending else { return true }
    let now = try found { () throws(StoreTrouble) in
      try authority.enrolled(client.account, in: context)
    }
    return now?.shape.follows(pending.shape) == true
  }

  // MARK: the status

  /// As it is stored, with zeros for what is secret.
  func status(of account: Account, _ context: LoginContext) throws(Ending) -> FromSession {
    // A file of this machine may be left of before.
    if context.policy.isFleet { return try ownStatusInFleet() }
    let record = try found { () throws(StoreTrouble) in try store.load(account) }
    guard let record else { throw .refused(.notEnrolled) }
    return try shown(record.enrollment, record.state)
  }

  /// By the verifiers, where this machine may enroll: they show the user what helpers see.
  private func ownStatusInFleet() throws(Ending) -> FromSession {
    let name = client.account.name
    let request = HelpRequest(HelpOrder(.show, by: name), for: name)
    let answer = try found { () throws(StoreTrouble) in try environment.askFleet(request) }
    guard case .told(let person) = answer else { throw .refused(.inFleet) }
    guard let (enrollment, state) = person.enrolled else { throw .refused(.notEnrolled) }
    return try shown(enrollment.with(uid: client.account.uid), state)
  }

  func shown(_ enrollment: Enrollment, _ state: LoginState) throws(Ending) -> FromSession {
    var state = state
    (state.slip, state.origins) = (nil, [])
    let file: [UInt8]
    do throws(StateRecord.Problem) {
      file = try StateRecord.fresh(state)
    } catch {
      throw .refused(.failed)
    }
    guard let shown = enrollment.withoutSecrets?.written(), let state = Secret(file) else {
      throw .refused(.failed)
    }
    return .status(enrollment: shown, state: state)
  }
}

extension EnrollmentChange {
  /// The names of the authenticators afterwards.
  fileprivate func names(after before: [Label]) -> [Label] {
    switch self {
    case .create(let enrollment): enrollment.authenticators.map(\.name)
    case .add(let more, _): before + more.map(\.name)
    case .replace(let made, _, _): made.map(\.name)
    case .remove(let name): before.filter { $0 != name }
    case .rename(let name, let new): before.map { $0 == name ? new : $0 }
    case .renew, .give, .revoke: before
    }
  }
}
