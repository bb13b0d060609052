import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem
import SessionProtocol

// A member of the helpdesk does one thing for somebody else: after his own password and a code of
// his own, and what lets him is decided three times: before both, between them, and after both.

extension Session {
  func help(_ verb: HelpVerb, _ name: UserName) throws(Ending) -> FromSession {
    let helping = try Helping(verb, name, in: self)
    // No code is spent on what cannot be done.
    try insistOnRoom(helping)
    if verb == .unlock { try insistOnNeed(helping) }
    try askPassword()
    try insistOnSame(helping)
    let context = context(of: client.account)
    guard let own = try enrolled(context), own.enrollmentID == helping.helperID else {
      throw .refused(.changed)
    }
    try send(.text(helping.notice))
    try prove(ChangeRequest.help(verb, helping.person.name).purpose(nil), own)
    try insistOnPresence()
    try insistOnSame(helping)
    try count(helping)
    switch verb {
    case .status: return try showStatus(helping)
    case .unlock: return try lend(helping)
    case .pass: return try givePass(helping)
    }
  }

  /// Whatever changed of the helper, of the other person or of the policy ends it.
  private func insistOnSame(_ before: Helping) throws(Ending) {
    let now = try Helping(before.verb, before.person.name, in: self)
    guard now == before else { throw .refused(.changed) }
  }

  // MARK: how often

  private func insistOnRoom(_ helping: Helping) throws(Ending) {
    let limit = try found { () throws(StoreTrouble) in
      try store.helpLimit(
        helping.verb, by: client.user, for: helping.uid, at: try Clock.now())
    }
    // The first time that it is reached is kept.
    if limit == .helper(isFirst: true) { return try count(helping) }
    try refuse(limit, helping)
  }

  /// On the disk, before it is done.
  private func count(_ helping: Helping) throws(Ending) {
    try refuse(
      try found { () throws(StoreTrouble) in
        try store.countHelp(
          helping.verb, by: client.user, for: helping.uid, at: try Clock.now())
      }, helping)
  }

  private func refuse(_ limit: HelpLimit?, _ helping: Helping) throws(Ending) {
    switch limit {
    case nil: return
    case .person: throw helping.refused(.helpedEnough)
    case .helper(let isFirst):
      if isFirst { SessionLog.write(.alert, .tooMuchHelp(by: client.account.name)) }
      throw helping.refused(.helpedToday)
    }
  }

  // MARK: what is done

  private func showStatus(_ helping: Helping) throws(Ending) -> FromSession {
    let status = try status(of: helping.person, helping.context)
    SessionLog.write(.notice, .shown(helping.person.name, to: client.account.name))
    return status
  }

  private func insistOnNeed(_ helping: Helping) throws(Ending) {
    let lending = try found { () throws(StoreTrouble) -> Lending? in
      guard let record = try store.load(helping.person) else { return nil }
      var state = record.state
      return Throttle(for: record.enrollment, state, under: helping.context.policy)
        .lending(in: &state, at: try Clock.now())
    }
    _ = try lent(lending, helping)
  }

  private func lent(_ lending: Lending?, _ helping: Helping) throws(Ending) -> UInt64 {
    switch lending {
    case .lent(let tries, _): return tries
    case .notLocked: throw helping.refused(.notLocked)
    case .spent: throw helping.refused(.nothingToLend)
    case nil: throw .refused(.changed)
    }
  }

  private func lend(_ helping: Helping) throws(Ending) -> FromSession {
    let person = helping.person
    let facts = [Act.Fact("lent", "yes".utf8)]
    let act = SessionAct(.unlock, facts, of: person.name, by: client, in: store)
    let lending = try recorded(act) { () throws(StoreTrouble) in
      try store.lend(
        person, id: helping.id, under: helping.context.policy,
        at: { () throws(StoreTrouble) in try Clock.now() })
    } isDone: {
      if case .lent? = $0 { true } else { false }
    }
    return .lent(to: person.name, tries: UInt8(clamping: try lent(lending, helping)))
  }

  /// In seconds.
  private static var passLifetime: UInt64 { 7200 }

  private func givePass(_ helping: Helping) throws(Ending) -> FromSession {
    let (person, context) = (helping.person, helping.context)
    let made = try found { () throws(StoreTrouble) in
      try Pass.fresh(
        of: helping.id, from: try Clock.now(), for: Session.passLifetime, uses: 1)
    }
    guard
      let pending = try found({ () throws(StoreTrouble) in
        try authority.enrolled(person, in: context)
      }), pending.enrollmentID == helping.id
    else { throw .refused(.changed) }
    let act = SessionAct(.give(made.pass), of: person.name, by: client, in: store)
    let amendment = try recorded(act) { () throws(StoreTrouble) in
      try authority.amend(.give(made.pass), of: person.name, pending, in: context)
    } isDone: {
      $0 == .done
    }
    switch amendment {
    case .done: break
    case .changed: throw .refused(.changed)
    case .flawed: throw helping.refused(.helpedEnough)
    }
    if !context.policy.acceptsPasses || context.policy.demandsKind {
      // Where this cannot be sent, the pass is sent all the same.
      try? send(.text(Array(Session.useless.utf8)))
    }
    return .passed(to: person.name, made.code, until: made.pass.expires)
  }

  private static let useless =
    "the policy refuses passes (factor_pass = off, or a mandatory factor), but in logins for which "
    + "a rule says otherwise"

  /// A line before and a line after. Where it is not known whether it was done, the first stands
  /// alone.
  private func recorded<Value>(
    _ act: SessionAct, _ body: () throws(StoreTrouble) -> Value, isDone: (Value) -> Bool
  ) throws(Ending) -> Value {
    act.note(.will)
    do throws(StoreTrouble) {
      let value = try body()
      act.note(isDone(value) ? .done : .failed)
      return value
    } catch {
      SessionLog.write(
        .error, .trouble(error, user: act.user.bytes, from: nil, .local(own: true)))
      throw .refused(.unknown)
    }
  }
}

/// What lets a helper do one thing for somebody. Two are equal where it is the same.
struct Helping: Equatable {
  let verb: HelpVerb
  /// The one to be helped.
  let person: Account
  let context: LoginContext
  /// Of the helper's enrollment.
  let helperID: UInt64
  /// Of the other person's account, and of his enrollment.
  let uid: UInt32
  let id: UInt64

  static func == (a: Helping, b: Helping) -> Bool {
    a.verb == b.verb && a.person.name == b.person.name && a.uid == b.uid && a.id == b.id
      && a.helperID == b.helperID && a.context.policy == b.context.policy
  }

  /// With everything as it is now. Throws where that does not let him.
  init(_ verb: HelpVerb, _ name: UserName, in session: Session) throws(Session.Ending) {
    var search = HelpSearch(session)
    let permission = SessionProtocol.permission(toHelp: verb, try search.facts(for: name))
    guard let person = search.person, let context = search.context,
      case .afterCode(let helper, let uid, let id) = permission
    else {
      guard case .refused(let refusal) = permission else { throw .refused(.failed) }
      if refusal != .notHelper {
        SessionLog.write(
          .notice,
          .denied(session.client.account.name, refusal.name, verb, for: name, because: search.why))
      }
      throw .refused(refusal, about: name.bytes)
    }
    (self.verb, self.person, self.context) = (verb, person, context)
    (helperID, self.uid, self.id) = (helper, uid, id)
  }

  func refused(_ refusal: ChangeRefusal) -> Session.Ending {
    .refused(refusal, about: person.name.bytes)
  }

  /// What is shown before the code.
  var notice: [UInt8] {
    let what =
      switch verb {
      case .status: "you see what is enrolled"
      case .unlock: "up to \(Throttle.mostLent) more tries, of the budget of other places"
      case .pass: "a pass, good for one login within two hours"
      }
    return Array("For \(person.name.text) (uid \(uid)): \(what).".utf8)
  }
}
