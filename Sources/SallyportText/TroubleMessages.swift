import CSystem
import OneTimePassword
import SallyportCore
package import SallyportSystem

extension Message {
  package init(_ trouble: StoreTrouble, at invocation: Invocation) {
    switch trouble {
    case .system(let call, let path, let number):
      self.init(call: call, path, number, at: invocation)
    case .noStore(let path):
      self.init(
        "there is no store \(path)", .noInput,
        hints: [invocation.command("enroll", remark: "makes it")])
    case .unsafe(let path, let flaw): self.init(flaw, path, at: invocation)
    case .incomplete(let path):
      self.init(
        "\(path) is missing, the enrollment is not whole", .badData, hints: invocation.fixing)
    case .malformed(let path, let error):
      self.init("\(path):\(error.line): \(error.problem.text)", .badData, hints: invocation.fixing)
    case .state(let path, let problem):
      self.init("\(path): \(problem.text)", .badData, hints: invocation.fixing)
    case .foreignState(let path):
      self.init("\(path) belongs to another enrollment", .badData, hints: invocation.fixing)
    case .otherUser(let path, let found):
      self.init("\(path) is the enrollment of \(found.text)", .badData, hints: invocation.fixing)
    case .otherUID(let path, let recorded, let found):
      let now = found.map { "the account has uid \($0) now" } ?? "there is no account now"
      self.init("\(path) was made for uid \(recorded), \(now)", .badData, hints: invocation.fixing)
    case .busy(let path):
      self.init("\(path) is locked, by a login or another command", .busy, hints: ["lslocks"])
    case .unsettled(let path):
      self.init("\(path) kept changing", .busy, hints: [invocation.command(invocation.verb)])
    case .exists(let path):
      self.init(
        "\(path) exists already", .exists,
        hints: [invocation.command("enroll", "--force", remark: "replaces everything")])
    case .crypto(let error): self.init(error.text, .inputOutput)
    case .outOfMemory: self.init("memory is short", .busy)
    }
  }

  private init(call: StaticString, _ path: String, _ number: Int32, at invocation: Invocation) {
    let text = "\(path.isEmpty ? "\(call)" : "\(path): \(call)"): \(errnoText(number))"
    // Of the store, since a file that could not be written is gone.
    let quoted = shellQuoted(invocation.store ?? Store.usualRoot)
    switch number {
    case EACCES, EPERM:
      self.init(text, .notPermitted, hints: ["sudo \(invocation.command(invocation.verb))"])
    case ENOSPC, EDQUOT:
      self.init(text, .inputOutput, hints: ["df -h \(quoted)"])
    case EROFS:
      self.init(text, .inputOutput, hints: ["findmnt -T \(quoted)"])
    case _:
      self.init(text, .inputOutput)
    }
  }

  private init(_ flaw: StoreTrouble.Flaw, _ path: String, at invocation: Invocation) {
    let quoted = shellQuoted(path)
    let look = ["ls -ld \(quoted)"]
    switch flaw {
    case .symbolicLink:
      self.init("\(path) is a symbolic link", .configuration, hints: look)
    case .notADirectory: self.init("\(path) is not a directory", .configuration, hints: look)
    case .notRegular: self.init("\(path) is not a regular file", .configuration, hints: look)
    case .owner(let owner, let wanted):
      self.init(
        "\(path) belongs to uid \(owner), it must be \(wanted == 0 ? "root's" : "uid \(wanted)'s")",
        wanted == 0 ? .configuration : .notPermitted,
        hints: wanted == 0
          ? ["chown -h root:root \(quoted)"] : ["sudo \(invocation.command(invocation.verb))"])
    case .mode(let mode):
      let digits = String(mode & 0o7777, radix: 8)
      self.init(
        "\(path) is open to others (mode \(digits))", .configuration, hints: ["chmod go= \(quoted)"]
      )
    case .links(let count):
      self.init(
        "\(path) has \(count) hard links, it must have one", .configuration,
        hints: ["find / -xdev -samefile \(quoted)"])
    case .tooLong: self.init("\(path) is too long", .badData, hints: invocation.fixing)
    }
  }
}

extension Invocation {
  /// What fixes an enrollment that cannot be read.
  fileprivate var fixing: [String] {
    guard user != nil else { return [] }
    return [
      command("enroll", "--force", remark: "replaces it"),
      command("unenroll", "--force", remark: "removes it"),
    ]
  }
}

extension SettingsError.Problem {
  package var text: String {
    switch self {
    case .textTooLong: "the file is longer than 64 KiB"
    case .notASetting: "neither `key = value` nor a section"
    case .unknownSection: "unknown section"
    case .unknownKey: "unknown key"
    case .duplicateKey: "the key stands twice"
    case .missing(let key): "\(key) is missing"
    case .value(let key, let wanted): "\(key): wanted is \(wanted)"
    case .tooMany(let what): "too many of \(what)"
    case .notUnique(let key): "the same \(key) stands twice"
    case .outOfMemory: "memory is short"
    }
  }
}

extension StateRecord.Problem {
  fileprivate var text: String {
    switch self {
    case .size: "the file has not the size of a login state"
    case .bothSlotsBroken: "both copies of the login state are broken"
    case .exhausted: "the sequence number has come to its end"
    case .crypto(let error): error.text
    }
  }
}

extension CryptoError {
  fileprivate var text: String {
    switch self {
    case .unavailable: "libcrypto offers no HMAC or SHA-256 here"
    case .failed: "libcrypto failed to compute"
    case .outOfMemory: "memory is short"
    }
  }
}
