import CService
package import OneTimePassword
import SallyportCore
package import SallyportLogin
package import SallyportSupport
import SallyportSystem

/// Answers the packets that peers send. It does what the module does in root's own programs, with
/// the same `RecordAuthority`; here it is settled whose account, whose policy and which origin
/// counts.
///
/// On the root socket the peer is root: its word on the account, the policy and a remote address
/// counts, and whose local login it is tells the real user. On the public socket nothing counts
/// that is not the kernel's: the account is the peer's own, the policy is this machine's for the
/// service `sallyport-user`, which a frame can only tighten, and the login is local.
package struct RequestHandler<Store: LoginStore>: Sendable where Store: Sendable {
  /// Under which service the policy is read for programs that are not root.
  package static var publicService: StaticString { "sallyport-user" }

  private let store: Store
  /// The policy file; nil for the usual one.
  private let policyFile: [UInt8]?
  private let fleet: (any FleetSide)?
  private let log: LogWriter
  private let allowance = LineAllowance()
  /// Nanoseconds in which a caller hears that something begins.
  private static var margin: UInt64 { 100_000_000 }

  /// `fleet`: nil for one that cannot ask any.
  package init(
    store: Store, policyFile: [UInt8]? = nil, fleet: (any FleetSide)? = nil,
    log: @escaping LogWriter
  ) {
    (self.store, self.policyFile, self.fleet, self.log) = (store, policyFile, fleet, log)
  }

  /// Fetches what libcrypto and the name service load at their first use, once and for all: what
  /// fails here would fail every login as long as the process lives. Throws `noCrypto`.
  package func prepare() throws(ServiceError) {
    do throws(CryptoError) {
      try prepareCrypto()
    } catch {
      throw .noCrypto
    }
    // Whether there is such an account does not matter, nor that a directory does not answer yet.
    do throws(StoreTrouble) {
      _ = try store.account(typed: bytes(of: "root"))
    } catch {}
  }

  /// The frame of the answer; empty for a packet that is no request.
  package func answer(_ peer: Peer, _ packet: Secret, to caller: any Caller) -> [UInt8] {
    if peer.socket == .root, let asked = HelpRequest.decode(packet) {
      return help(asked, peer, caller).encoded() ?? []
    }
    guard let asked = LoginQuestion.decode(packet) else { return [] }
    return (answer(asked, peer, caller) ?? .notServed).encoded() ?? []
  }

  /// By the fleet alone: of people of this machine the session has the files.
  private func help(_ asked: HelpRequest, _ peer: Peer, _ caller: any Caller) -> HelpAnswer {
    guard let fleet else { return .notServed }
    // Who asks waits until it is done, or not.
    guard caller.begin() else { return .trouble }
    let deadline = sys_monotonic() &+ LoginQuestion.patience &* 1_000_000
    return fleet.answer(asked, until: deadline) { level, line in write(level, line, of: peer) }
  }

  /// nil: not for this peer.
  private func answer(_ asked: LoginQuestion, _ peer: Peer, _ caller: any Caller) -> ServiceAnswer?
  {
    do throws(StoreTrouble) {
      guard let question = try settled(asked, peer) else { return nil }
      try begin(question, caller)
      let answer = try answer(question, peer)
      // Else the module of root's program logs it, which knows whom it has let in.
      if peer.socket == .everybody || !caller.isThere { note(answer, question, peer) }
      return answer
    } catch {
      // Of a name that a program of a user made up, nobody has to be woken up.
      write(
        error.mayBeTheCallers || peer.socket == .everybody ? .warning : .alert,
        .trouble(error, user: asked.name, from: nil, .unknown), of: peer)
      return .trouble(mayBeTheCallers: error.mayBeTheCallers)
    }
  }

  /// Nothing that may be saved is begun for a caller that does not wait: he must not find his code
  /// used. It is the same for everybody, before anything is decided. Who waits has heard of it in
  /// time.
  private func begin(_ question: LoginQuestion, _ caller: any Caller) throws(StoreTrouble) {
    guard question.waits, question.verb.mayBeSaved else { return }
    let isInTime = sys_monotonic() &+ Self.margin < question.deadline
    guard isInTime, caller.begin() else { throw .busy(path: "") }
  }

  /// By the files of this machine, or by the fleet: the policy says it, and nothing else.
  private func answer(_ question: LoginQuestion, _ peer: Peer) throws(StoreTrouble)
    -> ServiceAnswer?
  {
    // Root of this machine may refuse whom the fleet would let in.
    guard question.policy.isFleet, try !isBlocked(question) else {
      return try question.answer(
        from: store, in: question.context, enrolling: question.account?.uid)
    }
    if case .prepare = question.verb, !question.policy.isEnabled { return .skip }
    guard let fleet else { return withoutFleet(question, peer) }
    let answer = try fleet.answer(question) { level, line in write(level, line, of: peer) }
    // It may be so by now.
    if case .outcome(.accepted) = answer, try isBlocked(question) {
      return .outcome(.refused(.blocked))
    }
    return answer
  }

  /// Whether root has blocked him here, where that decides: what root's verbs ask goes on.
  private func isBlocked(_ question: LoginQuestion) throws(StoreTrouble) -> Bool {
    switch question.verb {
    case .enrolled, .remember, .count, .rehearse, .notices: return false
    case .amend(let change, _): guard change.isNewWayIn else { return false }
    case .prepare, .attempt, .level: break
    }
    guard let account = question.account else { return false }
    return try store.isBlocked(account, at: store.now)
  }

  private func withoutFleet(_ question: LoginQuestion, _ peer: Peer) -> ServiceAnswer {
    var line = LogLine("error:")
    line.add(user: question.name)
    line.add(": the policy has verification = fleet: this service is built without the fleet")
    write(.error, line, of: peer)
    return .trouble(mayBeTheCallers: false)
  }

  // MARK: who, under which policy, from where

  /// The question as this machine has it; nil: not for this peer.
  private func settled(_ asked: LoginQuestion, _ peer: Peer) throws(StoreTrouble) -> LoginQuestion?
  {
    var question = asked
    question.expire(since: peer.arrived)
    question.account = try store.account(typed: asked.name)
    question.caller = peer.realUser == 0 ? nil : peer.realUser
    switch peer.socket {
    case .root: question.policy.shared = SharedBudgetBox(sharedBudget(of: question))
    case .everybody:
      // The name must lead to the number: several names may have one.
      guard let account = question.account, account.uid == peer.effectiveUser,
        let verb = open(asked.verb)
      else { return nil }
      (question.verb, question.origin) = (verb, .local)
      question.policy = policy(of: account, tightenedBy: asked.policy, peer)
      question.isAway = asked.isAway && fleet?.wasAway == true
    }
    question.isOwn =
      question.origin == .local
      && isOwn(question.account, caller: peer.realUser, through: question.service)
    return question
  }

  /// Once a login, where it counts: a directory may take a second for each group. The line may name
  /// another file, whose budget holds too where it is the smaller one.
  private func sharedBudget(of question: LoginQuestion) -> SharedBudget {
    guard case .attempt = question.verb else { return SharedBudget(of: question.policy) }
    let reading = reading(
      question.account, question.service, isRemote: question.origin != .local, question.address)
    var shared = reading.policy.sharedBudget
    shared.include(stated: question.policy)
    return shared
  }

  /// What the file of this machine says of a login.
  private func reading(
    _ account: Account?, _ service: [UInt8], isRemote: Bool, _ address: NumericAddress?
  ) -> PolicyReading {
    let login = PolicyRequest(
      service: service, user: account?.name.bytes, isSuperuser: account?.uid == 0,
      isRemote: isRemote, address: address, parse: Addresses.numeric,
      membership: { group in account.map { store.isMember($0, of: group) } ?? .unknown })
    return store.policy(at: policyFile, base: Policy(), login)
  }

  /// For a program that is not root.
  private func policy(of account: Account, tightenedBy asked: Policy, _ peer: Peer) -> Policy {
    let reading = reading(account, bytes(of: Self.publicService), isRemote: false, nil)
    if let trouble = reading.trouble {
      write(.error, .brokenPolicy(trouble, hasLastGood: !reading.isStrict), of: peer)
    }
    var policy = store.policy(of: reading, isSuperuser: account.uid == 0)
    let shared = policy.sharedBudget
    policy.tighten(by: asked)
    policy.shared = SharedBudgetBox(shared)
    // It was not asked of somebody who is let through there.
    policy.isEnabled = true
    policy.isFleet = policy.isFleet || asked.isFleet
    return policy
  }

  /// What a program that is not root may ask; nil: nothing. It gets nothing back of what a first
  /// pass was charged: it could say so of any amount.
  private func open(_ verb: LoginQuestion.Verb) -> LoginQuestion.Verb? {
    switch verb {
    case .prepare(_, let first): .prepare(mayEnroll: false, after: first)
    case .attempt(let typed, let known, _):
      .attempt(typed, knownAs: known, as: .last(givingBack: nil))
    case .enrolled, .level: verb
    case .remember, .count, .amend, .rehearse, .notices: nil
    }
  }

  // MARK: the log

  /// What the module of a program that is not root logs, its user could have written himself.
  private func note(_ answer: ServiceAnswer?, _ question: LoginQuestion, _ peer: Peer) {
    guard case .outcome(let outcome) = answer else { return }
    var line = LogLine.outcome(outcome, of: question)
    line.add(" uid=", Int(peer.realUser))
    if let line = allowance.line(line, of: peer.realUser, isCostless: outcome.isCostless) {
      log(outcome.logLevel, line)
    }
  }

  /// A line that tells of no outcome: a user's own may be left out.
  private func write(_ level: LogLevel, _ line: LogLine, of peer: Peer) {
    let isOfUser = peer.socket == .everybody
    if let line = allowance.line(line, of: peer.realUser, isCostless: isOfUser) { log(level, line) }
  }
}

extension LoginQuestion.Verb {
  fileprivate var mayBeSaved: Bool {
    switch self {
    case .attempt, .remember, .count, .rehearse, .amend: true
    // Who waits no more is not told; that is bounded by his time alone.
    case .prepare, .enrolled, .level, .notices: false
    }
  }
}
