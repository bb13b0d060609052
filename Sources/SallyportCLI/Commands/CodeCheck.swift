import OneTimePassword
import SallyportCore
import SallyportSystem

/// One code, checked as a login on this machine's own terminal would, and used up.
struct CodeCheck {
  let store: Store
  /// Where the store is, for messages.
  let path: String
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
    let decision = try context.settled(at: path) { () throws(CommandError) in
      let record = try context.record(user, options, in: store)
      return try attempt(typed, record)
    }
    switch decision {
    case .success(let proof): return proof
    case .failure(let rejection): throw .code(rejection)
    }
  }

  private enum Verdict {
    case success(Proof)
    case failure(Rejection)
  }

  private func attempt(_ typed: Secret, _ record: Record) throws(CommandError) -> Transaction<
    Verdict
  > {
    let response = try computing { () throws(CryptoError) in
      try Response.classify(typed, for: record.enrollment)
    }
    let (now, policy) = (context.now, policy)
    return try storing { () throws(StoreTrouble) in
      try store.transact(record) { (enrollment, state) throws(StoreTrouble) in
        try CodeCheck.judge(response, enrollment, state, at: try now(), under: policy)
      }
    }
  }

  private static func judge(
    _ response: Response, _ enrollment: Enrollment, _ state: LoginState, at time: UnixTime,
    under policy: Policy
  ) throws(StoreTrouble) -> (Verdict, LoginState) {
    let decision: Decision
    do throws(CryptoError) {
      decision = try decide(
        on: response, enrollment: enrollment, state: state, from: .local(own: true),
        through: .sallyport, at: time, under: policy)
    } catch {
      throw .crypto(error)
    }
    switch decision {
    case .accept(let proof, let state): return (.success(proof), state)
    case .refuse(let refusal, let state):
      let wait = wait(response, enrollment, state, at: time, under: policy)
      return (.failure(Rejection(refusal: refusal, wait: wait)), state)
    }
  }

  private static func wait(
    _ response: Response, _ enrollment: Enrollment, _ state: LoginState, at time: UnixTime,
    under policy: Policy
  ) -> UInt64? {
    switch response {
    case .code(_, let digits):
      Throttle(for: enrollment, state, under: policy)
        .wait(for: state.known, digits: digits, at: time)
    case .backupCode, .malformed: 0
    }
  }
}
