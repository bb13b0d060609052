import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

extension Draft {
  /// Asks until a first code is correct. Returns its time step or counter, which is used up, and
  /// the drift of the app's clock.
  func confirmation(
    under policy: Policy, _ output: Output, _ context: Context, or consequence: Consequence
  ) throws(CommandError) -> AuthenticatorState {
    let first = try firstCode(
      under: policy, in: Sentences(), now: context.now,
      ask: { question throws(CommandError) in
        try output.ask(String(decoding: question, as: UTF8.self), echo: true, or: consequence)
      },
      show: { text throws(CommandError) in
        output.say(String(decoding: text.bytes, as: UTF8.self))
      },
      invert: { () throws(CommandError) in showInverted(output) })
    guard let state = try storing(first.get) else { throw .noRightCode(consequence) }
    return state
  }
}
