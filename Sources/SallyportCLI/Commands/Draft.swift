import OneTimePassword
import SallyportCore
import SallyportSystem

/// An enrollment that is not stored yet.
struct Draft {
  let account: Account
  let parameters: CodeParameters
  let secret: Secret
  let name: Label
  let issuer: Label
  /// The account's name in the authenticator app.
  let label: Label
  let backupCodes: FreshBackupCodes
  let created: UnixTime
  private let id: UInt64
  private let authenticatorID: UInt64

  init(
    account: Account, parameters: CodeParameters, secret: Secret, name: Label, issuer: Label,
    label: Label, backupCodes: Int, created: UnixTime
  ) throws(Complaint) {
    (self.account, self.parameters, self.secret) = (account, parameters, secret)
    (self.name, self.issuer, self.label) = (name, issuer, label)
    self.created = created
    self.backupCodes = try FreshBackupCodes(count: backupCodes)
    id = try complaining { () throws(StoreTrouble) in try Random.identifier() }
    authenticatorID = try complaining { () throws(StoreTrouble) in try Random.identifier() }
  }

  /// As an authenticator app takes it; an HOTP starts at counter 0.
  var uri: OtpauthURI {
    OtpauthURI(issuer: issuer.bytes, account: label.bytes, secret: secret, parameters: parameters)
  }

  /// What is stored. `lastAccepted`: the step or counter of the confirming code.
  func enrollment(lastAccepted: UInt64?) -> Enrollment {
    let authenticator = Authenticator(
      id: authenticatorID, name: name, parameters: parameters, secret: secret,
      initialLastAccepted: lastAccepted, created: created)
    return Enrollment(
      id: id, user: account.name, uid: account.uid, created: created,
      authenticators: [authenticator], backupCodes: backupCodes.set)
  }
}
