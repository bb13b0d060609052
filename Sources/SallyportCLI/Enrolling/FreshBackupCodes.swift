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
  init(count: Int, scratchCodes: [Secret] = []) throws(CommandError) {
    let fresh = try storing { () throws(StoreTrouble) in
      try BackupCodeSet.fresh(count: count, scratchCodes: scratchCodes)
    }
    (shown, set) = (fresh.codes.map(BackupCode.grouped), fresh.set)
  }

  static let heading = "Backup codes: each works once, when the phone is not at hand."

  /// The lines for people.
  var text: String {
    let heading = "\(FreshBackupCodes.heading) Not shown again."
    return ([heading, ""] + columns(ofBackupCodes: shown) + [""]).joined(separator: "\n")
  }
}
