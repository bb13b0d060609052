import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

extension AuthenticatorOptions {
  /// The authenticator that the options describe, with a secret that is read or generated.
  ///
  /// `earlier`: when the user's last one was made, which an app may still show beside it; nil if
  /// there is none.
  func draft(
    named name: Label, for account: Account, after earlier: UnixTime?, confirming: Bool,
    _ output: Output, _ context: Context, or consequence: Consequence
  ) throws(CommandError) -> Draft {
    let secret = try source(confirming: confirming)
      .secret(for: parameters.algorithm, in: hex ? .hexadecimal : .base32, output, or: consequence)
    return try storing { () throws(StoreTrouble) in
      let now = try context.now()
      return try Draft(
        for: account.name, named: name, parameters, secret: secret,
        issuer: issuer(on: context.hostName),
        account: self.account
          ?? earlier.flatMap { AuthenticatorOptions.label(account.name, at: now, after: $0) },
        at: now, clockOffset: isToken ? 0 : nil)
    }
  }

  /// `alice 2026-11-22`, so that an app shows the new entry apart from the old one; with the time
  /// if that was made on the same day. nil if it is no label.
  private static func label(_ user: UserName, at now: UnixTime, after earlier: UnixTime) -> Label? {
    guard let today = CalendarDate(now) else { return nil }
    let isSameDay = CalendarDate(earlier)?.isoDay == today.isoDay
    let mark = Array(" \(isSameDay ? today.labelText : today.isoDay)".utf8)
    return Label(user.bytes.prefix(Label.maximumLength - mark.count) + mark)
  }
}

/// A random identifier, never 0.
func freshIdentifier() throws(CommandError) -> UInt64 {
  try storing { () throws(StoreTrouble) in try Random.identifier() }
}

// MARK: output

extension Draft {
  func matrix() -> QRMatrix {
    inMemory(QREncoder.encode(inMemory(uri.text(omittingDefaults: true))))
  }

  /// Prints `heading`, the URI, the key and the QR code.
  func show(
    _ heading: String, qr: QRChoice, _ output: Output, _ context: Context,
    in words: Sentences = .session(nil)
  ) {
    output.say("\(heading)\n")
    output.say(plainText(inMemory(uri.text())))
    let key = inMemory(Base32.encode(authenticator.secret))
    for line in grouped(key, after: words.words(.keyToType)) {
      output.say(line)
    }
    output.say("")
    let screen = context.terminal.screen(of: output.stream)
    switch QRDrawing(qr, on: screen, hasColours: !context.isPlain, matrix: matrix) {
    case .nothing: break
    case .noTerminal:
      output.say(words.words(.noTerminal))
    case .code(let text):
      output.say("\(words.words(.scanThis))\n")
      output.write(text)
    case .tooSmall(let columns, let lines):
      output.say(words.words(.noRoom, "\(columns)", "\(lines)"))
    }
  }

  /// The QR code as it was asked for: on a terminal alone.
  func draw(_ look: QRLook, _ output: Output) {
    guard output.terminal.screen(of: output.stream) != nil else { return }
    let style: QRStyle =
      look.isASCII
      ? look.hasDarkInk ? .invertedASCII : .ascii : look.hasDarkInk ? .inverted : .halfBlocks
    let text = inMemory(matrix().text(style: style, quietZone: QRMatrix.usualQuietZone))
    output.write(text.bytes(in: 0..<text.count))
  }

  /// `"phone" (TOTP, 6 digits, every 30 s; its clock is one step behind)`
  func text(_ first: AuthenticatorState?) -> String {
    let off = first.flatMap { $0.clock?.text ?? driftText($0.drift) }
    let clock = off.map { "; its clock is \($0)" } ?? ""
    let kind = description(of: authenticator.parameters, every: "every ")
    return "\"\(authenticator.name.text)\" (\(kind)\(clock))"
  }

  /// The JSON members that enroll and add have in common.
  func facts(_ first: AuthenticatorState?) -> DraftFacts {
    DraftFacts(
      user: user.text,
      authenticator: AuthenticatorFacts(
        authenticator.parameters, name: authenticator.name, after: first?.lastAccepted),
      secret: plainText(inMemory(Base32.encode(authenticator.secret))),
      uri: plainText(inMemory(uri.text())))
  }
}

struct DraftFacts: Encodable {
  let user: String
  let authenticator: AuthenticatorFacts
  /// In base32.
  let secret: String
  let uri: String
}
