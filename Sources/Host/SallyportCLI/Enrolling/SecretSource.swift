import Glibc
import OneTimePassword
import SallyportCore
import SallyportSupport
import SallyportSystem

/// Where the secret of a new authenticator comes from.
enum SecretSource: Equatable {
  case fresh
  case file(String)
  /// The first line if a code follows it, else all of standard input.
  case standardInput(onlyFirstLine: Bool)

  func secret(for algorithm: HashAlgorithm, _ output: Output, or consequence: Consequence)
    throws(CommandError) -> Secret
  {
    switch self {
    case .fresh:
      return try storing { () throws(StoreTrouble) in
        try Random.secret(count: algorithm.secretLength)
      }
    case .file(let path): return try SecretSource.decoded(try SecretSource.content(of: path))
    case .standardInput(let onlyFirstLine):
      return try SecretSource.decoded(try SecretSource.typed(onlyFirstLine, output, consequence))
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

  private static func typed(_ onlyFirstLine: Bool, _ output: Output, _ consequence: Consequence)
    throws(CommandError) -> Secret
  {
    do throws(Interruption) {
      if onlyFirstLine || output.terminal.isInteractive {
        return try output.ask("Secret in base32: ", echo: false)
      }
      if let all = try output.terminal.rest(limit: Limits.file) { return all }
    } catch {
      throw .stopped(error, consequence)
    }
    throw tooLong
  }

  /// Line ends are ignored, as spaces are.
  private static func decoded(_ text: Secret) throws(CommandError) -> Secret {
    for index in 0..<text.count where text[index] == 0x0a || text[index] == 0x0d {
      text.set(index, to: 0x20)
    }
    let secret: Secret
    do throws(Base32.Error) {
      secret = try Base32.decode(text)
    } catch {
      throw wrong("the secret is not base32: \(error.text)")
    }
    guard (Secret.shortestKey...Secret.longestKey).contains(secret.count) else {
      let wanted = "expected \(Secret.shortestKey) to \(Secret.longestKey)"
      throw wrong("the secret is \(counted(secret.count, "byte")) long, \(wanted)")
    }
    return secret
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
