import ArgumentParser
import OneTimePassword
import SallyportCore
import SallyportLogin

/// The options for a new authenticator.
struct AuthenticatorOptions: ParsableArguments {
  @OptionGroup var argument: AuthenticatorArgument

  @Option(help: "Time-based or counter-based codes.")
  var type = TypeOption.totp

  @Option(help: "The hash function of the codes.")
  var algorithm = AlgorithmOption.sha1

  @Option(help: "Number of digits of a code.")
  var digits = Digits.six

  @Option(
    help: ArgumentHelp(
      "Time step of a totp in seconds, 15 to 300. (default: 30)", valueName: "s"))
  var period: UInt32?

  @Option(help: "A phone, or a token, whose clock nobody can set. (default: phone)")
  var device: DeviceOption?

  @Option(
    help: ArgumentHelp(
      "Issuer that the app shows. (default: the host's name)", valueName: "text"))
  var issuer: Label?

  @Option(
    help: ArgumentHelp(
      "Account that the app shows. (default: the user's name)", valueName: "text"))
  var account: Label?

  @Option(
    help: ArgumentHelp(
      "Read the secret, in base32, from a file or standard input (-).", valueName: "file"))
  var secretFrom: String?

  @Flag(help: "That secret is in hexadecimal.")
  var hex = false

  @Option(help: "How to draw the QR code.")
  var qr = QRChoice.auto

  func validate() throws {
    if hex, secretFrom == nil { throw ValidationError("--hex is for --secret-from only") }
    if device == .token, type == .hotp {
      throw ValidationError("--device token is for totp only: a counter has no clock")
    }
    guard let period else { return }
    if type == .hotp { throw ValidationError("--period is for totp only") }
    if !CodeParameters.periods.contains(period) {
      throw ValidationError("--period takes 15 to 300 seconds")
    }
  }

  var isToken: Bool { device == .token }

  /// A name for it that is not among `taken`.
  func freeName(beside taken: [Label]) -> Label {
    isToken
      ? SallyportLogin.freeName(like: Label("token"), beside: taken)
      : SallyportLogin.freeName(for: parameters.type, beside: taken)
  }

  /// The parameters; valid after `validate`.
  var parameters: CodeParameters {
    let kind: AuthenticatorType
    switch type {
    case .totp: kind = .totp(period: period ?? 30)
    case .hotp: kind = .hotp
    }
    return CodeParameters(type: kind, algorithm: algorithm.algorithm, digits: digits) ?? .standard
  }

  /// `confirming`: a code is typed after the secret, so standard input holds more than the secret.
  func source(confirming: Bool) -> SecretSource {
    switch secretFrom {
    case nil: .fresh
    case "-": .standardInput(onlyFirstLine: confirming)
    case .some(let path): .file(path)
    }
  }

  /// The issuer from `--issuer`, or the host name if it is a valid label.
  func issuer(on host: String?) -> Label {
    issuer ?? host.flatMap { Label(Array($0.utf8)) } ?? Label("Linux")
  }
}

/// Whose clock it is.
enum DeviceOption: String, ExpressibleByArgument, CaseIterable {
  case phone, token
}
