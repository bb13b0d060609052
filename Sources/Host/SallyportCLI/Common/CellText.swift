import SallyportDoctor
import SallyportSupport

// The words for what becomes of an account at one way in.

extension Verdict {
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
    case .factorsOff: "enrolled only with factors that the policy turns off"
    case .brokenEnrollment: "the enrollment or the note cannot be read"
    case .afterKey: "after-key, and sshd accepts no key before"
    case .noPrompt: "a code is asked for where nobody can answer"
    case .wrongWord: "a word on the line is misspelt"
    case .moduleMissing: "a module is not there"
    case .noRule: "no rule"
    case .noPassword: "no password"
    case .noKey: "no key that sshd takes"
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

extension Verdict {
  /// The command that changes it for one of the accounts; nil where there is none.
  func fix(for user: String, at services: [String]) -> String? {
    switch self {
    case .asked, .unseen: nil
    case .refused(.notEnrolled), .withoutCode(.enrolls), .withoutCode(.offered),
      .withoutCode(.voluntary), .withoutCode(.nullok):
      sallyportCommand("enroll", on: [user])
    case .refused(.factorsOff): sallyportCommand("add", on: [user], ["--force"])
    case .refused(.brokenEnrollment): sallyportCommand("status", on: [user])
    case .withoutCode(.exempt): sallyportCommand("exempt", on: [user], ["--undo"])
    case .withoutCode(.disabled):
      "sallyport config show --service \(shellQuoted(services.first ?? "sshd"))"
    case .withoutCode(.noLine), .withoutCode(.otherFile):
      sallyportCommand("pam enable", on: [services.first ?? "sudo"])
    case .refused, .withoutCode: nil
    }
  }
}
