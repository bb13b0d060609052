package import OneTimePassword
package import PAMStack
package import SallyportAdministration
package import SallyportCore
package import SallyportDoctor
package import SallyportImport
package import SallyportSupport
package import SallyportSystem
package import SessionProtocol

/// Why a verb failed: facts only. `Messages` has the text and the exit status.
package enum CommandError: Error {
  case store(StoreTrouble)
  /// Only root may use this store.
  case notRoot
  /// Only root may use this option.
  case rootsOption(String)
  /// Only root may use this store, and there is no `sallyport-session` here.
  case noSessions
  /// `sallyport-session` refused, about this name; nothing was changed.
  case denied(ChangeRefusal, about: String)
  /// `sallyport-session` said what is no answer, or nothing.
  case session(SessionConnection.Fault)
  /// No user is named, and there is no default.
  case nobodyNamed
  /// One positional argument too many.
  case unexpectedWord(String)
  /// A positional argument that is not a valid name for an authenticator.
  case notAName(String)
  /// No authenticator is named.
  case noAuthenticatorNamed
  /// `rename` without a new name.
  case noNewName
  /// No account of a person, or, where it is not empty, none in the group.
  case nobodyInGroup(String)
  /// The name that was typed is another spelling of this account's; and whether something is stored
  /// under it.
  case otherSpelling(of: UserName, isStored: Bool)
  case notAUserName
  case noSuchUser
  /// `unenroll` without the recorded uid of somebody who has no account that can be seen, or with
  /// another one. `isBroken`: that uid cannot be read.
  case unseenUser(isBroken: Bool)
  case notEnrolled
  /// The user's note (`UserNote`) cannot be read.
  case note(StoreTrouble)
  /// `--undo` without a level to undo.
  case noLevel
  case enrolledAlready(authenticators: Int)
  /// Somebody else enrolled the user since the verb began. `isCodeShown`: of an authenticator that
  /// is not stored.
  case enrolledMeanwhile(isCodeShown: Bool)
  /// The user has no authenticator with this name.
  case noSuchAuthenticator(String)
  /// The user already has an authenticator with this name.
  case nameTaken(String)
  case tooManyAuthenticators
  /// Removing it would leave the user without an authenticator.
  case lastAuthenticator
  case secret(SecretProblem)
  /// The file of `--handout` cannot be written; EEXIST if it exists.
  case handout(path: String, errno: Int32)
  /// A policy file cannot be read or replaced. The number is an errno, or one that `SystemError`
  /// defines.
  case policyFile(path: String, errno: Int32)
  /// The policy file has errors, which have been printed.
  case policyBroken(path: String, problems: Int)
  /// Another `config edit` holds the lock.
  case editedElsewhere(path: String)
  /// The editor exited with this status; its changes are discarded.
  case editor(status: Int32)
  /// The code was checked and refused.
  case code(CodeRefused)
  /// The two codes do not resynchronize an authenticator.
  case resync(ResyncRefusal)
  /// No code for a new authenticator was correct.
  case noRightCode(Consequence)
  /// A list to import cannot be read.
  case importFile(path: String, FileProblem)
  /// A list of pam_oath has lines, and none of them is of its form.
  case notOathLines(path: String, lines: [Int])
  /// Some users were not imported; the report names them.
  case notAllImported(Int, of: Int)
  /// Interrupted after `done` users.
  case importStopped(Interruption, done: Int, of: Int)
  /// The user answered no.
  case declined(Consequence)
  case stopped(Interruption, Consequence)
  /// Writing to standard output failed.
  case output(errno: Int32)
  /// Writing to standard output failed after new backup codes were stored.
  case backupCodesUnseen(errno: Int32)
  /// A service's PAM stacks were not changed.
  case stack(StackRefusal)
  /// A user's name where a service's is expected.
  case userNotService(String)
  /// One of several services was not changed, and those before it were taken back.
  indirect case serviceFailed(String, CommandError, [TakenBack])
  /// A service of the same program as the one that was typed was not changed, and so none was.
  indirect case relativeRefused(String, of: String, CommandError)
  /// `--revert-in` while the change of these services still waits to be confirmed.
  case revertPending([String])
  /// `pam confirm` or `pam revert`, and nothing waits to be confirmed.
  case nothingPending
  /// `pam confirm` in the login that made the change.
  case sameLogin
  /// The file that says what is to be taken back cannot be used.
  case revertUnreadable(String)
  /// That file cannot be written, or the timer cannot be started.
  case revertFile(errno: Int32)
  /// `pam revert` left this file in its place; a warning said why.
  case revertUnfinished(path: String)
  /// sshd's side of its service was not changed.
  case ssh(SSHTrouble)
  /// The fleet verifies the codes, and this command is built without it.
  case noFleet
  /// What another part of the command failed by.
  case explained(any ExplainedError)
  /// A source of accounts may not have listed all; what is missing therefore.
  case peopleUnseen(String)
  /// Some enrollments cannot be read; they have been named.
  case listIncomplete(Sysexit)
}

/// An error of another part of the command, which has its own message.
package protocol ExplainedError: Error {
  func message(at invocation: Invocation) -> Message
  /// Whether it may have been done all the same, so that a handout may be all that anybody has of
  /// what is enrolled.
  var isUnsettled: Bool { get }
}

extension CommandError {
  /// As that of `ExplainedError`.
  var isUnsettled: Bool {
    if case .explained(let error) = self { error.isUnsettled } else { false }
  }

  /// Damage to a note is fixed differently from damage to an enrollment.
  init(note trouble: StoreTrouble) {
    self = trouble.isBrokenEnrollment ? .note(trouble) : .store(trouble)
  }
}

extension StoreTrouble {
  /// Whether the user's stored files are at fault, so that replacing or removing them fixes it.
  var isBrokenEnrollment: Bool {
    switch self {
    case .incomplete, .malformed, .state, .foreignState, .otherUser, .otherUID: true
    case .system, .noStore, .unsafe, .busy, .unsettled, .exists, .service, .crypto, .outOfMemory:
      false
    }
  }
}

/// What was not done because of an error.
package enum Consequence: Equatable {
  case notEnrolled
  case nothingChanged
  /// But for a code that was accepted before.
  case codeUsed
  case backupCodeUsed
}

/// Why a secret from `--secret-from` is rejected. Never contains a byte of it.
package enum SecretProblem: Equatable {
  case base32(Base32.Error)
  /// In bytes; expected `Secret.shortestKey` to `Secret.longestKey`.
  case length(Int)
  case notRegular(path: String)
  case tooLong
  case cannotRead(path: String, errno: Int32)
}

/// A refusal that `decide` returned, and when the next try is possible.
package struct CodeRefused: Equatable {
  package let refusal: Refusal
  /// If throttled: seconds until the next code is checked; nil for never.
  package let wait: UInt64?
  /// If wrong: by how many seconds a clock is ahead, or behind if negative, that would show it.
  package var clockOffset: Int64?

  package init(refusal: Refusal, wait: UInt64?, clockOffset: Int64? = nil) {
    (self.refusal, self.wait, self.clockOffset) = (refusal, wait, clockOffset)
  }
}

/// Runs `step` and rethrows its error as a `CommandError`.
package func storing<Value>(
  _ step: () throws(StoreTrouble) -> Value
) throws(CommandError) -> Value {
  do throws(StoreTrouble) {
    return try step()
  } catch {
    throw .store(error)
  }
}

/// As `storing`, for steps that only libcrypto can fail.
func computing<Value>(_ step: () throws(CryptoError) -> Value) throws(CommandError) -> Value {
  do throws(CryptoError) {
    return try step()
  } catch {
    throw .store(.crypto(error))
  }
}

/// What became of a service that was written before another one failed.
package struct TakenBack {
  let service: String
  /// Why its file is still changed; nil if it is as before.
  var problem: String?
}
