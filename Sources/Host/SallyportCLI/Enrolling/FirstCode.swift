import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

/// Who logs in with the first code is refused.
let codeIsUsedUp = "The code is used up: wait for the next one before you log in"

extension Draft {
  /// Asks until a first code is correct. Returns its time step or counter, which is used up, and
  /// the drift of the app's clock.
  func confirmation(
    under policy: Policy, _ output: Output, _ context: Context, or consequence: Consequence
  ) throws(CommandError) -> AuthenticatorState {
    if authenticator.clockOffset != nil {
      return try authenticator.started(for: user, under: policy, output, or: consequence) {
        () throws(CommandError) in try context.time()
      }
    }
    var last: Secret?
    let first = try firstCode(
      under: policy, in: Sentences(), now: context.now,
      ask: { question throws(CommandError) in
        let question = String(decoding: question, as: UTF8.self)
        let typed = try output.ask(question, echo: true, or: consequence)
        last = typed
        return typed
      },
      show: { text throws(CommandError) in
        output.say(String(decoding: text.bytes, as: UTF8.self))
        guard let last else { return }
        let told = try storing { () throws(StoreTrouble) in
          try ignoredByApp(last, at: try context.now(), under: policy)
        }
        if let told { output.say("\(told)") }
      },
      draw: { look throws(CommandError) in draw(look, output) })
    guard let state = try storing(first.get) else { throw .noRightCode(consequence) }
    return state
  }
}

extension Authenticator {
  /// Asks what a token shows: its clock is what its codes say, two in a row where it is off by more
  /// than logins accept.
  func started(
    for user: UserName, under policy: Policy, _ output: Output, or consequence: Consequence,
    _ now: () throws(CommandError) -> UnixTime
  ) throws(CommandError) -> AuthenticatorState {
    var seen: Secret?
    for left in (0..<6).reversed() {
      let question =
        seen == nil ? "Code shown by the token: " : "Wait for the next code and type it: "
      let typed = try output.ask(question, echo: true, or: consequence)
      let now = try now()
      let before = seen
      let told = try computing { () throws(CryptoError) in
        try start(
          by: before ?? typed, then: before.map { _ in typed }, for: user, at: now, under: policy)
      }
      seen = nil
      switch told {
      case .right(let state): return state
      case .wantsNext: seen = typed
      case .refused(let first):
        let text = before == nil ? text(of: first) : pairText(of: first)
        output.say("\(text) \(counted(left, "more code")) can be typed.")
        let other = try computing { () throws(CryptoError) in
          try otherKind(fitting: typed, for: user, at: now, under: policy)
        }
        if let other { output.say(otherKindText(other)) }
      }
    }
    throw .noRightCode(consequence)
  }

  private func otherKindText(_ other: CodeParameters) -> String {
    var options: [String] = []
    if case .totp(let period) = other.type, other.type != parameters.type {
      options += ["--period", "\(period)"]
    }
    if other.digits != parameters.digits { options += ["--digits", "\(other.digits.rawValue)"] }
    if other.algorithm != parameters.algorithm {
      options += ["--algorithm", AlgorithmOption(other.algorithm).rawValue]
    }
    return """
      It is right for \(description(of: other)): the token is here as another kind.
      Stop with Control-C, and enroll it with, or forget it and import its list with
      \(options.joined(separator: " ")).
      """
  }

  private func pairText(of second: FirstCode) -> String {
    second == .wrong
      ? "Not two codes in a row of this token, or used before." : text(of: second)
  }

  private func text(of first: FirstCode) -> String {
    switch first {
    case .right, .wrong: "Wrong code."
    case .clockOff(let seconds):
      "Wrong code: a clock that is \(offText(seconds)) shows it now, too far off to follow."
    case .malformed: "A code has \(parameters.digits.rawValue) digits."
    case .backupCode: "A backup code does not show what the clock is."
    }
  }
}
