import OneTimePassword
import PAMStack
import SallyportCore
import SallyportImport
import SallyportSystem
import SallyportText

/// Everything that keeps a verb from doing its work: facts only. The sentences are in Messages.
enum CommandError: Error {
  case store(StoreTrouble)
  /// Nobody but root may use this store.
  case notRoot
  /// A verb was not told whom it is about.
  case nobodyNamed
  /// A plain word more than the verb takes.
  case unexpectedWord(String)
  /// A plain word in the place of an authenticator's name.
  case notAName(String)
  /// A verb was not told which authenticator.
  case noAuthenticatorNamed
  /// `rename` was not told the new name.
  case noNewName
  /// No account of a person, or, where it is not empty, none in the group.
  case nobodyInGroup(String)
  case notAUserName
  case noSuchUser
  case notEnrolled
  /// What is kept of the user apart from an enrollment cannot be read.
  case note(StoreTrouble)
  /// There is nothing that `--undo` could take back.
  case noLevel
  case enrolledAlready(authenticators: Int)
  /// The user has no authenticator of that name.
  case noSuchAuthenticator(String)
  /// The user has one of that name already.
  case nameTaken(String)
  case tooManyAuthenticators
  /// Without it the user would not be enrolled.
  case lastAuthenticator
  case secret(SecretProblem)
  /// The sheet of `--handout` cannot be written; EEXIST: the file is there already.
  case handout(path: String, errno: Int32)
  /// A policy file cannot be read or put in its place; the errno, or one of `SystemError`'s own.
  case policyFile(path: String, errno: Int32)
  /// Its problems have been named.
  case policyBroken(path: String, problems: Int)
  /// Somebody else has it in an editor.
  case editedElsewhere(path: String)
  /// The editor ended with this exit status, so what it left is not taken.
  case editor(status: Int32)
  /// The code was judged and is not accepted.
  case code(Rejection)
  /// Two codes do not bring an authenticator in step.
  case resync(ResyncRefusal)
  /// None of the codes typed for a new authenticator was right.
  case noRightCode(tries: Int, Consequence)
  /// A list to import cannot be read.
  case importFile(path: String, FileProblem)
  /// Some users were not imported; they have been named.
  case notAllImported(Int, of: Int)
  /// Somebody stopped it; so many users have been gone through.
  case importStopped(Interruption, done: Int, of: Int)
  /// Somebody answered no.
  case declined(Consequence)
  case stopped(Interruption, Consequence)
  /// Standard output cannot be written.
  case output(errno: Int32)
  /// The same, after the new backup codes were stored.
  case backupCodesUnseen(errno: Int32)
  /// A service's stacks are not changed.
  case stack(StackRefusal)
  /// Some enrollments of a list cannot be read; they have been named.
  case listIncomplete(Sysexit)
}

extension CommandError {
  /// An error of a note, which is fixed differently from an enrollment.
  init(note trouble: StoreTrouble) {
    self = trouble.isBrokenEnrollment ? .note(trouble) : .store(trouble)
  }
}

extension StoreTrouble {
  /// Whether it lies in what is stored for the user, so that replacing or removing that fixes it.
  var isBrokenEnrollment: Bool {
    switch self {
    case .incomplete, .malformed, .state, .foreignState, .otherUser, .otherUID: true
    case .system, .noStore, .unsafe, .busy, .unsettled, .exists, .crypto, .outOfMemory: false
    }
  }
}

/// What has not happened.
enum Consequence: Equatable {
  case notEnrolled
  case nothingChanged
}

/// Why a secret given by `--secret-from` is not taken. Never a byte of it.
enum SecretProblem: Equatable {
  case base32(Base32.Error)
  /// In bytes; expected `Secret.shortestKey` to `Secret.longestKey`.
  case length(Int)
  case notRegular(path: String)
  case tooLong
  case cannotRead(path: String, errno: Int32)
}

/// A refusal as `decide` gave it, with what can be said about the next try.
struct Rejection: Equatable {
  let refusal: Refusal
  /// Where it was refused for the budget: seconds until the next one is judged; nil: never.
  let wait: UInt64?
}

/// Runs a step of the store or the core as one of the command.
func storing<Value>(
  _ step: () throws(StoreTrouble) -> Value
) throws(CommandError) -> Value {
  do throws(StoreTrouble) {
    return try step()
  } catch {
    throw .store(error)
  }
}

/// As `storing`, for what only libcrypto can refuse.
func computing<Value>(_ step: () throws(CryptoError) -> Value) throws(CommandError) -> Value {
  do throws(CryptoError) {
    return try step()
  } catch {
    throw .store(.crypto(error))
  }
}
