internal import CLinuxPAM

/// What the module returns to libpam. It returns nothing else.
package enum ReturnCode: Equatable, Sendable {
  /// The code was accepted, and the state that says so is on disk.
  case success
  /// Every refusal: the same value for all of them.
  case refused
  /// The policy does not ask this user for a code.
  case ignore
  /// The account or session phase lets nobody pass; or the auth phase asked for nothing, since
  /// `after-key` stands there and sshd has accepted none.
  case denied
  /// An error of the store, lock, account lookup or save: the response was not checked.
  case unavailable
  /// The application could not prompt.
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
