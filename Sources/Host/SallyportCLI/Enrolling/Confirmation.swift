import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

/// The first code of a new authenticator, which proves that the app has the right secret and clock.
struct Confirmation {
  static let tries = 5
  /// Answers that are no try are bounded too.
  private static let questions = 20

  /// Asks until a code is correct, within the range that logins accept. Returns its time step or
  /// counter, which is used up, and the drift of the app's clock.
  static func ask(
    for draft: Draft, under policy: Policy, _ output: Output, _ context: Context,
    or consequence: Consequence
  ) throws(CommandError) -> AuthenticatorState {
    var left = tries
    for _ in 0..<questions where left > 0 {
      let typed = try output.ask("Code shown by the app: ", echo: true, or: consequence)
      if typed.count == 0 { continue }
      if typed.isRedraw {
        draft.showInverted(output)
        continue
      }
      left -= 1
      let time = try context.time()
      let first = try storing { () throws(StoreTrouble) in
        try draft.judge(firstCode: typed, at: time, under: policy)
      }
      let reason: String
      switch first {
      case .right(let state): return state
      case .malformed:
        reason = "A code has \(draft.authenticator.parameters.digits.rawValue) digits."
      case .backupCode: reason = "A backup code does not show that the app works."
      case .clockOff(let seconds):
        reason = String(decoding: LogLine(clockOff: seconds).bytes, as: UTF8.self)
      case .wrong: reason = wrongCode(draft.authenticator.parameters.type)
      }
      if left > 0 { output.say("\(reason) \(left == 1 ? "1 try" : "\(left) tries") left.") }
    }
    throw .noRightCode(tries: tries - left, consequence)
  }

  private static func wrongCode(_ type: AuthenticatorType) -> String {
    switch type {
    case .totp: "Wrong code. Is the phone's clock set automatically?"
    case .hotp: "Wrong code."
    }
  }
}

extension LoginState {
  /// Stores the drift that the first code of a new authenticator showed.
  mutating func note(_ first: AuthenticatorState?, of id: UInt64) {
    guard let first, let index = authenticators.firstIndex(where: { $0.id == id }) else {
      return
    }
    authenticators[index].drift = first.drift
  }
}
