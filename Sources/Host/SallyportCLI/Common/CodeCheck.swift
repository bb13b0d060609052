import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

/// Checks a code as a local login would, which uses it up.
struct CodeCheck {
  let store: Store
  let context: Context
  let policy: Policy

  /// Asks for a code or a backup code before a change that needs the user's consent. Throws `code`
  /// if it is refused.
  func ask(_ prompt: String, for account: Account, _ options: UserOptions, _ output: Output)
    throws(CommandError) -> Consequence
  {
    try context.prove(prompt, output) { (typed) throws(CommandError) in
      try run(typed, for: account, options)
    }
  }

  /// Returns what the code proves. Throws `code` if it is refused.
  func run(_ typed: Secret, for account: Account, _ options: UserOptions)
    throws(CommandError) -> Proof
  {
    let record = try context.record(account, options, in: store)
    let login = LoginContext(policy: policy, origin: .local(own: true), service: .sallyport)
    let examiner = LocalAuthority(store: store, now: context.now)
    let pending = PendingLogin(.enrolled(account), record, login)
    let outcome = try storing { () throws(StoreTrouble) in
      try examiner.attempt(typed, knownAs: nil, by: pending, as: .last(givingBack: nil))
    }
    switch outcome {
    case .accepted(let proof): return proof
    case .refused(.response(.throttled, _)):
      let now = try context.time()
      let current = try context.record(account, options, in: store)
      throw .code(CodeRefused(refusal: .throttled, wait: try wait(for: typed, current, at: now)))
    case .refused(.response(.wrongCode(let charge), _)):
      let offset = try clockOffset(of: typed, record.enrollment)
      throw .code(CodeRefused(refusal: .wrongCode(charge), wait: 0, clockOffset: offset))
    case .refused(.response(let refusal, _)): throw .code(CodeRefused(refusal: refusal, wait: 0))
    // The user was unenrolled meanwhile; `record` throws the reason.
    case .refused(.notEnrolled), .refused(.unknownUser):
      _ = try context.record(account, options, in: store)
      throw .notEnrolled
    }
  }

  /// For root, who can read the secrets: a login never computes this.
  private func clockOffset(of typed: Secret, _ enrollment: Enrollment) throws(CommandError)
    -> Int64?
  {
    let now = try context.time()
    return try computing { () throws(CryptoError) in
      guard case .code(let code, let digits) = try Response.classify(typed, for: enrollment) else {
        return nil
      }
      for authenticator in enrollment.authenticators
      where authenticator.parameters.digits == digits {
        if let offset = try authenticator.clockOffset(of: code, at: now) { return offset }
      }
      return nil
    }
  }

  /// Seconds until a code of this length is checked again; nil for never.
  private func wait(for typed: Secret, _ record: Record, at now: UnixTime) throws(CommandError)
    -> UInt64?
  {
    let response = try computing { () throws(CryptoError) in
      try Response.classify(typed, for: record.enrollment)
    }
    guard case .code(_, let digits) = response else { return 0 }
    return Throttle(for: record.enrollment, record.state, under: policy)
      .wait(for: record.state.known, digits: digits, at: now)
  }
}
