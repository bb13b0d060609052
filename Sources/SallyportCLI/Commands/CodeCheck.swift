import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

/// One code, checked as a login on this machine's own terminal would, and used up.
struct CodeCheck {
  let store: Store
  let context: Context
  let policy: Policy

  /// Asks for a code, or a backup code, before something that only the user may want. Throws `code`
  /// for a wrong one.
  func ask(_ prompt: String, for user: String, _ options: UserOptions, _ voice: Output)
    throws(CommandError)
  {
    context.terminal.watchForInterruption()
    let typed = try voice.ask(prompt, echo: false, or: .nothingChanged)
    _ = try run(typed, for: user, options)
    try context.stopIfInterrupted(.nothingChanged)
  }

  /// What a right code proves. Throws `code` for any other.
  func run(_ typed: Secret, for user: String, _ options: UserOptions) throws(CommandError) -> Proof
  {
    let record = try context.record(user, options, in: store)
    let login = LoginContext(policy: policy, origin: .local(own: true), service: .sallyport)
    let verifier = Verifier(store: store, now: context.now)
    let account = try context.account(user)
    let pending = PendingLogin(.enrolled(account), record, login)
    let outcome = try storing { () throws(StoreTrouble) in
      try verifier.attempt(typed, by: pending)
    }
    switch outcome {
    case .accepted(let proof): return proof
    case .refused(.response(let refusal, _)):
      throw .code(Rejection(refusal: refusal, wait: try wait(of: account, verifier, login)))
    // Unenrolled in between.
    case .refused(.notEnrolled), .refused(.unknownUser): throw .notEnrolled
    }
  }

  /// Seconds until a code is judged again; nil: never.
  private func wait(of account: Account, _ verifier: Verifier<Store>, _ login: LoginContext)
    throws(CommandError) -> UInt64?
  {
    try storing { () throws(StoreTrouble) in
      try verifier.enrolled(account, in: login)?.wait(at: try verifier.now())
    }
  }
}
