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
    for draft: Draft, under policy: Policy, _ voice: Voice, _ context: Context,
    or consequence: Consequence
  ) throws(Complaint) -> Confirmation {
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

  /// As a login would for a user who has nothing else, with a state that is as new each time:
  /// nothing is throttled, nothing kept.
  private static func judge(
    _ typed: Secret, _ draft: Draft, at time: UnixTime, under policy: Policy
  ) throws(CryptoError) -> Verdict {
    let enrollment = Enrollment(
      id: draft.id, user: draft.account.name, uid: draft.account.uid, created: draft.created,
      authenticators: [draft.authenticator(lastAccepted: nil)], backupCodes: nil)
    let response = try Response.classify(typed, for: enrollment)
    if case .backupCode = response {
      return .wrong("A backup code does not show that the app works.")
    }
    let decision = try decide(
      on: response, enrollment: enrollment, state: LoginState(initialFor: enrollment),
      from: .local(own: true), through: nil, at: time, under: policy)
    switch decision {
    case .accept(.authenticator, let state):
      guard let first = state.authenticators.first, let accepted = first.lastAccepted else {
        return .wrong("")
      }
      return .right(Confirmation(lastAccepted: accepted, drift: first.drift))
    case .refuse(.malformed, _):
      return .wrong("A code has \(draft.parameters.digits.rawValue) digits.")
    case .accept(.backupCode, _), .refuse(.wrongCode, _), .refuse(.replayed, _),
      .refuse(.throttled, _), .refuse(.clock, _):
      return .wrong(wrongCode(draft.parameters.type))
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
