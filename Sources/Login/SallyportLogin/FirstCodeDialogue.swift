package import OneTimePassword
package import SallyportCore
package import SallyportSystem

extension Draft {
  private static let tries = 5
  /// Answers that are no try are bounded too: a program may give them for ever.
  private static let questions = 20

  /// Asks for the first code, which shows that the app has the secret and the time. Returns what
  /// the code used up and the drift that it showed; nil if no code was correct. An empty line costs
  /// no try, nor do `i` and `a`, for which `draw` draws the QR code again. An error of `ask` ends
  /// it.
  package func firstCode<Failure: Error>(
    under policy: Policy, in sentences: Sentences, now: () throws(StoreTrouble) -> UnixTime,
    ask: ([UInt8]) throws(Failure) -> Secret, show: (LogLine) throws(Failure) -> Void,
    draw: (QRLook) throws(Failure) -> Void
  ) throws(Failure) -> Result<AuthenticatorState?, StoreTrouble> {
    var (left, look) = (Draft.tries, QRLook())
    for _ in 0..<Draft.questions where left > 0 {
      let typed = try ask(sentences.prompt(.codeOfApp))
      if typed.count == 0 { continue }
      if look.change(by: typed) {
        try draw(look)
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
      try show(text(of: first, triesLeft: left, sentences))
    }
    return .success(nil)
  }

  @inline(never)
  private func text(of first: FirstCode, triesLeft left: Int, _ sentences: Sentences) -> LogLine {
    let parameters = authenticator.parameters
    var text = LogLine("")
    switch first {
    case .malformed:
      text.add(sentences.text(.digitsOfCode, decimalText(UInt64(parameters.digits.rawValue))))
    case .backupCode: text.add(sentences.text(.backupCodeShowsNothing))
    case .clockOff(let seconds):
      let time = sentences.duration(seconds.magnitude)
      text.add(sentences.text(seconds < 0 ? .clockBehind : .clockAhead, time))
    case .right, .wrong:
      text.add(sentences.text(.wrongCode))
      if case .totp = parameters.type {
        text.add(" ")
        text.add(sentences.text(.isClockRight))
      }
    }
    text.add(" ")
    text.add(sentences.counted(UInt64(left), .tryLeft, .triesLeft))
    return text
  }
}

extension Sentences {
  /// How many there are, which has a sentence of its own for one.
  @inline(never)
  package func counted(_ count: UInt64, _ one: Sentence, _ more: Sentence) -> [UInt8] {
    text(count == 1 ? one : more, decimalText(count))
  }

  /// About this long, in seconds.
  fileprivate func duration(_ seconds: UInt64) -> [UInt8] {
    if seconds < 100 { return text(.seconds, decimalText(seconds)) }
    if seconds < 6000 { return text(.minutes, decimalText(seconds / 60)) }
    return text(.hours, decimalText(seconds / 3600))
  }

  /// Until the next try, rounded up.
  package func wait(_ seconds: UInt64) -> [UInt8] {
    if seconds <= 5400 { return text(.minutes, decimalText((seconds + 59) / 60)) }
    return text(.hours, decimalText((seconds + 3599) / 3600))
  }
}
