package import OneTimePassword
package import SallyportCore
package import SallyportSystem

extension Draft {
  private static let tries = 5
  /// Answers that are no try are bounded too: a program may give them for ever.
  private static let questions = 20

  /// Asks for the first code, which shows that the app has the secret and the time. Returns what
  /// the code used up and the drift that it showed; nil if no code was correct. An empty line costs
  /// no try, nor does `i`, for which `invert` draws the QR code again. An error of `ask` ends it.
  package func firstCode<Failure: Error>(
    under policy: Policy, now: () throws(StoreTrouble) -> UnixTime,
    ask: (StaticString) throws(Failure) -> Secret, show: (LogLine) throws(Failure) -> Void,
    invert: () throws(Failure) -> Void
  ) throws(Failure) -> Result<AuthenticatorState?, StoreTrouble> {
    var left = Draft.tries
    for _ in 0..<Draft.questions where left > 0 {
      let typed = try ask("Code shown by the app: ")
      if typed.count == 0 { continue }
      if typed.isInversion {
        try invert()
        continue
      }
      left -= 1
      let first: FirstCode
      do throws(StoreTrouble) {
        first = try verify(firstCode: typed, at: try now(), under: policy)
      } catch {
        return .failure(error)
      }
      if case .right(let state) = first { return .success(state) }
      try show(text(of: first, triesLeft: left))
    }
    return .success(nil)
  }

  @inline(never)
  private func text(of first: FirstCode, triesLeft left: Int) -> LogLine {
    let parameters = authenticator.parameters
    var text = LogLine("")
    switch first {
    case .malformed:
      text.add("A code has ", Int(parameters.digits.rawValue))
      text.add(" digits.")
    case .backupCode: text.add("A backup code does not show that the app works.")
    case .clockOff(let seconds): text.add(clockOff: seconds)
    case .right, .wrong:
      text.add("Wrong code.")
      if case .totp = parameters.type { text.add(" Is the phone's clock set automatically?") }
    }
    text.add(" ", left)
    text.add(left == 1 ? " try left." : " tries left.")
    return text
  }
}

extension Secret {
  /// `i`: the QR code does not scan, and is to be drawn with its colours swapped.
  package var isInversion: Bool { count == 1 && self[0] | 0x20 == UInt8(ascii: "i") }
}

extension LogLine {
  /// What to do about a first code that is this many seconds off; below 0 the app is behind.
  fileprivate mutating func add(clockOff seconds: Int64) {
    let off = seconds.magnitude
    add("The phone's clock is ")
    add(off < 100 ? off : off < 6000 ? off / 60 : off / 3600)
    add(off < 100 ? " s " : off < 6000 ? " min " : " h ")
    add(seconds < 0 ? "behind" : "ahead")
    add(". Set it, then type the next code.")
  }
}
