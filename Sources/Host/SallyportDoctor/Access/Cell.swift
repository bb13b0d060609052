package import PAMStack

/// What becomes of one account at one way in.
package enum Verdict: Hashable, Sendable {
  /// A code is asked for, and nobody gets in without it.
  case asked(Asking)
  /// Nobody gets in.
  case refused(Barrier)
  /// Somebody gets in without a code.
  case withoutCode(Opening)
  /// It is not known.
  case unseen(AccessGap)
}

/// Whose code is asked for. The name is the `reason` in doctor's JSON, as in the other enums here.
package enum Asking: String, CaseIterable, Sendable {
  case code
  /// sudo asks for the code of root, of the target or of an account that it names.
  case codeOfAnother
  /// The fleet verifies it.
  case codeOfFleet
}

/// Why nobody gets in.
package enum Barrier: String, CaseIterable, Sendable {
  // Ours.
  case notEnrolled, blocked, factorsOff, brokenEnrollment, afterKey, noPrompt, wrongWord
  // Others'.
  case moduleMissing, noRule, noPassword, noKey, keyLeftOut, noMethod, rootLogin, notAllowed,
    locked, expired, noShell, noLogin, stackShut, noAdministrator
}

/// Why somebody gets in without a code.
package enum Opening: String, CaseIterable, Sendable {
  // By the policy and the user's note.
  case disabled, exempt, nullok, voluntary, offered
  /// Who knows the password may set up a phone.
  case enrolls
  // By the stack.
  case noLine, otherFile, skipped, uncounted
  // By sshd.
  case keyAlone, hostAlone, ticketAlone, noPAM
  // By sudo, doas and polkit.
  case noPasswd, notAuthenticated, exemptGroup, nopass, polkitYes
}

/// Why a cell is not known. No other reason may be given.
package enum AccessGap: String, CaseIterable, Sendable {
  /// The caller may not read what it hangs on.
  case notRoot
  case fleetSilent
  /// This host of a fleet may not know who is enrolled.
  case fleetKeeps
  case sshdSilent, sudoSilent
  /// Whether sshd has a key for the account.
  case keysElsewhere
  /// Rules of polkit in JavaScript.
  case polkitRules
  /// What another module of the stack answers.
  case moduleDecides
  /// A stack with too many ways through it.
  case tooComplex
  /// More kinds of accounts than are examined.
  case tooMany
  /// Homes that do not answer in time.
  case slowFiles
  /// The line looks for enrollments in another store than the one that was read.
  case otherStore
}

/// One account at one way in.
package struct Cell: Equatable, Sendable {
  package let way: AccessWay
  package let verdict: Verdict
  /// sshd: the methods that have to succeed, in order; elsewhere none.
  package var methods: [String] = []
  /// The line that decides.
  package var location: FileLocation?
  /// What the reason is about: a module, a file, an account.
  package var detail: String?
  /// Whose password and code are asked for; nil for the account itself.
  package var whose: String?
  /// The line of `without_code` that says it is meant so.
  package var purpose: FileLocation?
  /// How bad it is, beside the other cells of the account.
  package internal(set) var severity = Severity.ok
}

/// A way in.
package struct AccessWay: Hashable, Sendable {
  /// How the program calls PAM.
  package enum Kind: Hashable, Sendable {
    case ssh, sudo, sudoLogin, sudoAs, doas, su, login, polkit, other
  }

  package let kind: Kind
  /// PAM's name of what really runs: of sudo, that which a line of sudoers may name.
  package internal(set) var service: String
  /// As people call it: `sudo -i`.
  package let name: String
  /// sshd: where the connection comes from, where that matters.
  package var origin: String?
  /// Whether it leads from an account to root.
  package var givesRoot = false
  /// The name of the way that it is beside, if it is told of only where it lets in more.
  var usual: String?
}

extension Verdict {
  /// Whether somebody gets in, or may.
  var mayLetIn: Bool {
    switch self {
    case .asked, .withoutCode, .unseen: true
    case .refused: false
    }
  }

  /// As doctor's JSON has it.
  package var name: String {
    switch self {
    case .asked: "asked"
    case .refused: "refused"
    case .withoutCode: "withoutCode"
    case .unseen: "unseen"
    }
  }

  /// The name of the reason, as doctor's JSON has it.
  package var reason: String {
    switch self {
    case .asked(let reason): reason.rawValue
    case .refused(let reason): reason.rawValue
    case .withoutCode(let reason): reason.rawValue
    case .unseen(let reason): reason.rawValue
    }
  }
}

extension Verdict {
  /// Whether it may be another one for somebody who is enrolled, or is not.
  var hangsOnEnrollment: Bool {
    switch self {
    case .asked: true
    case .refused(let barrier): barrier.isOurs
    case .withoutCode(.voluntary), .withoutCode(.offered), .withoutCode(.nullok),
      .withoutCode(.enrolls),
      .withoutCode(.exempt):
      true
    case .withoutCode, .unseen: false
    }
  }
}
