/// A return value of a module or of a whole stack, by its number in Linux-PAM (_pam_types.h).
package struct PAMCode: Hashable, Sendable {
  /// 0..31.
  package let number: UInt8

  /// Returns nil for a number that libpam does not know.
  package init?(number: Int) {
    guard (0..<PAMCode.names.count).contains(number) else { return nil }
    self.number = UInt8(number)
  }

  private init(_ number: UInt8) { self.number = number }

  package static let success = PAMCode(0)
  package static let serviceError = PAMCode(3)
  package static let permissionDenied = PAMCode(6)
  package static let authenticationError = PAMCode(7)
  package static let informationUnavailable = PAMCode(9)
  package static let userUnknown = PAMCode(10)
  package static let newPasswordRequired = PAMCode(12)
  package static let accountExpired = PAMCode(13)
  package static let sessionError = PAMCode(14)
  package static let ignore = PAMCode(25)
  package static let abort = PAMCode(26)
  package static let passwordExpired = PAMCode(27)
  package static let moduleUnknown = PAMCode(28)
  package static let incomplete = PAMCode(31)

  package static let all = names.indices.map { PAMCode(UInt8($0)) }

  /// The name that stands left of `=` in a control (pam.d(5)).
  package var name: String { PAMCode.names[Int(number)] }

  static let names = [
    "success", "open_err", "symbol_err", "service_err", "system_err", "buf_err", "perm_denied",
    "auth_err", "cred_insufficient", "authinfo_unavail", "user_unknown", "maxtries",
    "new_authtok_reqd", "acct_expired", "session_err", "cred_unavail", "cred_expired", "cred_err",
    "no_module_data", "conv_err", "authtok_err", "authtok_recover_err", "authtok_lock_busy",
    "authtok_disable_aging", "try_again", "ignore", "abort", "authtok_expired", "module_unknown",
    "bad_item", "conv_again", "incomplete",
  ]
}

/// The four stacks of a service.
package enum PAMPhase: String, CaseIterable, Sendable {
  case auth, account, session, password

  /// Parses the first word of a line; as in libpam, case does not matter.
  init?(word: [UInt8]) {
    guard let phase = PAMPhase.allCases.first(where: { equal(word, $0.rawValue) }) else {
      return nil
    }
    self = phase
  }
}

/// Whether the bytes are this ASCII word, ignoring case.
func equal(_ bytes: [UInt8], _ word: String) -> Bool {
  bytes.count == word.utf8.count
    && zip(bytes, word.utf8).allSatisfy { lowered($0) == lowered($1) }
}

func lowered(_ byte: UInt8) -> UInt8 {
  (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
}
