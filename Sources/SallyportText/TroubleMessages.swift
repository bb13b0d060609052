import Glibc
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
        "\(path): no such store", .noInput,
        hints: [invocation.command("enroll", remark: "makes one")])
    case .unsafe(let path, let flaw): self.init(flaw, path, at: invocation)
    case .incomplete(let path):
      self.init(
        "\(path): missing, the enrollment is incomplete", .badData, hints: invocation.fixing)
    case .malformed(let path, let error):
      self.init("\(path):\(error.line): \(error.problem.text)", .badData, hints: invocation.fixing)
    case .state(let path, let problem):
      self.init("\(path): \(problem.text)", .badData, hints: invocation.fixing)
    case .foreignState(let path):
      self.init("\(path): belongs to another enrollment", .badData, hints: invocation.fixing)
    case .otherUser(let path, let found):
      self.init("\(path): is the enrollment of \(found.text)", .badData, hints: invocation.fixing)
    case .otherUID(let path, let recorded, let found):
      let now = found.map { "the account has uid \($0)" } ?? "the account does not exist"
      self.init(
        "\(path): is the enrollment of uid \(recorded), \(now)", .badData, hints: invocation.fixing)
    case .busy(let path):
      self.init("\(path): timed out waiting for the lock", .busy, hints: ["lslocks"])
    case .unsettled(let path):
      self.init(
        "\(path): the enrollment kept changing", .busy,
        hints: [invocation.command(invocation.verb)])
    case .exists(let path):
      self.init(
        "\(path): already exists", .exists,
        hints: [invocation.command("enroll", "--force", remark: "replaces everything")])
    case .crypto(let error): self.init("libcrypto: \(error.text)", .inputOutput)
    case .outOfMemory: self.init("out of memory", .busy)
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
      self.init("\(path): is a symbolic link", .configuration, hints: look)
    case .notADirectory: self.init("\(path): is not a directory", .configuration, hints: look)
    case .notRegular: self.init("\(path): is not a regular file", .configuration, hints: look)
    case .owner(let owner, let wanted):
      self.init(
        "\(path): owned by uid \(owner), must be uid \(wanted)",
        wanted == 0 ? .configuration : .notPermitted,
        hints: wanted == 0
          ? ["chown -h root:root \(quoted)"] : ["sudo \(invocation.command(invocation.verb))"])
    case .mode(let mode):
      let digits = String(mode & 0o7777 | 0o10000, radix: 8).dropFirst()
      self.init(
        "\(path): mode \(digits) is too open", .configuration, hints: ["chmod go= \(quoted)"])
    case .links(let count):
      self.init(
        "\(path): has \(count) hard links, must have one", .configuration,
        hints: ["find / -xdev -samefile \(quoted)"])
    case .tooLong: self.init("\(path): longer than 64 KiB", .badData, hints: invocation.fixing)
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
    case .textTooLong: "longer than 64 KiB"
    case .notASetting: "not a setting, section or comment"
    case .unknownSection: "unknown section"
    case .unknownKey: "unknown key"
    case .duplicateKey: "duplicate key"
    case .missing(let key): "\(key) is missing"
    case .value(let key, let wanted): "\(key): expected \(wanted)"
    case .tooMany(let what): "too many: \(what)"
    case .notUnique(let key): "duplicate \(key)"
    case .outOfMemory: "out of memory"
    }
  }
}

extension StateRecord.Problem {
  fileprivate var text: String {
    switch self {
    case .size: "wrong size"
    case .bothSlotsBroken: "both records of the state are corrupt"
    case .exhausted: "sequence number exhausted"
    case .crypto(let error): "libcrypto: \(error.text)"
    }
  }
}

extension CryptoError {
  fileprivate var text: String {
    switch self {
    case .unavailable: "HMAC or SHA-256 is not available"
    case .failed: "HMAC or SHA-256 failed"
    case .outOfMemory: "out of memory"
    }
  }
}
