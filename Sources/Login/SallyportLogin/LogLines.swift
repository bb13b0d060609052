package import SallyportCore
package import SallyportSystem

// The log lines of every front end, one line each. Never a code, a secret or a backup code.

extension LogLine {
  /// What went wrong with the machine or the store: the fact, its path, and the fix where one
  /// command fixes it.
  package static func trouble(
    _ trouble: StoreTrouble, user: [UInt8], from host: [UInt8]?, _ origin: Origin
  ) -> LogLine {
    var line = LogLine("error:")
    line.add(user: user)
    line.add(origin, host)
    line.add(": ")
    line.add(trouble)
    if case .noStore = trouble { line.add(" (sallyport enroll makes one)") }
    return line
  }

  /// Why a policy file cannot be used, and what holds in its place.
  package static func brokenPolicy(_ trouble: StoreTrouble, hasLastGood: Bool) -> LogLine {
    var line = LogLine("policy: ")
    line.add(trouble)
    line.add(
      hasLastGood
        ? "; the last good file applies" : LogLine.strict)
    return line
  }

  /// What applies after a word or a line that means nothing.
  package static var strict: StaticString {
    "; the strict policy applies (one adjacent interval, unenrolled users refused)"
  }

  /// `number`: of the refusals of one transaction, but for malformed answers.
  package static func outcome(
    _ outcome: Outcome, number: Int = 1, user: [UInt8], from host: [UInt8]?, _ origin: Origin
  ) -> LogLine {
    var line: LogLine
    switch outcome {
    case .accepted(.authenticator(let name, let drift)):
      line = LogLine("code accepted:")
      line.add(user: user)
      line.add(authenticator: name)
      if drift != 0 { line.add(" drift=", Int(drift)) }
      line.add(origin, host)
    case .accepted(.backupCode(let left)):
      line = LogLine("backup code accepted:")
      line.add(user: user)
      line.add(" left=", left)
      line.add(origin, host)
    case .accepted(.pass(let left)), .accepted(.claim(let left)):
      line = LogLine("pass accepted:")
      line.add(user: user)
      if case .accepted(.claim) = outcome { line.add(" enrolls=yes") }
      line.add(" left=", left)
      line.add(origin, host)
    case .refused(let reason):
      line = LogLine("refused: reason=")
      line.add(reason.name)
      if number > 1 { line.add(" try=", number) }
      line.add(user: user)
      line.add(origin, host)
      line.add(detailOf: reason)
    }
    return line
  }

  /// For what checks the codes of other programs.
  package static func outcome(_ outcome: Outcome, of question: LoginQuestion) -> LogLine {
    let address = question.statedAddress.map { [UInt8](Addresses.text($0).utf8) }
    var line = LogLine.outcome(outcome, user: question.name, from: address, question.place)
    line.add(service: question.service)
    return line
  }

  package mutating func add(service: [UInt8]) {
    add(" service=")
    add(field: Label(service)?.bytes ?? [])
  }

  /// Users choose it.
  package mutating func add(authenticator name: Label) {
    add(" authenticator=\"")
    add(field: name.bytes)
    add("\"")
  }

  package mutating func add(user: [UInt8]) {
    add(" user=")
    add(field: user)
  }

  package mutating func add(_ origin: Origin, _ host: [UInt8]?) {
    add(" origin=")
    switch origin {
    case .address: add(field: host ?? [])
    case .local(let own): add(own ? "local" : "local(another user)")
    // An address of this machine: told like any other.
    case .unknown where host.flatMap({ Addresses.withoutZone($0) }) != nil: add(field: host ?? [])
    case .unknown:
      add("unknown")
      guard let host else { return }
      add("(")
      add(field: host)
      add(")")
    }
  }

  private mutating func add(detailOf reason: Outcome.Reason) {
    guard case .response(let refusal, let left) = reason else { return }
    switch refusal {
    case .malformed(let malformation):
      add(": ")
      add(malformation.text)
    case .wrongCode, .throttled:
      add(" budget=known:")
      add(left.known)
      add(",other:")
      add(left.other)
    case .replayed: break
    case .mustEnroll: add(": this login cannot end in enrolling, as this pass must")
    case .clock(let end):
      add(": the last accepted code is ahead of the clock; codes are refused until unix ")
      add("time ", Int(end.seconds))
      add(", backup codes work")
    }
  }
}

extension Outcome {
  /// As Linux-PAM's guide for module writers has it.
  package var logLevel: LogLevel {
    switch self {
    case .accepted: .info
    case .refused(.response(.malformed, _)): .info
    case .refused(.response), .refused(.notEnrolled), .refused(.unknownUser), .refused(.blocked):
      .notice
    }
  }
}

extension Outcome.Reason {
  /// In the log, and wherever else a program reads it.
  package var name: StaticString {
    switch self {
    case .notEnrolled: "not-enrolled"
    case .unknownUser: "unknown-user"
    case .blocked: "blocked"
    case .response(.malformed, _): "malformed"
    case .response(.wrongCode, _): "wrong-code"
    case .response(.replayed, _): "replayed"
    case .response(.throttled, _): "throttled"
    case .response(.clock, _): "clock"
    case .response(.mustEnroll, _): "must-enroll"
    }
  }
}

extension Malformation {
  fileprivate var text: StaticString {
    switch self {
    case .empty: "no code given"
    case .tooLong: "too long for a code"
    case .length: "wrong number of digits"
    case .characters: "neither a code nor a backup code"
    case .sshdDummy: "sshd forbids this user to log in (PermitRootLogin, AllowUsers)"
    case .again:
      """
      the same answer again; sshd's PasswordAuthentication, and some clients, answer every prompt \
      with the password: codes need KbdInteractiveAuthentication, and a client that asks
      """
    }
  }
}

/// syslog's priorities that logins use, as Linux-PAM's guide for module writers has them; with
/// syslog's numbers (RFC 5424 section 6.2.1).
package enum LogLevel: Int32, Sendable {
  /// Own files are damaged or unsafe.
  case alert = 1
  case error = 3
  /// An error that a stranger can cause.
  case warning
  /// A refusal.
  case notice
  case info
  case debug
}
