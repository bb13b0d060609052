import OneTimePassword
import SallyportCore
import SallyportSystem

/// pam_sm_authenticate: policy, who -> load -> ask -> lock, decide, SAVE -> answer.
///
/// Nothing that depends on right or wrong is said to the user here: on many stacks this runs after
/// a wrong password too.
package func authenticate(
  _ host: some Host, _ arguments: ModuleArguments, store: some LoginStore
) -> ReturnCode {
  if !arguments.noDelay { host.delayFailure(2_000_000) }
  for word in arguments.unknown { host.log(.error, .unknownWord(word)) }
  do throws(HostFailure) {
    let user = try host.user()
    return try Login(host: host, arguments: arguments, verifier: Verifier(store: store)).run(user)
  } catch {
    host.log(.error, .hostFailed(error))
    return ReturnCode(error)
  }
}

/// One login through one line of a stack.
private struct Login<Application: Host, Keeper: LoginStore> {
  let host: Application
  let arguments: ModuleArguments
  let verifier: Verifier<Keeper>

  func run(_ user: [UInt8]) throws(HostFailure) -> ReturnCode {
    let prepared: Prepared?
    let policy: Policy
    do throws(StoreTrouble) {
      let account = try verifier.account(user)
      policy = self.policy(for: account)
      if !policy.isEnabled {
        if arguments.debug { host.log(.debug, .disabled) }
        return .ignore
      }
      prepared = try verifier.prepare(user, account, under: policy.enrollment)
    } catch {
      return report(error)
    }
    if let prepared { return try askAndJudge(prepared, policy) }
    if arguments.debug { host.log(.debug, .notAsked(user)) }
    return .ignore
  }

  /// A typing error, on the line or in the file, never opens anything.
  private func policy(for account: Account?) -> Policy {
    guard arguments.unknown.isEmpty else { return .strict }
    let remote = host.remoteHost()
    let login = Circumstances(
      service: host.service(), user: account?.name.bytes, isRemote: remote != nil,
      address: remote.flatMap { Addresses.withoutZone($0) }, parse: Addresses.numeric,
      membership: { group in
        account.map { verifier.store.isMember($0, of: group) } ?? .unknown
      })
    let reading = verifier.store.policy(
      at: arguments.policyFile, base: arguments.base, login)
    if let trouble = reading.trouble {
      host.log(.error, .brokenPolicy(trouble, hasLastGood: reading.policy != nil))
    }
    guard var policy = reading.policy else { return .strict }
    policy.localServices = reading.isLocal ? [login.service] : []
    return policy
  }

  private func askAndJudge(_ prepared: Prepared, _ policy: Policy)
    throws(HostFailure) -> ReturnCode
  {
    switch arguments.firstPass {
    case .ask: break
    case .use:
      guard let empty = Secret(count: 0) else { throw .memory }
      return try judge(try parts(of: host.password() ?? empty, prepared), nil, prepared, policy)
    case .tryThenAsk:
      guard let given = host.password() else { break }
      let parts = try parts(of: given, prepared)
      guard hasCode(parts, prepared) else { break }
      let answer = try judge(parts, nil, prepared, policy)
      if answer != .refused { return answer }
    }
    let typed = try host.ask(prompt, echo: arguments.echo)
    let known: Malformation? = isPasswordOnceMore(typed) ? .password : nil
    return try judge(try parts(of: typed, prepared), known, prepared, policy)
  }

  // MARK: the response

  /// What one field held.
  private struct Parts {
    /// nil unless `forward_pass`.
    let password: Secret?
    let code: Secret
  }

  private func parts(of typed: Secret, _ prepared: Prepared) throws(HostFailure) -> Parts {
    guard arguments.forwardPass else { return Parts(password: nil, code: typed) }
    let lengths = prepared.record.enrollment.authenticators.map { $0.parameters.digits }
    if let parts = Response.split(typed, lengths: lengths) {
      return Parts(password: parts.password, code: parts.code)
    }
    guard let empty = Secret(count: 0) else { throw .memory }
    return Parts(password: typed, code: empty)
  }

  private func hasCode(_ parts: Parts, _ prepared: Prepared) -> Bool {
    do throws(CryptoError) {
      switch try Response.classify(parts.code, for: prepared.record.enrollment) {
      case .code, .backupCode: return true
      case .malformed: return false
      }
    } catch {
      return true  // judged next, where the trouble is reported
    }
  }

  private var prompt: [UInt8] {
    let usual: StaticString =
      arguments.forwardPass ? "Password & verification code: " : "Verification code: "
    return arguments.prompt ?? bytes(of: usual)
  }

  /// sshd's method `password` answers every prompt with the password; in the other methods it
  /// tells the module what has been authenticated already.
  private func isPasswordOnceMore(_ typed: Secret) -> Bool {
    guard same("sshd", host.service()), !host.hasSSHAuthenticationInfo(),
      let password = host.password()
    else { return false }
    return constantTimeEquals(typed, password)
  }

  // MARK: the verdict

  private func judge(
    _ parts: Parts, _ known: Malformation?, _ prepared: Prepared, _ policy: Policy
  ) throws(HostFailure) -> ReturnCode {
    // Before the verdict and whatever it will be: the password module after us fails alike.
    if let password = parts.password { try host.setPassword(password) }
    let origin = origin(of: prepared, policy)
    let visit = Visit(origin: origin, service: Label(host.service()), policy: policy)
    do throws(StoreTrouble) {
      let outcome = try verifier.attempt(parts.code, knownAs: known, by: prepared, visit)
      let line = LogLine.outcome(outcome, user: prepared.name, from: host.remoteHost(), origin)
      host.log(outcome.logLevel, line)
      return outcome.returnCode
    } catch {
      return report(error)
    }
  }

  private func origin(of prepared: Prepared, _ policy: Policy) -> Origin {
    guard let remote = host.remoteHost() else {
      guard policy.isLocal(service: host.service()) else { return .unknown }
      let caller = host.realUserID()
      return .local(own: caller == 0 || caller == prepared.account?.uid)
    }
    return Addresses.parse(remote).map { .address($0) } ?? .unknown
  }

  private func report(_ trouble: StoreTrouble) -> ReturnCode {
    host.log(.alert, .trouble(trouble))
    return .unavailable
  }
}

extension Outcome {
  fileprivate var returnCode: ReturnCode {
    switch self {
    case .accepted: .success
    case .refused: .refused
    }
  }

  /// As Linux-PAM's guide for module writers has it.
  fileprivate var logLevel: LogLevel {
    switch self {
    case .accepted: .info
    case .refused(.response(.malformed, _)): .info
    case .refused(.response), .refused(.notEnrolled), .refused(.unknownUser): .notice
    }
  }
}

extension ReturnCode {
  fileprivate init(_ failure: HostFailure) {
    switch failure {
    case .conversation: self = .conversation
    case .memory: self = .memory
    }
  }
}
