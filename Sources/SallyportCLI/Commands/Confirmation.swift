import OneTimePassword
import SallyportCore
import SallyportSystem

/// The first code of a new authenticator: proof that the app has the right secret and clock.
struct Confirmation: Equatable {
  static let tries = 5

  /// The step or counter of the code, which counts as used.
  let lastAccepted: UInt64
  /// In time steps; see `AuthenticatorState.drift`.
  let drift: Int32

  /// Asks until a code is right, in the window that logins accept.
  static func ask(
    for draft: Draft, under policy: Policy, _ voice: Output, _ context: Context,
    or consequence: Consequence
  ) throws(CommandError) -> Confirmation {
    for left in (0..<tries).reversed() {
      let typed = try voice.ask("Code shown by the app: ", echo: true, or: consequence)
      let time = try context.time()
      let verdict = try computing { () throws(CryptoError) in
        try judge(typed, draft, at: time, under: policy)
      }
      switch verdict {
      case .right(let confirmation): return confirmation
      case .wrong(let reason):
        if left > 0 { voice.say("\(reason) \(left == 1 ? "1 try" : "\(left) tries") left.") }
      }
    }
    throw .noRightCode(tries: tries, consequence)
  }

  private enum Verdict {
    case right(Confirmation)
    /// A sentence for the person who typed.
    case wrong(String)
  }

  private static func judge(
    _ typed: Secret, _ draft: Draft, at time: UnixTime, under policy: Policy
  ) throws(CryptoError) -> Verdict {
    let authenticator = draft.authenticator(lastAccepted: nil)
    let first = try SallyportCore.judge(
      firstCode: typed, of: authenticator, for: draft.account.name, at: time, under: policy)
    switch first {
    case .right(let state):
      guard let accepted = state.lastAccepted else { return .wrong("") }
      return .right(Confirmation(lastAccepted: accepted, drift: state.drift))
    case .malformed: return .wrong("A code has \(draft.parameters.digits.rawValue) digits.")
    case .backupCode: return .wrong("A backup code does not show that the app works.")
    case .wrong: return .wrong(wrongCode(draft.parameters.type))
    }
  }

  private static func wrongCode(_ type: AuthenticatorType) -> String {
    switch type {
    case .totp: "Not the right code. Is the phone's clock set automatically?"
    case .hotp: "Not the right code."
    }
  }
}

extension LoginState {
  /// Notes what the first code of a new authenticator showed.
  mutating func note(_ confirmation: Confirmation?, of id: UInt64) {
    guard let confirmation, let index = authenticators.firstIndex(where: { $0.id == id }) else {
      return
    }
    authenticators[index].drift = confirmation.drift
  }
}
