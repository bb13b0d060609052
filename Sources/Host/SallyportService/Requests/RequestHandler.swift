import CService
package import OneTimePassword
import SallyportCore
package import SallyportLogin
package import SallyportSupport
import SallyportSystem

/// Answers the packets that peers send. It does what the module does in root's own programs, with
/// the same `LocalAuthority`; here it is settled whose account, whose policy and which origin
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
    guard let request = ServiceRequest.decode(packet) else { return [] }
    return (answer(peer, request, caller) ?? .notServed).encoded() ?? []
  }

  /// nil: not for this peer.
  private func answer(_ peer: Peer, _ request: ServiceRequest, _ caller: any Caller)
    -> ServiceAnswer?
  {
    do throws(StoreTrouble) {
      let deadline = peer.arrived &+ UInt64(min(request.millisecondsLeft, 5000)) &* 1_000_000
      let account = try store.account(typed: request.name)
      switch peer.socket {
      case .root:
        let question = Question(request, account, root(request, account, peer), deadline)
        try begin(question, request, caller)
        let answer = try judge(question, request.verb, request.origin, request.isAway, peer)
        // Else the module logs it, which knows whom it has let in.
        if !caller.isThere { note(answer, question, peer) }
        return answer
      case .everybody:
        // The name must lead to the number: several names may have one.
        guard let account, account.uid == peer.effectiveUser, let verb = open(request.verb) else {
          return nil
        }
        let question = Question(request, account, own(request, account, peer), deadline)
        let isAway = request.isAway && fleet?.wasAway == true
        try begin(question, request, caller)
        let answer = try judge(question, verb, .local, isAway, peer)
        note(answer, question, peer)
        return answer
      }
    } catch {
      // Of a name that a program of a user made up, nobody has to be woken up.
      write(
        error.mayBeTheCallers || peer.socket == .everybody ? .warning : .alert,
        .trouble(error, user: request.name, from: nil, .unknown), of: peer)
      return .trouble(mayBeTheCallers: error.mayBeTheCallers)
    }
  }

  /// Nothing that may be saved is begun for whoever does not wait: he must not find his code used.
  /// It is the same for everybody, before anything is decided. Who waits has heard of it in time.
  private func begin(_ question: Question, _ request: ServiceRequest, _ caller: any Caller)
    throws(StoreTrouble)
  {
    guard request.waits, request.verb.mayBeSaved else { return }
    let isInTime = sys_monotonic() &+ Self.margin < question.deadline
    guard isInTime, caller.begin() else { throw .busy(path: "") }
  }

  /// By the files of this machine, or by the fleet: the policy says it, and nothing else.
  private func judge(
    _ question: Question, _ verb: ServiceRequest.Verb, _ origin: ServiceRequest.StatedOrigin,
    _ isAway: Bool, _ peer: Peer
  ) throws(StoreTrouble) -> ServiceAnswer? {
    let policy = question.context.policy
    guard policy.isFleet else { return try question.answer(verb, from: store) }
    if case .prepare = verb, !policy.isEnabled { return .skip }
    guard let fleet else { return withoutFleet(question, peer) }
    let errand = Errand(
      verb: verb, name: question.name, account: question.account, context: question.context,
      origin: origin, caller: peer.realUser == 0 ? nil : peer.realUser,
      deadline: question.deadline, isAway: isAway)
    return try fleet.answer(errand) { level, line in
      write(level, line, of: peer)
    }
  }

  private func withoutFleet(_ question: Question, _ peer: Peer) -> ServiceAnswer {
    var line = LogLine("error:")
    line.add(user: question.name)
    line.add(": the policy has verification = fleet: this service is built without the fleet")
    write(.error, line, of: peer)
    return .trouble(mayBeTheCallers: false)
  }

  // MARK: who, under which policy, from where

  private func root(_ request: ServiceRequest, _ account: Account?, _ peer: Peer) -> LoginContext {
    let origin: Origin
    var address: NumericAddress?
    switch request.origin {
    case .unknown: origin = .unknown
    case .local:
      origin = .local(
        own: isOwn(account, caller: peer.realUser, through: request.service))
    case .address(let found) where !found.isElsewhere: origin = .unknown
    case .address(let found):
      address = found
      origin = NetworkAddress(found.bytes).map { .address($0) } ?? .unknown
    }
    var policy = request.policy
    var shared = SharedBudget(of: policy)
    // Once a login, where it counts: a directory may take a second for each group. The line may
    // name another file, whose budget holds too where it is the smaller one.
    if case .attempt = request.verb {
      let reading = reading(account, request.service, isRemote: request.origin != .local, address)
      shared = reading.policy.sharedBudget
      shared.include(stated: policy)
    }
    policy.shared = SharedBudgetBox(shared)
    return LoginContext(
      policy: policy, origin: origin, address: address, service: Label(request.service))
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

  private func own(_ request: ServiceRequest, _ account: Account, _ peer: Peer) -> LoginContext {
    let reading = reading(account, bytes(of: Self.publicService), isRemote: false, nil)
    if let trouble = reading.trouble {
      write(.error, .brokenPolicy(trouble, hasLastGood: !reading.isStrict), of: peer)
    }
    var policy = store.policy(of: reading, isSuperuser: account.uid == 0)
    let shared = policy.sharedBudget
    policy.tighten(by: request.policy)
    policy.shared = SharedBudgetBox(shared)
    // It was not asked of somebody who is let through there.
    policy.isEnabled = true
    policy.isFleet = policy.isFleet || request.policy.isFleet
    return LoginContext(
      policy: policy,
      origin: .local(own: isOwn(account, caller: peer.realUser, through: request.service)),
      service: Label(request.service))
  }

  /// What a program that is not root may ask; nil: nothing. It gets nothing back of what a first
  /// pass was charged: it could say so of any amount.
  private func open(_ verb: ServiceRequest.Verb) -> ServiceRequest.Verb? {
    switch verb {
    case .prepare(_, let first): .prepare(mayEnroll: false, after: first)
    case .attempt(let typed, let known, _):
      .attempt(typed, knownAs: known, as: .last(givingBack: nil))
    case .enrolled, .level: verb
    case .remember, .count, .amend, .rehearse: nil
    }
  }

  // MARK: the log

  /// What the module of a program that is not root logs, its user could have written himself.
  private func note(_ answer: ServiceAnswer?, _ question: Question, _ peer: Peer) {
    guard case .outcome(let outcome) = answer else { return }
    var line = LogLine.outcome(
      outcome, user: question.name, from: nil, question.context.origin)
    line.add(" service=")
    line.add(field: question.context.service?.bytes ?? [])
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

extension ServiceRequest.Verb {
  fileprivate var mayBeSaved: Bool {
    switch self {
    case .attempt, .remember, .count, .rehearse, .amend: true
    case .prepare, .enrolled, .level: false
    }
  }
}
