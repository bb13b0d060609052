internal import OneTimePassword

/// A user's whole record, as far as it changes only by enrolling and managing.
package struct Enrollment: Sendable {
  package static let maximumAuthenticators = 8

  /// Random, never 0. The login state names it: the state of another user, or of an earlier
  /// enrollment, is not taken for this one's.
  package let id: UInt64
  /// The account's name as the account database spells it.
  package let user: UserName
  /// The account's uid; nil where it was enrolled without an account (`--allow-missing`).
  package let uid: UInt32?
  package let created: UnixTime
  /// 1 to 8; names differ, ids differ.
  package var authenticators: [Authenticator]
  package var backupCodes: BackupCodeSet?

  package init(
    id: UInt64, user: UserName, uid: UInt32?, created: UnixTime, authenticators: [Authenticator],
    backupCodes: BackupCodeSet?
  ) {
    self.id = id
    self.user = user
    self.uid = uid
    self.created = created
    self.authenticators = authenticators
    self.backupCodes = backupCodes
  }

  /// The set of backup codes, where it has scratch codes.
  var scratchCodes: BackupCodeSet? {
    guard let backupCodes, !backupCodes.scratchDigests.isEmpty else { return nil }
    return backupCodes
  }

  /// Whether some code has so many digits: of an authenticator, or a scratch code.
  func hasCodes(of digits: Digits) -> Bool {
    for one in authenticators where one.parameters.digits == digits { return true }
    return digits == .eight && scratchCodes != nil
  }
}
