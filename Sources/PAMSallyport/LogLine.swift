internal import CLinuxPAM
package import SallyportCore
import SallyportSystem

/// The sentences of the log, one line each. Never a code, a secret or a backup code; what users
/// control is escaped and cut.
package enum LogLine {
  package static func unknownWord(_ word: [UInt8]) -> String {
    "unknown argument \"" + printable(word) + "\": the strict policy holds (one adjacent interval, "
      + "the unenrolled refused)"
  }

  package static func hostFailed(_ failure: HostFailure) -> String {
    switch failure {
    case .conversation: "the application could not ask for a code (conversation failed)"
    case .memory: "out of memory in libpam"
    }
  }

  package static func outcome(
    _ outcome: Outcome, user: [UInt8], from host: [UInt8]?, _ origin: Origin
  ) -> String {
    let who = " user=" + logField(user)
    let whence = " origin=" + text(of: origin, host)
    switch outcome {
    case .accepted(.authenticator(let name, let drift)):
      let clock = drift == 0 ? "" : " drift=\(drift)"
      return "code accepted:" + who + " authenticator=\"" + name.text + "\"" + clock + whence
    case .accepted(.backupCode(let left)):
      return "backup code accepted:" + who + " left=\(left)" + whence
    case .refused(let reason):
      return "refused: reason=" + text(of: reason) + who + whence + detail(of: reason)
    }
  }

  private static func text(of origin: Origin, _ host: [UInt8]?) -> String {
    switch origin {
    case .address: logField(host ?? [])
    case .local(let own): own ? "local" : "local(another user)"
    case .unknown: host.map { "unknown(" + logField($0) + ")" } ?? "unknown"
    }
  }

  private static func text(of reason: Outcome.Reason) -> String {
    switch reason {
    case .notEnrolled: "not-enrolled"
    case .unknownUser: "unknown-user"
    case .response(let refusal, _):
      switch refusal {
      case .malformed: "malformed"
      case .wrongCode: "wrong-code"
      case .replayed: "replayed"
      case .throttled: "throttled"
      case .clock: "clock"
      }
    }
  }

  private static func detail(of reason: Outcome.Reason) -> String {
    switch reason {
    case .notEnrolled, .unknownUser: ""
    case .response(let refusal, let left):
      switch refusal {
      case .malformed(let malformation): text(of: malformation)
      case .wrongCode, .throttled: " budget=known:\(left.known),other:\(left.other)"
      case .replayed: ""
      case .clock(let end):
        ": the last accepted code is of a time ahead of the clock; codes are refused until unix "
          + "time \(end.seconds), backup codes work"
      }
    }
  }

  private static func text(of malformation: Malformation) -> String {
    switch malformation {
    case .empty: ": empty"
    case .tooLong: ": too long"
    case .length: ": digits, but not as many as a code has"
    case .characters: ": neither a code nor a backup code"
    case .sshdDummy: ": sshd forbids this user to log in (PermitRootLogin, AllowUsers)"
    case .password:
      ": the password once more; sshd's PasswordAuthentication answers every prompt with it, "
        + "codes need KbdInteractiveAuthentication"
    }
  }
}
