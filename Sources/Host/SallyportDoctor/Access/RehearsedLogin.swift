import OneTimePassword
import PAMSallyport
import PAMStack
import SallyportCore

// A login that takes place in doctor alone. The module's own flow runs in it, so that the forecast
// cannot differ from what the module does.

/// What is fixed for one login.
struct RehearsedLogin {
  /// What the person has. No secret: the texts are compared with themselves alone.
  struct Person: Equatable {
    /// nil if no password can be correct for the account.
    var password: String?
    /// Whether the person has what gives the codes.
    var hasCodes: Bool

    /// What the person types who is asked for the password alone.
    var answer: String { password ?? "none that is right" }
    var code: String { hasCodes ? Person.rightCode : "24680135" }
    static let rightCode = "13579246"
  }

  /// What a program does with an account whose password has to be changed.
  enum Renewal: Hashable {
    /// It asks for the old one, as login does too, which runs as root.
    case byOwner
    /// It leaves it, also where it was to be changed long ago.
    case left
    /// It refuses the account.
    case never
  }

  /// PAM_USER
  let user: [UInt8]
  let service: String
  /// PAM_RHOST
  var remote: String?
  /// The real uid of the process.
  var caller: UInt32 = 0
  let person: Person
  /// The methods that sshd has accepted before; nil outside sshd.
  var accepted: [String]?
  /// Whether the program lets in by an empty password, of an account that has one.
  var mayBeEmpty = true
  /// Who changes a password that has to be changed.
  var renewal = Renewal.byOwner
  /// What answers every prompt of the auth phase, in one field for all of them; nil where each is
  /// answered by itself.
  var field: String?
  /// Whether prompts reach the person in the account phase too.
  var asksInAccount = true
}

/// What the modules leave on PAM's handle, and what was seen on the way.
struct RehearsedHandle {
  var mark: Mark?
  var hasEnvironmentMark = false
  var password: Secret?
  /// Whose code was asked for; nil if none was.
  var asking: Asking?
  /// Whether pam_unix has let the account in.
  var isByUnix = false
  /// Whether our line asked to enroll.
  var isEnrolling = false
  /// Our line in the auth or account phase that ran last.
  var line: FileLocation?
  /// Why our line let pass without a code.
  var opening: Opening?
  /// The line that says so.
  var openedAt: FileLocation?
  /// The first module that refused, and why.
  var barrier: (Barrier, FileLocation, module: String)?

  /// Whether no line of ours has decided anything.
  var isPlain: Bool { !isEnrolling && opening == nil && asking == nil }

  mutating func note(_ barrier: Barrier, at entry: StackEntry) {
    if self.barrier == nil { self.barrier = (barrier, entry.location, entry.module) }
  }
}
