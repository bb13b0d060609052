internal import CLinuxPAM

/// What the module answers to libpam. Nothing else leaves it.
package enum ReturnCode: Equatable, Sendable {
  /// The code was accepted, and the state that says so is on disk.
  case success
  /// Every refusal, in one shape for all of them.
  case refused
  /// The policy does not ask this user for a code.
  case ignore
  /// The account or session phase lets nobody pass.
  case denied
  /// Store, lock, account lookup or save: what was typed was not judged.
  case unavailable
  /// The application could not ask.
  case conversation
  /// libpam is out of memory.
  case memory

  package var code: Int32 {
    switch self {
    case .success: PAM_SUCCESS
    case .refused: PAM_AUTH_ERR
    case .ignore: PAM_IGNORE
    case .denied: PAM_PERM_DENIED
    case .unavailable: PAM_AUTHINFO_UNAVAIL
    case .conversation: PAM_CONV_ERR
    case .memory: PAM_BUF_ERR
    }
  }

  /// What a failed call of libpam becomes; never a success.
  init(failed code: Int32) { self = code == PAM_BUF_ERR ? .memory : .conversation }
}
