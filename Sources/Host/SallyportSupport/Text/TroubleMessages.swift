import Glibc
import OneTimePassword
package import SallyportCore
import SallyportLogin
package import SallyportSystem

extension Message {
  /// The fact as the log has it, and what to do next.
  package init(_ trouble: StoreTrouble, at invocation: Invocation) {
    var line = LogLine("")
    line.add(trouble)
    let text = String(decoding: line.bytes, as: UTF8.self)
    switch trouble {
    case .system(let call, let name, let number) where ["getpwnam", "getpwuid"].contains("\(call)"):
      self.init(unseen: name, number, at: invocation)
    case .system(_, _, let number): self.init(text, number, at: invocation)
    case .noStore:
      self.init(text, .noInput, hints: [invocation.command("enroll", remark: "makes one")])
    case .unsafe(let path, let flaw): self.init(text, flaw, path, at: invocation)
    // Not how to remove it: a directory that is away may say that nobody is there.
    case .otherUID(_, _, nil): self.init(text, .badData, hints: [invocation.lookup])
    case .otherUID:
      let adopt = invocation.command("adopt", remark: "if it is the same person")
      let hints = invocation.fixing
      self.init(text, .badData, hints: hints.isEmpty ? [] : [adopt] + hints)
    case .state(_, .crypto), .crypto: self.init(text, .inputOutput)
    case .incomplete, .malformed, .state, .foreignState:
      self.init(text, .badData, hints: invocation.fixing)
    case .otherUser(_, let found):
      self.init(text, .badData, hints: invocation.ending(found) + invocation.fixing)
    case .busy: self.init(text, .busy, hints: ["lslocks"])
    case .unsettled: self.init(text, .busy, hints: [invocation.again()])
    case .exists:
      let command = invocation.command("enroll", "--force", remark: "replaces everything")
      self.init(text, .exists, hints: [command])
    case .service(let path, let fault): self.init(text, fault, path)
    case .outOfMemory: self.init(text, .busy)
    }
  }

  /// A source of accounts does not answer. `name`: whose was asked for; empty if by the uid.
  private init(unseen name: String, _ number: Int32, at invocation: Invocation) {
    let what = name.isEmpty ? "whose a uid is" : "whether there is an account \(name)"
    self.init(
      "it is not known \(what): a source in nsswitch.conf does not answer (\(errnoText(number)))",
      .inputOutput,
      hints: name.isEmpty
        ? [] : [SallyportSupport.lookup(of: invocation.user ?? name, in: "passwd")])
  }

  private init(_ text: String, _ number: Int32, at invocation: Invocation) {
    // Of the store, since a file that could not be written is gone.
    let quoted = shellQuoted(invocation.store ?? Store.usualRoot)
    switch number {
    case EACCES, EPERM:
      self.init(text, .notPermitted, hints: ["sudo \(invocation.again())"])
    case ENOSPC, EDQUOT: self.init(text, .inputOutput, hints: ["df -h \(quoted)"])
    case EROFS: self.init(text, .inputOutput, hints: ["findmnt -T \(quoted)"])
    case _: self.init(text, .inputOutput)
    }
  }

  private init(
    _ text: String, _ flaw: StoreTrouble.Flaw, _ path: String, at invocation: Invocation
  ) {
    let quoted = shellQuoted(path)
    switch flaw {
    case .symbolicLink, .notADirectory, .notRegular:
      self.init(text, .configuration, hints: ["ls -ld \(quoted)"])
    case .owner(_, wanted: 0):
      self.init(text, .configuration, hints: ["chown -h root:root \(quoted)"])
    case .owner:
      self.init(text, .notPermitted, hints: ["sudo \(invocation.again())"])
    case .mode: self.init(text, .configuration, hints: ["chmod go= \(quoted)"])
    case .links: self.init(text, .configuration, hints: ["find / -xdev -samefile \(quoted)"])
    case .tooLong: self.init(text, .badData, hints: invocation.fixing)
    }
  }
}

extension Message {
  fileprivate init(_ text: String, _ fault: StoreTrouble.ServiceFault, _ path: String) {
    let status = "systemctl status sallyport.service"
    switch fault {
    case .notASocket, .notRoot:
      self.init(text, .configuration, hints: ["ls -l \(shellQuoted(path))"])
    case .absent:
      self.init(text, .noInput, hints: ["systemctl enable --now sallyport.socket"])
    case .notServed: self.init(text, .notPermitted)
    case .busy, .silent, .unknown, .trouble: self.init(text, .busy, hints: [status])
    case .garbage: self.init(text, .inputOutput, hints: [status])
    }
  }
}

extension Invocation {
  /// Of somebody who is not found: deleted, or a source of accounts is away.
  package var lookup: String { SallyportSupport.lookup(of: user ?? "NAME", in: "passwd") }

  /// What ends an `adopt` by this user that was cut short.
  fileprivate func ending(_ found: UserName) -> [String] {
    guard let former = user else { return [] }
    var other = self
    other.user = found.typedOrShown
    let option = former.hasPrefix("-") ? "--from=" : "--from "
    return [other.command("adopt", option + shellQuoted(former), remark: "if that was cut short")]
  }

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
  /// As the log has it.
  package var text: String {
    var line = LogLine("")
    line.add(self)
    return String(decoding: line.bytes, as: UTF8.self)
  }
}

extension StoreTrouble {
  /// Whether the user's stored files are at fault, so that replacing or removing them fixes it.
  package var isBrokenEnrollment: Bool {
    switch self {
    case .incomplete, .malformed, .state, .foreignState, .otherUser, .otherUID: true
    case .system, .noStore, .unsafe, .busy, .unsettled, .exists, .service, .crypto, .outOfMemory:
      false
    }
  }
}
