import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

/// What is known of an account's enrollment, as far as it decides who gets in.
enum KnownEnrollment: Hashable {
  case none
  /// The kinds that are enrolled; of backup codes only where some are left.
  case enrolled(Set<FactorKind>)
  /// It, or the user's note, cannot be read: no login succeeds.
  case broken
}

/// Who answers the questions of a rehearsed login: nothing is verified or saved.
final class RehearsedAuthority: CodeAuthority {
  private let enrollment: KnownEnrollment
  /// What the fleet has of the same name.
  private let inFleet: KnownEnrollment
  private let note, noteInFleet: UserNote.Level?
  private let now: UnixTime
  private let isBlocked: Bool
  /// Why a code was not accepted, or the login let through without one; nil if neither happened.
  private(set) var barrier: Barrier?
  private(set) var opening: Opening?
  private(set) var asked: Asking?
  /// Whether a code is asked for, also where none is enrolled.
  private(set) var isAsking = false

  init(
    _ enrollment: KnownEnrollment, inFleet: KnownEnrollment, note: UserNote.Level?,
    noteInFleet: UserNote.Level?, isBlocked: Bool, at now: UnixTime
  ) {
    self.isBlocked = isBlocked
    (self.enrollment, self.inFleet) = (enrollment, inFleet)
    (self.note, self.noteInFleet, self.now) = (note, noteInFleet, now)
  }

  let isForRoot = true
  func canBeAsked() -> Bool { true }

  func prepare(
    _ typed: [UInt8], _ account: Account?, in context: LoginContext, mayEnroll: Bool,
    after first: FirstFactor
  ) throws(StoreTrouble) -> AuthStep {
    guard let account else {
      barrier = .notEnrolled
      return .prompt(pending(.invalid(typed), [], context))
    }
    if isBlocked {
      barrier = .blocked
      return .prompt(pending(.blocked(account), [.totp], context))
    }
    if let pending = try enrolled(account, in: context) { return .prompt(pending) }
    let level = try level(of: account, in: context)
    switch level.action(hasAccount: account.uid != nil, mayEnroll: mayEnroll, after: first) {
    case .refuse:
      barrier = .notEnrolled
      return .prompt(pending(.notEnrolled(account), [.totp], context))
    case .pass:
      opening = reason(under: context.policy)
      return .skip
    case .enroll(let level):
      // Who may put it off gets in as he is.
      opening = level == .required ? .enrolls : .offered
      return .enroll(level, account)
    }
  }

  /// The fleet goes by what was set there.
  private func note(under policy: Policy) -> UserNote.Level? {
    policy.isFleet ? noteInFleet : note
  }

  private func reason(under policy: Policy) -> Opening {
    if note(under: policy).isExempt(at: now) { return .exempt }
    return policy.enrollment == .voluntary ? .voluntary : .offered
  }

  func attempt(
    _ typed: Secret, knownAs malformation: Malformation?, by pending: PendingLogin,
    as role: ResponseRole
  ) throws(StoreTrouble) -> Outcome {
    asked = pending.policy.isFleet ? .codeOfFleet : .code
    guard pending.claimant.isEnrolled else { return .refused(.notEnrolled) }
    let isUsable = FactorKind.allCases.contains {
      pending.factors.contains($0) && pending.policy.use(of: $0) != .off
    }
    if !isUsable { barrier = .factorsOff }
    guard isUsable, malformation == nil,
      typed.bytes(in: 0..<typed.count) == Array(RehearsedLogin.Person.rightCode.utf8)
    else {
      let left = BudgetLeft(known: 1, other: 1)
      return .refused(.response(.wrongCode(nil), left: left))
    }
    return .accepted(.authenticator(name: RehearsedAuthority.name, drift: 0))
  }

  func enrolled(_ account: Account, in context: LoginContext) throws(StoreTrouble)
    -> PendingLogin?
  {
    switch context.policy.isFleet ? inFleet : enrollment {
    case .none: return nil
    case .enrolled(let kinds): return pending(.enrolled(account), kinds, context)
    case .broken:
      barrier = .brokenEnrollment
      throw .incomplete(path: account.name.text)
    }
  }

  func level(of account: Account, in context: LoginContext) throws(StoreTrouble)
    -> EnrollmentLevel
  {
    context.policy.level(of: note(under: context.policy), at: now)
  }

  func remember(_ address: NumericAddress, for pending: PendingLogin) throws(StoreTrouble) {}
  func rehearse(for account: Account, in context: LoginContext) throws(StoreTrouble) {}
  func amend(
    _ change: EnrollmentChange, of user: UserName, _ pending: PendingLogin?,
    in context: LoginContext
  ) throws(StoreTrouble) -> Amendment { .changed }
  /// The first login, at which few are reminded.
  func countLogin(of account: Account, in context: LoginContext) throws(StoreTrouble) -> UInt32 {
    1
  }

  private static let name = Label("code" as StaticString)

  private func pending(
    _ claimant: Claimant, _ kinds: Set<FactorKind>, _ context: LoginContext
  ) -> PendingLogin {
    isAsking = true
    let authenticators = [FactorKind.totp, .hotp].filter(kinds.contains).map { kind in
      Shape.Authenticator(name: RehearsedAuthority.name, kind: kind, digits: .eight)
    }
    let shape = Shape(
      enrollmentID: 1, authenticators: authenticators, hasScratchCodes: false,
      backupCodesLeft: kinds.contains(.backupCode) ? 1 : nil, wait: 0, isRemembered: false)
    return PendingLogin(claimant, shape, context)
  }
}
