/// What the service answers to a `LoginQuestion`.
package enum ServiceAnswer: Equatable, Sendable {
  /// To `prepare`: ask for a code; without an enrollment the shape is the decoy's. To `enrolled`,
  /// and to `notices` where nothing happened: what is enrolled.
  case prompt(EnrollmentStatus, Shape)
  /// To `notices`: what is enrolled, and at least one thing that happened.
  case told(Shape, [OwnerNotice])
  /// To `prepare`: not enrolled, and not required to be.
  case skip
  /// To `prepare`: not enrolled; the account phase asks to. Neither `refuse` nor `voluntary`.
  case enroll(EnrollmentLevel)
  /// To `attempt`.
  case outcome(Outcome)
  /// To `enrolled` and `notices`.
  case notEnrolled
  /// To `level`.
  case level(EnrollmentLevel)
  /// To `count`: how many logins, including this one.
  case count(UInt32)
  /// To `remember`, `amend` and `notices` with what was told: it is on disk. To `rehearse`: it
  /// could be.
  case done
  /// To `amend`: another enrollment by now than the one that the change was meant for.
  case changed
  /// To `amend`.
  case flaw(EnrollmentChange.Flaw)
  /// It was not verified, or could not be saved. The service has logged why.
  case trouble(mayBeTheCallers: Bool)
  /// This socket does not do that, or not for this caller.
  case notServed
}

/// Whether somebody is enrolled.
package enum EnrollmentStatus: UInt8, Sendable {
  case enrolled = 1
  case notEnrolled
  /// There is no such account.
  case unknown
}

extension ServiceAnswer {
  /// The answer as its byte in a frame. They differ from one another, from 0 and from 0xff in four
  /// bits: nothing that was lost or never filled in lets a login go on.
  enum Number: UInt8 {
    case prompt = 0x96
    case skip = 0x69
    case enroll = 0x3c
    case accepted = 0xa5
    case refused = 0x5a
    case notEnrolled = 0x0f
    case level = 0x33
    case count = 0x55
    case done = 0xc3
    case changed = 0x66
    case flaw = 0x99
    case trouble = 0xf0
    case notServed = 0xaa
  }

  /// A packet of its own before the answer to a caller that waits: the service begins with what it
  /// was asked. Until then nothing has been done; from then on it may have been. It is sent before
  /// anything is decided, and is the same for everybody. Its last byte is none of `Number`, and
  /// differs from them as they do from one another.
  package static func begun() -> [UInt8] { [Wire.written, 0xcc] }

  package static func isBegun(_ packet: [UInt8]) -> Bool {
    packet.count == 2 && packet[0] == Wire.written && packet[1] == 0xcc
  }

  var number: Number {
    switch self {
    // No other byte differs from all of these in four bits: the next one tells the two apart.
    case .prompt, .told: .prompt
    case .skip: .skip
    case .enroll: .enroll
    case .outcome(.accepted): .accepted
    case .outcome(.refused): .refused
    case .notEnrolled: .notEnrolled
    case .level: .level
    case .count: .count
    case .done: .done
    case .changed: .changed
    case .flaw: .flaw
    case .trouble: .trouble
    case .notServed: .notServed
    }
  }

  /// Whether its values are ones that the service gives to this verb.
  func answers(_ verb: LoginQuestion.Verb.Number) -> Bool {
    switch self {
    case .prompt(let status, let shape):
      status == .enrolled
        ? verb == .prepare || verb == .enrolled || verb == .notices
        : verb == .prepare && !shape.isRemembered && !shape.isAway
    case .told(let shape, _): verb == .notices && !shape.isAway
    case .skip: verb == .prepare
    case .enroll(let level):
      switch level {
      case .refuse, .voluntary: false
      case .required, .offer, .remind: verb == .prepare
      }
    case .outcome: verb == .attempt
    case .notEnrolled: verb == .enrolled || verb == .notices
    case .level: verb == .level
    case .count: verb == .count
    case .done: verb == .remember || verb == .amend || verb == .rehearse || verb == .notices
    case .changed, .flaw: verb == .amend
    case .trouble, .notServed: true
    }
  }
}
