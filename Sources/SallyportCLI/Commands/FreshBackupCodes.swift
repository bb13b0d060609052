import OneTimePassword
import SallyportCore
import SallyportSystem

/// A new set of backup codes: what people get, and what is kept.
struct FreshBackupCodes {
  /// In groups, as they are shown once.
  let shown: [String]
  /// nil where no codes were wanted.
  let set: BackupCodeSet?

  /// `scratchCodes`: of another module, kept beside the new ones.
  init(count: Int, scratchCodes: [Secret] = []) throws(Complaint) {
    var codes: [Secret] = []
    for _ in 0..<count { codes.append(try FreshBackupCodes.code()) }
    let salt = try complaining { () throws(StoreTrouble) in
      try Random.secret(count: BackupCodeSet.saltLength)
    }
    let salted = (0..<salt.count).map { salt[$0] }
    shown = codes.map(BackupCode.grouped)
    let id = try complaining { () throws(StoreTrouble) in try Random.identifier() }
    set =
      codes.isEmpty && scratchCodes.isEmpty
      ? nil
      : BackupCodeSet(
        id: id, salt: salted, digests: try FreshBackupCodes.digests(of: codes, salted),
        scratchDigests: try FreshBackupCodes.digests(of: scratchCodes, salted))
  }

  private static func digests(of codes: [Secret], _ salt: [UInt8]) throws(Complaint) -> [[UInt8]] {
    var digests: [[UInt8]] = []
    for code in codes {
      digests.append(
        try computing { () throws(CryptoError) in try BackupCode.digest(code, salt: salt) })
    }
    return digests
  }

  /// One code. One in 10⁸ has to be made again; twenty in a row mean that memory is short.
  private static func code() throws(Complaint) -> Secret {
    for _ in 0..<20 {
      let random = try complaining { () throws(StoreTrouble) in
        try Random.secret(count: BackupCode.randomBytes)
      }
      if let code = BackupCode.make(from: random) { return code }
    }
    throw .store(.outOfMemory)
  }

  /// The lines for people.
  var text: String {
    let heading = "Backup codes: each works once, when the phone is not at hand. Not shown again."
    return ([heading, ""] + columns(ofBackupCodes: shown) + [""]).joined(separator: "\n")
  }

  /// For programs.
  var json: JSON { .list(shown.map { .text($0) }) }
}
