import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

/// A service whose verifiers do not let this host change anything.
final class Refusing: CodeAuthority {
  let isForRoot = true
  func canBeAsked() -> Bool { true }
  /// Only where something is to be changed, and without an answer.
  private let isSilent: Bool
  private var refusal: StoreTrouble { .service(path: "fleet", isSilent ? .silent : .notServed) }

  init(isSilent: Bool = false) { self.isSilent = isSilent }

  func prepare(
    _ typed: [UInt8], _ account: Account?, in context: LoginContext, mayEnroll: Bool,
    after first: FirstFactor
  ) throws(StoreTrouble) -> AuthStep { throw refusal }
  func attempt(
    _ typed: Secret, knownAs malformation: Malformation?, by pending: PendingLogin,
    as role: ResponseRole
  ) throws(StoreTrouble) -> Outcome { throw refusal }
  func enrolled(_ account: Account, in context: LoginContext) throws(StoreTrouble) -> PendingLogin?
  {
    if isSilent { return nil }
    throw refusal
  }
  func level(of account: Account, in context: LoginContext) throws(StoreTrouble) -> EnrollmentLevel
  { throw refusal }
  func remember(_ address: NumericAddress, for pending: PendingLogin) throws(StoreTrouble) {
    throw refusal
  }
  func rehearse(for account: Account, in context: LoginContext) throws(StoreTrouble) {
    if !isSilent { throw refusal }
  }
  func amend(
    _ change: EnrollmentChange, of user: UserName, _ pending: PendingLogin?,
    in context: LoginContext
  ) throws(StoreTrouble) -> Amendment { throw refusal }
  func countLogin(of account: Account, in context: LoginContext) throws(StoreTrouble) -> UInt32 {
    throw refusal
  }
}
