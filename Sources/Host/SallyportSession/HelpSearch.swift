import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem
import SessionProtocol

/// Collects what `permission(toHelp:)` and `refusal(toHelp:)` decide on. What fails of the machine
/// ends the session.
struct HelpSearch {
  private let session: Session
  private var settings = HelpdeskSettings()
  /// The one to be helped, and his policy.
  private(set) var person: Account?
  private(set) var context: LoginContext?
  /// What stands in the way, for the log.
  private(set) var why = ""
  /// What the fleet has of the person.
  private(set) var inFleet: HelpedPerson?

  init(_ session: Session) { self.session = session }

  /// Of what the helper could see as himself.
  mutating func facts(for name: UserName) throws(Session.Ending) -> HelpFacts {
    var facts = HelpFacts()
    let helper = session.client.account
    guard try readSettings(), let group = settings.group?.words.first else { return facts }
    facts.may = settings.may
    facts.isHelper = isMember(helper, of: [group])
    // Nobody else asks about anybody.
    guard facts.isHelper == .yes else { return facts }
    let own = session.context(of: helper)
    guard own.policy.isEnabled else { throw .refused(.disabled) }
    let pending = try session.enrolled(own)
    // No backup code need be spent to find out that nothing can be counted.
    if pending?.isAway == true { throw .refused(.helpInFleet) }
    facts.helperID = pending?.enrollmentID
    guard let found = try account(name), let uid = found.uid else {
      why = "no account of this name"
      return facts
    }
    let context = session.context(of: found)
    (person, self.context) = (found, context)
    facts.uid = uid
    facts.isHimself = uid == session.client.user
    facts.isHelped = isMember(found, of: settings.helped?.words ?? [])
    facts.isNever = isMember(found, of: settings.never?.words ?? [])
    facts.isAnotherHelper = isMember(found, of: [group])
    why = HelpSearch.bar(facts)
    return facts
  }

  /// Why the helpdesk may not help somebody, by what `permission(toHelp:)` goes by; empty: it may.
  static func bar(_ facts: HelpFacts) -> String {
    if facts.uid == 0 { return "has the uid 0" }
    if facts.isHimself { return "is the helper himself" }
    switch facts.isHelped {
    case .no: return "in no group of helpdesk_for"
    case .unknown: return "not known whether in a group of helpdesk_for"
    case .yes: break
    }
    switch facts.isNever {
    case .yes: return "in a group of helpdesk_never"
    case .unknown: return "not known whether in a group of helpdesk_never"
    case .no: break
    }
    switch facts.isAnotherHelper {
    case .yes: return "another helper"
    case .unknown: return "not known whether another helper"
    case .no: return ""
    }
  }

  /// Of what root alone sees.
  mutating func facts(of helping: Helping) throws(Session.Ending) -> HelpedFacts {
    var facts = HelpedFacts()
    let person = helping.person
    (facts.canBecomeRoot, why) = power(person)
    guard facts.canBecomeRoot == .no else { return facts }
    facts.block = try session.found { () throws(StoreTrouble) in
      let now = try Clock.now()
      let blocks = try session.store.blocks(of: person).filter { !$0.isOver(at: now) }
      if blocks.isEmpty { return .nobody }
      return blocks.contains { $0.isRoots(at: now) } ? .root : .helper
    }
    if helping.isInFleet { return try inFleet(helping, facts) }
    // One that is damaged keeps nobody from being blocked.
    if helping.act.verb != .block {
      facts.enrollmentID = try enrollment(of: person, helping.context)
    }
    return facts
  }

  /// Root of this machine may block whom the fleet would let in.
  private mutating func inFleet(_ helping: Helping, _ facts: HelpedFacts) throws(Session.Ending)
    -> HelpedFacts
  {
    let told = try session.told(of: helping)
    var facts = facts
    if told.block.rawValue > facts.block.rawValue { facts.block = told.block }
    facts.enrollmentID = told.enrolled?.enrollment.id
    inFleet = told
    return facts
  }

  /// False where nobody is helped: there is no helpdesk, or the file is not what it should be.
  private mutating func readSettings() throws(Session.Ending) -> Bool {
    let environment = session.environment
    let path = environment.policyFile ?? bytes(of: Store.usualPolicy)
    let text = try session.found { () throws(StoreTrouble) in
      try session.store.policyText(at: path, optional: environment.policyFile == nil)
    }
    guard let text else { return false }
    settings = HelpdeskSettings(text)
    if settings.group == nil { return false }
    // A login would complain of other lines.
    let nobody = PolicyRequest(
      service: [], user: nil, isRemote: false, address: nil, parse: Addresses.numeric,
      membership: { _ in .no })
    let problem =
      settings.problems.first ?? PolicyFile(text, base: Policy(), nobody).problem
    guard let problem else { return true }
    SessionLog.write(
      .error,
      .trouble(
        .malformed(path: Path(path).text, problem), user: session.client.account.name.bytes,
        from: nil, .local(own: true)))
    return false
  }

  /// The account of this very name, whose uid leads back to it; nil where there is none.
  private func account(_ name: UserName) throws(Session.Ending) -> Account? {
    try session.found { () throws(StoreTrouble) -> Account? in
      let found = try session.environment.find(name)
      guard let uid = found.uid, found.name == name else { return nil }
      let owner = try session.environment.owner(uid)
      return owner?.name == name && owner?.uid == uid ? found : nil
    }
  }

  private func enrollment(of account: Account, _ context: LoginContext) throws(Session.Ending)
    -> UInt64?
  {
    try session.found { () throws(StoreTrouble) in
      try session.authority.enrolled(account, in: context)?.enrollmentID
    }
  }

  /// In one of the groups, for certain; no if in none of them, for certain.
  private func isMember(_ account: Account, of groups: [[UInt8]]) -> Tristate {
    let all = groups.map { session.environment.isInGroup(account, $0) }
    return all.contains(.yes) ? .yes : all.contains(.unknown) ? .unknown : .no
  }

  private func power(_ account: Account) -> (Tristate, String) {
    switch session.environment.rootPower(account) {
    case .none: (.no, "")
    case .some(let place): (.yes, place)
    case .unknown(let why): (.unknown, why)
    }
  }
}
