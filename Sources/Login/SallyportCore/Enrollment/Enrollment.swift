internal import OneTimePassword

/// Everything that is stored for a user and changes only by enrolling and managing.
package struct Enrollment: Sendable {
  package static let maximumAuthenticators = 8

  /// Random, never 0. The login state contains it, so that the state of another user or of an
  /// earlier enrollment is not taken for this one's.
  package let id: UInt64
  /// The name of the account, spelled as in the account database.
  package let user: UserName
  /// The uid of the account; nil if it was enrolled without an account (`--allow-missing`).
  package let uid: UInt32?
  package let created: UnixTime
  /// 1 to 8, with different names and ids; in a reserve none.
  package var authenticators: [Authenticator]
  package var backupCodes: BackupCodeSet?
  /// Up to three, with different ids; some may have ended.
  package var passes: [Pass]
  /// What passes have replaced, the earliest one first; some may have ended.
  package var suspended: [Suspension]

  package init(
    id: UInt64, user: UserName, uid: UInt32?, created: UnixTime, authenticators: [Authenticator],
    backupCodes: BackupCodeSet?, passes: [Pass] = [], suspended: [Suspension] = []
  ) {
    self.id = id
    self.user = user
    self.uid = uid
    self.created = created
    self.authenticators = authenticators
    self.backupCodes = backupCodes
    self.passes = passes
    self.suspended = suspended
  }

  /// The set of backup codes if it has scratch codes, otherwise nil.
  package var scratchCodes: BackupCodeSet? {
    guard let backupCodes, !backupCodes.scratchDigests.isEmpty else { return nil }
    return backupCodes
  }

  /// Whether an authenticator or a scratch code has this number of digits.
  func hasCodes(of digits: Digits) -> Bool {
    for one in authenticators where one.parameters.digits == digits { return true }
    return digits == .eight && scratchCodes != nil
  }
}
