import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

/// How long after an answer a refusal is told.
enum LoginDelay {
  static let milliseconds: UInt64 = 2000
}

/// One login through one line of a stack: what its phases share. Each phase begins it first.
final class Login<Application: PAMApplication, Store: LoginStore> {
  let host: Application
  let arguments: ModuleArguments
  let store: Store
  /// Verifies the codes. Where the policy says that the fleet does, nothing else does once the
  /// login has begun.
  private(set) var authority: any CodeAuthority
  /// The service of this machine, which asks the fleet.
  private let service: any CodeAuthority
  private let isServed: Bool
  /// Whether the account phase can ask to enroll.
  var mayEnroll: Bool { arguments.enroll && authority.isForRoot }
  /// What an earlier try on this handle left.
  let earlier: Mark?
  /// Refusals of this transaction, but for malformed answers.
  var refusals = 0
  /// Whether this line is in the auth phase, after a first factor and where it can be followed by
  /// an enrolling, so that a pass can be claimed that must end in one.
  var mayClaim = false
  /// The random with which one was.
  var claim: UInt64 = 0
  /// As the policy says.
  private var languages = (before: UInt64(0), after: UInt64(0))
  /// The catalog that was read last.
  private var read: (language: UInt64, sentences: Sentences)?

  init(
    _ host: Application, _ arguments: ModuleArguments, store: Store, service: any CodeAuthority,
    isServed: Bool, after earlier: Mark? = nil
  ) {
    (self.host, self.arguments, self.store, self.earlier) = (host, arguments, store, earlier)
    (self.service, self.isServed) = (service, isServed)
    authority = Login.authority(isServed: isServed, service, store)
  }

  @inline(never)
  private static func authority(isServed: Bool, _ service: any CodeAuthority, _ store: Store)
    -> any CodeAuthority
  {
    isServed ? service : RecordAuthority(store: store)
  }

  /// Whose login it is, under which policy and from where; and who verifies its codes: the fleet if
  /// the policy says so, else the files of this machine, where its service is not there. Right
  /// before the first question to the service, which waits a second for it.
  func begin(_ user: [UInt8]) throws(StoreTrouble) -> (Account?, LoginContext) {
    let account = try store.account(typed: user)
    let context = context(of: account)
    languages = (context.policy.promptLanguage, context.policy.language)
    let isServed = context.policy.isFleet || isServed && service.canBeAsked()
    authority = Login.authority(isServed: isServed, service, store)
    return (account, context)
  }

  /// Under which policy the account logs in, and from where.
  private func context(of account: Account?) -> LoginContext {
    let policy = policy(
      for: account, in: host.service(), from: host.remoteHost(), at: arguments.policyFile,
      base: arguments.base)
    // Nobody is asked: it need not be found out.
    let address = policy.isEnabled ? statedAddress.flatMap { elsewhere($0) } : nil
    return LoginContext(
      policy: policy, origin: origin(of: account, policy, address), address: address,
      service: Label(host.service()))
  }

  /// A typing error, on the line or in the file, never opens anything.
  ///
  /// `file`: nil for the usual one.
  private func policy(
    for account: Account?, in service: [UInt8], from remote: [UInt8]?, at file: [UInt8]?,
    base: Policy
  ) -> Policy {
    let login = PolicyRequest(
      service: service, user: account?.name.bytes, isSuperuser: account?.uid == 0,
      isRemote: remote != nil,
      address: remote.flatMap { Addresses.withoutZone($0) }, parse: Addresses.numeric,
      membership: { [store] group in
        account.map { store.isMember($0, of: group) } ?? .unknown
      })
    let reading = store.policy(at: file, base: base, login)
    if let trouble = reading.trouble {
      host.log(.error, .brokenPolicy(trouble, hasLastGood: !reading.isStrict))
    }
    var policy = store.policy(of: reading, isSuperuser: login.isSuperuser)
    if !arguments.unknown.isEmpty { policy.tighten() }
    return policy
  }

  private func origin(of account: Account?, _ policy: Policy, _ address: NumericAddress?) -> Origin
  {
    // As the service sees it, whatever a program that is not root says.
    if !authority.isForRoot { return .local(own: true) }
    guard host.remoteHost() != nil else {
      guard policy.isLocal(service: host.service()) else { return .unknown }
      return .local(
        own: isOwn(account, caller: host.realUserID(), through: host.service()))
    }
    return address.flatMap { NetworkAddress($0.bytes) }.map { .address($0) } ?? .unknown
  }

  /// PAM_RHOST, where that is an address.
  private var statedAddress: NumericAddress? {
    host.remoteHost().flatMap { Addresses.withoutZone($0) }
  }

  /// The address, if it is another machine's. Everybody on this one, and behind a tunnel to it,
  /// comes from one of its own: such an address is neither known nor remembered.
  private func elsewhere(_ address: NumericAddress) -> NumericAddress? {
    address.isElsewhere && !store.isOwn(address) ? address : nil
  }

  // MARK: in which words

  /// What is asked before anything is proven: the same for all in this service and from there.
  var prompting: Sentences { sentences(in: languages.before) }

  /// What is said after a success.
  var telling: Sentences { sentences(in: languages.after) }

  /// A catalog that cannot be used locks nobody out.
  @inline(never) private func sentences(in language: UInt64) -> Sentences {
    if language == 0 { return Sentences() }
    if let read, read.language == language { return read.sentences }
    var sentences = Sentences()
    do throws(StoreTrouble) {
      sentences = try store.sentences(in: language)
    } catch {
      host.log(.error, .brokenCatalog(error))
    }
    read = (language, sentences)
    return sentences
  }

  // MARK: what the phases ask of it

  func isSSHD(_ policy: Policy) -> Bool { policy.isSSHD(service: host.service()) }

  /// Under whatever name. There the session phase is another process.
  func isInSSHD(_ policy: Policy) -> Bool {
    isSSHD(policy) || host.sshAuthenticationInfo() != nil
  }

  /// Whether sallyport-session lets the user change his own enrollment.
  func hasSelfService(_ account: Account) -> Bool {
    guard store.hasSessions, !arguments.hasOwnStore, account.uid != 0 else { return false }
    let policy = policy(
      for: account, in: bytes(of: "sallyport"), from: nil, at: nil, base: Policy())
    return policy.isEnabled && policy.isSelfService
  }

  /// `origin` if it is known; the error may be in the lookup of the account or of local services.
  func report(_ trouble: StoreTrouble, _ origin: Origin? = nil) -> ReturnCode {
    var user: [UInt8] = []
    do throws(PAMFailure) { user = try host.user() } catch {}
    let guess = self.origin(of: nil, Policy(), statedAddress)
    let origin = origin ?? (guess == .local(own: false) ? .local(own: true) : guess)
    // What a stranger can cause must not wake anybody up.
    host.log(
      trouble.mayBeTheCallers ? .warning : .alert,
      .trouble(trouble, user: user, from: host.remoteHost(), origin))
    return .unavailable
  }
}

extension ReturnCode {
  init(_ failure: PAMFailure) {
    switch failure {
    case .conversation: self = .conversation
    case .memory: self = .memory
    }
  }
}
