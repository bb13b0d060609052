import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportImport

extension Fuzzer {
  /// A vendor's list of tokens: what is taken is within every range, no serial number twice; what
  /// is not has its line.
  // shows: token-list
  static let tokenList = Fuzzer(name: "token-list") { input in
    let all = secret(input)
    for form in [nil, SecretForm.base32, .hexadecimal] {
      do throws(TokenListError) {
        let list = try TokenList(all, in: form, nil, standard: .standard)
        var serials: Set<TokenSerial> = []
        must(!list.tokens.isEmpty, "no token")
        for token in list.tokens {
          must(serials.insert(token.serial).inserted, "a serial number twice")
          must((10...128).contains(token.secret.count), "a secret of \(token.secret.count) bytes")
          must((1...200).contains(token.serial.fileName.count), "the name of its file")
          must(isLine(token.line, of: input), "line \(token.line)")
        }
      } catch {
        guard case .problems(let problems) = error else { continue }
        must(!problems.isEmpty, "no problem")
        for one in problems {
          must(isLine(one.line, of: input) && one.text != "out of memory", "\(one)")
          must((1...input.count + 1).contains(one.column ?? 1), "column \(one.column ?? 0)")
        }
      }
    }
  }

  /// A file of the inventory of tokens: what reads keeps its rules and writes to a text that reads
  /// to the same, what does not has its line.
  // shows: token-list
  static let token = Fuzzer(name: "token") { input in
    let read: Token
    do throws(SettingsError) {
      read = try Token.read(secret(input))
    } catch {
      must(isPlaced(error, in: input), "no line of the text: \(error)")
      return
    }
    must(TokenSerial(read.serial.bytes) == read.serial, "the serial number")
    let text = unwrapped(read.written(), "does not write")
    let again = succeeds("does not read what it wrote") { () throws(SettingsError) in
      try Token.read(text)
    }
    must(
      again.serial == read.serial && again.holder == read.holder && again.isSame(as: read)
        && again.authenticator.id == read.authenticator.id
        && again.authenticator.initialLastAccepted == read.authenticator.initialLastAccepted
        && again.authenticator.clockOffset == read.authenticator.clockOffset,
      "reads another token than it wrote")
    must((try? Enrollment.read(text)) == nil, "is an enrollment too")
    let now = UnixTime(1_772_530_000)
    let distrusted = read.distrusted(at: now)
    must(
      (distrusted.authenticator.initialLastAccepted ?? 0)
        >= (read.authenticator.initialLastAccepted ?? 0) || read.needsCode
        || read.authenticator.parameters.type == .hotp, "gives steps back")
  }

  /// A key container, plain and by a key: what is taken is within every range, no serial number
  /// twice; what is not has its line.
  // shows: key-container
  static let keyContainer = Fuzzer(name: "key-container") { input in
    let key = secret([UInt8](repeating: 0x12, count: 16))
    for by in [nil, ContainerSecret.key(key), .passphrase(key)] {
      do throws(KeyContainer.Error) {
        let container = try KeyContainer(secret(input), by: by, period: 30)
        var serials: Set<TokenSerial> = []
        for token in container.tokens {
          must(serials.insert(token.serial).inserted, "a serial number twice")
          must((10...128).contains(token.secret.count), "a secret of \(token.secret.count) bytes")
          must(token.clockOffset.magnitude <= 200 * 300, "an offset of \(token.clockOffset)")
          must(isLine(token.line, of: input), "line \(token.line)")
        }
      } catch {
        switch error {
        case .notXML(let line): must(isLine(line, of: input), "line \(line)")
        case .problems(let problems):
          must(!problems.isEmpty && problems.allSatisfy { isLine($0.line, of: input) }, "a line")
        case .notContainer, .empty, .keyWanted, .otherKeyWanted, .wrongKey, .unsupported: break
        }
      }
    }
  }
}
