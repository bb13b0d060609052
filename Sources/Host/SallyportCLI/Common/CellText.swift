import PAMStack
import SallyportDoctor
import SallyportSupport

// The words for what becomes of an account at one way in.

/// What is told together.
enum Heading: CaseIterable {
  case asked, withoutCode, onPurpose, refused, unseen

  init(_ verdict: Verdict, isMeant: Bool) {
    switch verdict {
    case .asked: self = .asked
    case .withoutCode: self = isMeant ? .onPurpose : .withoutCode
    case .refused: self = .refused
    case .unseen: self = .unseen
    }
  }

  var text: String {
    switch self {
    case .asked: "asked for a code"
    case .withoutCode: "without a code"
    case .onPurpose: "on purpose"
    case .refused: "refused"
    case .unseen: "not known"
    }
  }

  /// Even if it is true of nobody.
  var isAlwaysTold: Bool {
    switch self {
    case .asked, .withoutCode, .refused: true
    case .onPurpose, .unseen: false
    }
  }
}

extension Verdict {
  var isAsked: Bool { if case .asked = self { true } else { false } }

  /// Why it is so, in a few words; empty where nothing is to be said.
  var words: String {
    switch self {
    case .asked(let asking): asking.words
    case .refused(let barrier): barrier.words
    case .withoutCode(let opening): opening.words
    case .unseen(let gap): gap.words
    }
  }
}

extension Asking {
  fileprivate var words: String {
    switch self {
    case .code: ""
    case .codeOfAnother: "the code of another account"
    case .codeOfFleet: "the fleet verifies it"
    }
  }
}

extension Barrier {
  fileprivate var words: String {
    switch self {
    case .notEnrolled: "not enrolled"
    case .blocked: "blocked"
    case .factorsOff: "enrolled only with factors that the policy turns off"
    case .brokenEnrollment: "the enrollment or the note cannot be read"
    case .afterKey: "after-key, and sshd accepts no key before"
    case .noPrompt: "a code is asked for where nobody can answer"
    case .wrongWord: "a word on the line is misspelt"
    case .moduleMissing: "a module is not there"
    case .noRule: "no rule"
    case .noPassword: "no password"
    case .noKey: "no key that sshd takes"
    case .keyLeftOut: "no password, and sshd does not take its key alone"
    case .noMethod: "a method that cannot succeed here"
    case .rootLogin: "PermitRootLogin"
    case .notAllowed: "sshd does not let this account in"
    case .locked: "the account is locked"
    case .expired: "the account or its password has expired"
    case .noShell: "no shell"
    case .noLogin: "nologin: only root may log in now"
    case .stackShut: "another line of the stack refuses"
    case .noAdministrator: "no administrator"
    }
  }
}

extension Opening {
  fileprivate var words: String {
    switch self {
    case .disabled: "state = disabled"
    case .exempt: "exempt"
    case .nullok: "not enrolled; nullok on the line"
    case .voluntary: "not enrolled; enrollment = voluntary"
    case .offered: "not enrolled; offered, and may be put off"
    case .enrolls: "not enrolled yet: anybody with the password may set up a phone"
    case .noLine: "the service has no line of Sallyport"
    case .otherFile: "the service has no file, and other has no line of Sallyport"
    case .skipped: "the stack goes around the line"
    case .uncounted: "a wrong code does not count"
    case .keyAlone: "a key alone"
    case .hostAlone: "a host key alone"
    case .ticketAlone: "a Kerberos ticket alone"
    case .noPAM: "UsePAM no"
    case .noPasswd: "NOPASSWD"
    case .notAuthenticated: "!authenticate"
    case .exemptGroup: "exempt_group"
    case .nopass: "nopass"
    case .polkitYes: "a rule of polkit says yes"
    }
  }
}

extension AccessGap {
  fileprivate var words: String {
    switch self {
    case .notRoot: "only root may read it"
    case .fleetSilent: "the fleet did not answer"
    case .fleetKeeps: "this host may not know who is enrolled in the fleet"
    case .sshdSilent: "sshd does not tell its settings"
    case .sudoSilent: "the rules cannot be read"
    case .keysElsewhere: "whether there is a key is not known"
    case .polkitRules: "rules of polkit in JavaScript"
    case .moduleDecides: "another module decides"
    case .tooComplex: "too many ways through the stack"
    case .tooMany: "too many kinds of accounts"
    case .slowFiles: "a home does not answer"
    case .otherStore: "the line names another store"
    }
  }
}

// MARK: - what changes it

/// What changes what becomes of an account at a way in.
enum Remedy: Equatable {
  case command(String)
  /// A file, or a line of one.
  case edit(String)
  /// What to think of: no single command does it. A sentence in parts; a command in it is one part.
  case see([String])

  var line: String {
    switch self {
    case .command(let command): "# \(command)"
    case .edit(let place): "edit: \(place)"
    case .see(let parts): "see: \(parts.joined(separator: " "))"
    }
  }

  /// In a sentence.
  fileprivate var step: String {
    switch self {
    case .command(let text): text
    case .see(let parts): parts.joined(separator: " ")
    case .edit(let place): "edit \(place)"
    }
  }
}

extension Remedy {
  /// nil where there is none. `users`: whose password and code are asked for; a command is about
  /// the first of them. `service`: PAM's name. `adoption`: the command that stands in place of
  /// enrolling if the person was renamed.
  init?(
    _ verdict: Verdict, of users: [String], at service: String, _ location: FileLocation?,
    isEnrolled: Bool, adoption: @autoclosure () -> String? = nil
  ) {
    guard let user = users.first else { return nil }
    let known: Remedy?
    switch verdict {
    case .asked, .unseen: return nil
    case .refused(let barrier): known = Remedy.against(barrier, user, service)
    case .withoutCode(let opening): known = Remedy.against(opening, user, service, at: location)
    }
    guard var found = known ?? location.map({ .edit($0.text) }) else { return nil }
    if !isEnrolled, verdict == .withoutCode(.keyAlone), location?.file == SSHStage.path {
      // The block of robots, who have no phone.
      let words = users.map { Purpose.word($0, service) }.joined(separator: ", ")
      found = .see(["to allow it:", "without_code = \(words)"])
    } else if !isEnrolled, known != nil, verdict.needsEnrollmentFirst {
      let first =
        adoption().map { [Remedy.samePerson, $0 + ","] }
        ?? ["for a person:", sallyportCommand("enroll", on: [user]) + ","]
      found = .see(first + ["then", found.step])
    } else if found == .command(sallyportCommand("enroll", on: [user])), let adoption = adoption() {
      found = .see([Remedy.samePerson, adoption])
    }
    self = found
  }

  private static let samePerson = "if it is the same person:"

  /// nil where the line that decides has to be edited.
  private static func against(_ barrier: Barrier, _ user: String, _ service: String) -> Remedy? {
    switch barrier {
    case .notEnrolled: .command(sallyportCommand("enroll", on: [user]))
    case .blocked: .command(sallyportCommand("block", on: [user], ["--undo"]))
    case .factorsOff: .command(sallyportCommand("add", on: [user], ["--force"]))
    case .brokenEnrollment: .command(sallyportCommand("status", on: [user]))
    case .noRule: service == "doas" ? .edit("/etc/doas.conf") : .command("visudo")
    case .noPassword, .locked: .command("passwd \(shellQuoted(user))")
    case .noKey: .edit("~\(user)/.ssh/authorized_keys")
    case .expired: .command("chage \(shellQuoted(user))")
    case .noShell: .command("chsh \(shellQuoted(user))")
    case .noLogin: .command("rm -f /etc/nologin /run/nologin")
    case .noAdministrator: .edit("/etc/polkit-1/rules.d")
    case .keyLeftOut, .afterKey, .noPrompt, .wrongWord, .moduleMissing, .noMethod, .rootLogin,
      .notAllowed, .stackShut:
      nil
    }
  }

  /// As above.
  private static func against(
    _ opening: Opening, _ user: String, _ service: String, at location: FileLocation?
  ) -> Remedy? {
    switch opening {
    case .disabled: .command("sallyport config edit")
    case .exempt: .command(sallyportCommand("exempt", on: [user], ["--undo"]))
    case .nullok, .voluntary, .offered, .enrolls: .command(sallyportCommand("enroll", on: [user]))
    case .noLine, .otherFile: .command(sallyportCommand("pam enable", on: [service]))
    case .keyAlone where location == nil:
      // Who has no password would be locked out by the default method.
      .command("sallyport pam enable sshd --sshd match")
    case .keyAlone, .hostAlone, .ticketAlone, .noPAM:
      location.map { $0.file == SSHStage.path } ?? true
        ? .command("sallyport pam enable sshd") : nil
    case .noPasswd, .notAuthenticated, .exemptGroup:
      location.map { .command("visudo -f \(shellQuoted($0.file))") }
    case .skipped, .uncounted, .nopass, .polkitYes: nil
    }
  }
}

extension Verdict {
  /// Whether what changes it shuts out somebody who is not enrolled, or lets in without a code. A
  /// robot is not enrolled: the next change would ask it for a code.
  fileprivate var needsEnrollmentFirst: Bool {
    switch self {
    case .refused(let barrier):
      [.noPassword, .noKey, .locked, .expired, .noShell].contains(barrier)
    case .withoutCode(let opening): [.keyAlone, .hostAlone, .ticketAlone, .noPAM].contains(opening)
    case .asked, .unseen: false
    }
  }
}

extension Severity {
  /// For a terminal that can show it.
  var sign: String {
    switch self {
    case .ok: "✓"
    case .unseen: "?"
    case .warning: "!"
    case .error: "✗"
    }
  }
}
