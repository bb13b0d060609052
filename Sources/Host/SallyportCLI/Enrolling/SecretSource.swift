import Glibc
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportSupport
import SallyportSystem

/// Where the secret of a new authenticator comes from.
enum SecretSource: Equatable {
  case fresh
  case file(String)
  /// The first line if a code follows it, else all of standard input.
  case standardInput(onlyFirstLine: Bool)

  func secret(
    for algorithm: HashAlgorithm, in form: SecretForm, _ output: Output, or consequence: Consequence
  ) throws(CommandError) -> Secret {
    switch self {
    case .fresh:
      return try storing { () throws(StoreTrouble) in
        try Random.secret(count: algorithm.secretLength)
      }
    case .file(let path): return try SecretSource.decoded(SecretSource.content(of: path), form)
    case .standardInput(let onlyFirstLine):
      let prompt = "Secret in \(form.name): "
      let text = try SecretSource.typed(onlyFirstLine, by: prompt, output, consequence)
      return try SecretSource.decoded(text, form)
    }
  }

  private static func content(of path: String) throws(CommandError) -> Secret {
    do throws(SystemError) {
      return try OpenFile.regular(path, following: false).secret(atMost: Limits.file)
    } catch {
      if error == .tooLong { throw tooLong }
      throw .secretFile(path, errno: error.number)
    }
  }

  private static func typed(
    _ onlyFirstLine: Bool, by prompt: String, _ output: Output, _ consequence: Consequence
  ) throws(CommandError) -> Secret {
    do throws(Interruption) {
      if onlyFirstLine || output.terminal.isInteractive {
        return try output.ask(prompt, echo: false)
      }
      if let all = try output.terminal.rest(limit: Limits.file) { return all }
    } catch {
      throw .stopped(error, consequence)
    }
    throw tooLong
  }

  /// Line ends are ignored, as spaces are.
  private static func decoded(_ text: Secret, _ form: SecretForm) throws(CommandError) -> Secret {
    for index in 0..<text.count where text[index] == 0x0a || text[index] == 0x0d {
      text.set(index, to: 0x20)
    }
    let secret =
      switch form {
      case .base32: try base32(text)
      case .hexadecimal: try hexadecimal(text)
      }
    guard (Secret.shortestKey...Secret.longestKey).contains(secret.count) else {
      let wanted = "expected \(Secret.shortestKey) to \(Secret.longestKey)"
      throw wrong("the secret is \(counted(secret.count, "byte")) long, \(wanted)")
    }
    return secret
  }

  private static func base32(_ text: Secret) throws(CommandError) -> Secret {
    do throws(Base32.Error) {
      return try Base32.decodeAsApps(text)
    } catch {
      let isHex = ((try? Hexadecimal.decode(text))?.count ?? 0) >= Secret.shortestKey
      throw isHex ? isHexadecimal : wrong("the secret is not base32: \(error.text)")
    }
  }

  private static func hexadecimal(_ text: Secret) throws(CommandError) -> Secret {
    do throws(Hexadecimal.Error) {
      return try Hexadecimal.decode(text)
    } catch {
      throw wrong("the secret is not hexadecimal: \(error.text)")
    }
  }

  private static let isHexadecimal = CommandError {
    Message(
      "the secret is not base32: it looks like hexadecimal", .badData,
      hints: [$0.again("--hex", remark: "reads it so")])
  }

  private static let tooLong = wrong("the secret is longer than \(Limits.file / 1024) KiB")

  private static func wrong(_ text: String) -> CommandError {
    CommandError {
      Message(text, .badData, hints: [$0.command($0.verb, remark: "makes a fresh secret")])
    }
  }
}

extension CommandError {
  /// A file with a secret cannot be read.
  static func secretFile(_ path: String, errno number: Int32) -> CommandError {
    let fault =
      switch number {
      case SystemError.notRegular.number: "is not a regular file"
      case ELOOP: "is a symbolic link"
      case _: errnoText(number)
      }
    let isKind = [SystemError.notRegular.number, ELOOP].contains(number)
    return CommandError(
      isKind ? .badData : Sysexit(errno: number), "\(shownPath(path)): \(fault)",
      hints: lookingAt(path))
  }
}

extension SecretForm {
  fileprivate var name: String {
    switch self {
    case .base32: "base32"
    case .hexadecimal: "hexadecimal"
    }
  }
}

extension Hexadecimal.Error {
  /// Positions count from 1.
  fileprivate var text: String {
    switch self {
    case .character(let offset): "character \(offset + 1) is not a digit or one of a to f"
    case .oddCount: "a digit is missing"
    case .outOfMemory: "out of memory"
    }
  }
}

extension Base32.Error {
  /// Positions count from 1.
  fileprivate var text: String {
    switch kind {
    case .character: "character \(offset + 1) is not a letter or one of 2 to 7"
    case .padding: "the padding at character \(offset + 1) is wrong"
    case .length: "characters are missing"
    case .trailingBits: "the last character has bits that must be zero"
    case .outOfMemory: "out of memory"
    }
  }
}
