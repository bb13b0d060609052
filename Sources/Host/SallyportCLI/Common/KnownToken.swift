import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportSupport
import SallyportSystem

extension Store {
  /// The token with the serial number that was typed.
  func known(_ word: String) throws(CommandError) -> Token {
    guard let serial = TokenSerial(word.utf8) else { throw .noToken(word) }
    let found: Token?
    do throws(StoreTrouble) { found = try token(serial) } catch {
      throw .brokenToken(serial, error)
    }
    guard let found else { throw .noToken(word) }
    return found
  }
}

extension CommandError {
  static func noToken(_ word: String) -> CommandError {
    CommandError {
      Message(
        "there is no token \(printable(word.utf8, limit: 64))", .noInput,
        hints: [
          Invocation(verb: $0.verb, store: $0.store).command("token list", remark: "lists them")
        ])
    }
  }

  /// Where its file is broken, who has it cannot be asked; nothing that is enrolled mends that.
  static func brokenToken(_ serial: TokenSerial, _ trouble: StoreTrouble) -> CommandError {
    guard case .malformed = trouble else { return .store(trouble) }
    return CommandError {
      Message(
        "\(trouble.fact): whether somebody has \(serial.text) is not known", .badData,
        hints: [
          Invocation(verb: $0.verb, store: $0.store).command(
            "token forget", shellQuoted(serial.text) + " --unchecked",
            remark: "if nobody can log in with it any more; then import it again")
        ])
    }
  }

  /// There is nobody whose codes could be asked for.
  static func isNobodys(_ token: Token) -> CommandError {
    CommandError {
      let own = Invocation(verb: $0.verb, store: $0.store)
      return Message(
        "nobody has the token \(token.serial.text)", .noInput,
        hints: [
          own.command(
            "token assign", shellQuoted(token.serial.text) + " NAME", remark: "follows its clock")
        ])
    }
  }
}

extension Completions {
  static func tokens(_ words: [String], _ index: Int, _ prefix: String) -> [String] {
    var serials: [String] = []
    try? Store().eachToken { _, read in
      if case .success(let token) = read, token.serial.text.hasPrefix(prefix) {
        serials.append(token.serial.text)
      }
    }
    return safe(serials)
  }
}
