import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem
import SessionProtocol

// A member of the helpdesk does one thing for somebody else: after his own password and a code of
// his own. What lets him ask is decided three times: before both, between them, and after both.
// What he could not see as himself is looked at after both alone, so that a program of his learns
// nothing of others.

extension Session {
  func help(_ act: HelpAct, _ name: UserName) throws(Ending) -> FromSession {
    let helping = try Helping(act, name, in: self)
    try askPassword()
    try insistOnSame(helping)
    let context = context(of: client.account)
    guard let own = try enrolled(context), own.enrollmentID == helping.helperID else {
      throw .refused(.changed)
    }
    try send(.text(helping.notice))
    let purpose = act.purpose(for: helping.person.name)
    try prove(bytes(of: "Verification code to ") + purpose + bytes(of: ":"), own)
    try insistOnPresence()
    try insistOnSame(helping)
    let (id, inFleet) = try look(helping)
    try insistOnRoom(helping, inFleet)
    // A fleet's own budget may be the smaller one: its verifiers say it.
    if act == .unlock, inFleet == nil { try insistOnNeed(helping) }
    try count(helping)
    if let inFleet { return try carry(out: helping, inFleet, id) }
    return try carry(out: helping, id)
  }

  /// `id`: of his enrollment; 0 if he has none.
  private func carry(out helping: Helping, _ id: UInt64) throws(Ending) -> FromSession {
    switch helping.act {
    case .status: return try showStatus(helping)
    case .unlock: return try lend(helping, id)
    case .pass, .passEnroll: return try givePass(helping, id)
    case .block(let until): return try block(helping, until: until)
    case .unblock: return try unblock(helping)
    }
  }

  /// Whatever changed of the helper, of the other account or of the policy ends it.
  private func insistOnSame(_ before: Helping) throws(Ending) {
    let now = try Helping(before.act, before.person.name, in: self)
    guard now == before else { throw .refused(.changed) }
  }

  /// The id of the person's enrollment, 0 if he has none; and what his fleet has of him.
  private func look(_ helping: Helping) throws(Ending) -> (UInt64, HelpedPerson?) {
    var search = HelpSearch(self)
    let facts = try search.facts(of: helping)
    guard let refusal = refusal(toHelp: helping.act, facts) else {
      return (facts.enrollmentID ?? 0, search.inFleet)
    }
    note(refusal, of: helping.act, for: helping.person.name, because: search.why)
    throw helping.refused(refusal)
  }

  fileprivate func note(
    _ refusal: ChangeRefusal, of act: HelpAct, for name: UserName, because why: String
  ) {
    SessionLog.write(
      .notice, .denied(client.account.name, refusal.name, act.verb, for: name, because: why))
  }

  // MARK: how often

  private func insistOnRoom(_ helping: Helping, _ inFleet: HelpedPerson?) throws(Ending) {
    let limit = try found { () throws(StoreTrouble) in
      try store.helpLimit(
        helping.act.verb, by: client.user, for: helping.counted, at: try Clock.now())
    }
    // The first time that it is reached is kept.
    if limit == .helper(isFirst: true) { return try count(helping) }
    try refuse(limit, helping)
    if inFleet?.hasEnough(of: helping.act) == true { throw helping.refused(.helpedEnough) }
  }

  /// On the disk, before it is done.
  private func count(_ helping: Helping) throws(Ending) {
    try refuse(
      try found { () throws(StoreTrouble) in
        try store.countHelp(
          helping.act.verb, by: client.user, for: helping.counted, at: try Clock.now())
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

  private func lend(_ helping: Helping, _ id: UInt64) throws(Ending) -> FromSession {
    let person = helping.person
    let facts = [Act.Fact("lent", "yes".utf8)]
    let act = SessionAct(.unlock, facts, of: person.name, by: client, in: store)
    let lending = try recorded(act) { () throws(StoreTrouble) in
      try store.lend(
        person, id: id, under: helping.context.policy,
        at: { () throws(StoreTrouble) in try Clock.now() })
    } isDone: {
      if case .lent? = $0 { true } else { false }
    }
    return .lent(to: person.name, tries: UInt8(clamping: try lent(lending, helping)))
  }

  /// In seconds.
  private static var passLifetime: UInt64 { 7200 }

  func freshPass(_ helping: Helping, _ id: UInt64) throws(Ending) -> (code: Secret, pass: Pass) {
    let enrolls = helping.act == .passEnroll
    return try found { () throws(StoreTrouble) in
      try Pass.fresh(
        of: id, from: try Clock.now(), for: Session.passLifetime, uses: enrolls ? Pass.claims : 1,
        enrolls: enrolls)
    }
  }

  private func givePass(_ helping: Helping, _ id: UInt64) throws(Ending) -> FromSession {
    let (person, context) = (helping.person, helping.context)
    let made = try freshPass(helping, id)
    guard
      let pending = try found({ () throws(StoreTrouble) in
        try authority.enrolled(person, in: context)
      }), pending.enrollmentID == id
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
    try insistOnNoBlock(helping)
    return passed(helping, made)
  }

  func passed(_ helping: Helping, _ made: (code: Secret, pass: Pass)) -> FromSession {
    let policy = helping.context.policy
    if !policy.acceptsPasses || policy.demandsKind {
      // Where this cannot be sent, the pass is sent all the same.
      try? send(.text(Array(Session.useless.utf8)))
    }
    return .passed(to: helping.person.name, made.code, until: made.pass.expires)
  }

  private static let useless =
    "the policy refuses passes (factor_pass = off, or a mandatory factor), except in logins for "
    + "which a rule says otherwise"

  /// A line before and a line after. Where it is not known whether it was done, the first stands
  /// alone.
  func recorded<Value>(
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

/// What lets a helper ask for one thing for somebody. Two are equal where it is the same.
struct Helping: Equatable {
  let act: HelpAct
  /// The one to be helped.
  let person: Account
  let context: LoginContext
  /// Of the helper's enrollment.
  let helperID: UInt64
  /// Of the other person's account.
  let uid: UInt32

  static func == (a: Helping, b: Helping) -> Bool {
    a.act == b.act && a.person.name == b.person.name && a.uid == b.uid && a.helperID == b.helperID
      && a.context.policy == b.context.policy
  }

  /// With everything as it is now. Throws where that does not let him.
  init(_ act: HelpAct, _ name: UserName, in session: Session) throws(Session.Ending) {
    var search = HelpSearch(session)
    let permission = SessionProtocol.permission(toHelp: act.verb, try search.facts(for: name))
    guard let person = search.person, let context = search.context,
      case .afterCode(let helper, let uid) = permission
    else {
      guard case .refused(let refusal) = permission else { throw .refused(.failed) }
      if refusal != .notHelper { session.note(refusal, of: act, for: name, because: search.why) }
      throw .refused(refusal, about: name.bytes)
    }
    (self.act, self.person, self.context) = (act, person, context)
    (helperID, self.uid) = (helper, uid)
  }

  /// Whether a fleet verifies the person's codes, and does what is done.
  var isInFleet: Bool { context.policy.isFleet }

  /// For whom the files count; nil: his fleet does.
  var counted: UInt32? { isInFleet ? nil : uid }

  func refused(_ refusal: ChangeRefusal) -> Session.Ending {
    .refused(refusal, about: person.name.bytes)
  }

  /// Of a block. It ends with the first minute of a day.
  static func text(end: UnixTime) -> String {
    end.internetText.map { "\($0.prefix(10)) \($0.dropFirst(11).prefix(5)) UTC" } ?? "then"
  }

  /// What is shown before the code.
  var notice: [UInt8] {
    let what =
      switch act {
      case .status: "you see what is enrolled"
      case .unlock: "up to \(Throttle.mostLent) more tries, of the budget of other places"
      case .pass: "a pass, good for one login within two hours"
      case .passEnroll:
        "a pass, good for one login within two hours, in which a new enrollment replaces all "
          + "there is"
      case .block(let until):
        "nothing is accepted any more"
          + (until.map { ", up to \(Helping.text(end: $0))" } ?? "")
      case .unblock: "what is enrolled counts again"
      }
    let place = isInFleet ? ", on all hosts of the fleet" : ""
    return Array("For \(person.name.text) (uid \(uid)): \(what)\(place).".utf8)
  }
}
