package import OneTimePassword
import SallyportCore
package import SallyportLogin

/// The application that runs a login, as the flow sees it: libpam's handle, or a script.
package protocol PAMApplication: AnyObject {
  /// PAM_USER as typed.
  func user() throws(PAMFailure) -> [UInt8]
  func service() -> [UInt8]
  /// PAM_RHOST; nil where it is not set or empty.
  func remoteHost() -> [UInt8]?
  /// PAM_AUTHTOK: what an earlier module asked for.
  func password() -> Secret?
  func setPassword(_ password: Secret) throws(PAMFailure)
  /// SSH_AUTH_INFO_0 of PAM's own environment (not the process's): what sshd has accepted so far,
  /// perhaps nothing; nil where sshd does not say.
  func sshAuthenticationInfo() -> [UInt8]?
  /// The real uid of the process: who called su or sudo.
  func realUserID() -> UInt32
  /// One prompt; the answer without its NUL. A missing answer is a failed conversation.
  func ask(_ prompt: [UInt8], echo: Bool) throws(PAMFailure) -> Secret
  /// Whether in sshd a prompt reaches the person, so that its method is not `password`. Of other
  /// programs it says nothing.
  var reachesPerson: Bool { get }
  /// Shows a text, which may be a secret; a line end is added. Even if the application asks for
  /// silence.
  func show(_ text: Secret) throws(PAMFailure)
  /// Shows a text as an error (PAM_ERROR_MSG).
  func complain(_ text: Secret) throws(PAMFailure)
  /// Whether the application wants no texts (PAM_SILENT).
  var isSilent: Bool { get }
  /// What the auth phase left on this handle.
  func mark() -> Mark?
  /// nil removes it.
  func setMark(_ mark: Mark?) throws(PAMFailure)
  /// Whether PAM's environment has SALLYPORT_MARK: of all that the auth phase leaves, only this
  /// reaches sshd's session phase.
  var hasEnvironmentMark: Bool { get }
  func setEnvironmentMark(_ isThere: Bool) throws(PAMFailure)
  /// Leaves a text for the session phase, in PAM's environment as well.
  func leaveText(_ text: LogLine) throws(PAMFailure)
  /// What `leaveText` left, which is gone from then on.
  func takeText() -> [UInt8]?
  /// Asks the account stack of this service about this user, beside this transaction.
  func probeAccountStack() -> AccountAnswer
  /// Whether this transaction is such a question, which then knows that a line of ours was asked.
  var isProbe: Bool { get }
  /// Asks libpam to wait before it reports a failure; microseconds.
  func delayFailure(_ microseconds: UInt32)
  /// Returns at that time of the monotonic clock, in milliseconds, or later.
  func wait(until end: UInt64)
  func log(_ level: LogLevel, _ line: LogLine)
}

/// What an account stack says of a user.
package enum AccountAnswer: Equatable, Sendable {
  /// PAM_SUCCESS or PAM_NEW_AUTHTOK_REQD: the user may log in, the latter with a new password.
  case yes
  /// The same, but no account line of ours was asked.
  case yesWithoutUs
  /// Any other return code, or that of a stack that could not be run.
  case no(Int32)
}

/// A call of the application or of libpam that failed.
package enum PAMFailure: Error, Equatable {
  case conversation
  case memory
}
