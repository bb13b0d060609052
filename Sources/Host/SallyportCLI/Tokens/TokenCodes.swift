import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

/// Asks what a token shows: one code, and where that is not what a login would accept now, the
/// next one too. Its clock cannot be set, so that it is found out how far off it is.
struct TokenCodes {
  let authenticator: Authenticator
  let person: any Person
  let output: Output
  let context: Context
  let consequence: Consequence

  private static let tries = 5
  /// Answers that are no try are bounded too: a program may give them for ever.
  private static let questions = 20

  /// The values to store, in which the codes count as used.
  func confirmation() throws(CommandError) -> AuthenticatorState {
    var left = TokenCodes.tries
    for _ in 0..<TokenCodes.questions where left > 0 {
      let typed = try output.ask("Code shown by the token: ", echo: true, or: consequence)
      if typed.count == 0 { continue }
      left -= 1
      let now = try context.time()
      let first = try computing { () throws(CryptoError) in
        try verify(
          firstCode: typed, of: authenticator, for: person.account.name, at: now,
          under: person.policy)
      }
      switch first {
      case .right(let state): return known(state, at: now)
      case .malformed, .backupCode:
        output.say("A code has \(authenticator.parameters.digits.rawValue) digits.\(tries(left))")
      case .wrong, .clockOff:
        let next = try output.ask("The next code that it shows: ", echo: true, or: consequence)
        if let state = try state(typed, next) { return state }
        output.say("Not two codes in a row of this token, or used before.\(tries(left))")
      }
    }
    throw CommandError {
      Message(
        "no correct code: nothing was changed", .refused, hints: [$0.again(remark: "starts again")])
    }
  }

  /// With the clock that has shown the code.
  private func known(_ state: AuthenticatorState, at now: UnixTime) -> AuthenticatorState {
    guard case .totp(let period) = authenticator.parameters.type, let step = state.lastAccepted
    else { return state }
    var known = state
    known.clock?.set(to: step, of: period, at: now)
    return known
  }

  private func tries(_ left: Int) -> String { " \(left) \(left == 1 ? "try" : "tries") left." }

  /// nil: they are not two codes in a row within reach.
  private func state(_ first: Secret, _ second: Secret) throws(CommandError) -> AuthenticatorState?
  {
    let alone = Enrollment(
      id: authenticator.id, user: person.account.name, uid: nil, created: authenticator.created,
      authenticators: [authenticator], backupCodes: nil)
    let now = try context.time()
    return try computing { () throws(CryptoError) in
      let typed = [
        try Response.classify(first, for: alone), try Response.classify(second, for: alone),
      ]
      guard let codes = CodePair(typed[0], typed[1]) else { return nil }
      let (result, state) = try resync(
        by: codes, named: nil, enrollment: alone, state: LoginState(initialFor: alone), at: now,
        under: person.policy)
      guard case .done = result else { return nil }
      return state.authenticators.first
    }
  }
}
