import OneTimePassword
import SallyportCore
import SallyportSystem

/// An authenticator that is not stored yet.
struct Draft {
  let account: Account
  let parameters: CodeParameters
  let secret: Secret
  let name: Label
  let issuer: Label
  /// The account's name in the authenticator app.
  let label: Label
  let created: UnixTime
  let id: UInt64

  /// As an authenticator app takes it; an HOTP starts at counter 0.
  var uri: OtpauthURI {
    OtpauthURI(issuer: issuer.bytes, account: label.bytes, secret: secret, parameters: parameters)
  }

  /// What is stored. `lastAccepted`: the step or counter of the confirming code.
  func authenticator(lastAccepted: UInt64?) -> Authenticator {
    Authenticator(
      id: id, name: name, parameters: parameters, secret: secret,
      initialLastAccepted: lastAccepted, created: created)
  }
}

extension AuthenticatorOptions {
  /// The authenticator that was asked for; its secret is read, or made.
  func draft(
    named name: Label, for account: Account, confirming: Bool, _ voice: Output, _ context: Context,
    or consequence: Consequence
  ) throws(CommandError) -> Draft {
    let parameters = parameters
    return Draft(
      account: account, parameters: parameters,
      secret: try source(confirming: confirming)
        .secret(for: parameters.algorithm, voice, or: consequence),
      name: name, issuer: issuer(on: context.hostName), label: self.account(of: account.name),
      created: try context.time(), id: try freshIdentifier())
  }
}

/// A random id, never 0.
func freshIdentifier() throws(CommandError) -> UInt64 {
  try storing { () throws(StoreTrouble) in try Random.identifier() }
}

// MARK: what people and programs see

extension Draft {
  func matrix() -> QRMatrix {
    inMemory(QREncoder.encode(inMemory(uri.text(omittingDefaults: true))))
  }

  /// URI, key and QR code, below `heading`.
  func show(_ heading: String, _ qr: QRChoice, _ voice: Output, _ context: Context) {
    voice.say("\(heading)\n")
    voice.say(plainText(inMemory(uri.text())))
    for line in grouped(inMemory(Base32.encode(secret)), after: "Key to type by hand:") {
      voice.say(line)
    }
    voice.say("")
    let screen = context.terminal.screen(of: voice.stream)
    switch QRDrawing(qr, on: screen, matrix: matrix) {
    case .nothing: break
    case .code(let text):
      voice.say("Scan this with an authenticator app:\n")
      voice.write(text)
    case .tooSmall(let columns, let lines):
      voice.say("No QR code: it needs \(columns) columns and \(lines) lines. Type the key, or")
      voice.say("start again in a larger window.")
    }
  }

  /// `"phone" (TOTP, 6 digits, every 30 s; its clock is one step behind)`
  func text(_ confirmation: Confirmation?) -> String {
    let clock = confirmation.flatMap { driftText($0.drift) }.map { "; its clock is \($0)" } ?? ""
    return "\"\(name.text)\" (\(description(of: parameters, every: "every "))\(clock))"
  }

  /// The members of the object that both enrolling and adding print.
  func json(_ confirmation: Confirmation?) -> [(String, JSON)] {
    let next = confirmation.map { $0.lastAccepted &+ 1 } ?? 0
    return [
      ("user", .text(account.name.text)),
      ("authenticator", .object(facts(of: parameters, name: name, counter: next))),
      ("secret", .text(plainText(inMemory(Base32.encode(secret))))),
      ("uri", .text(plainText(inMemory(uri.text())))),
    ]
  }
}
