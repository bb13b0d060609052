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
      return try SallyportCLI.content(ofNamed: path)
    } catch {
      if error == .notRegular { throw .secret(.notRegular(path: path)) }
      if error == .tooLong { throw .secret(.tooLong) }
      throw .secret(.cannotRead(path: path, errno: error.number))
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
    throw .secret(.tooLong)
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
      throw .secret(.base32(error))
    }
    guard (Secret.shortestKey...Secret.longestKey).contains(secret.count) else {
      throw .secret(.length(secret.count))
    }
    return secret
  }
}
