internal import CSystem
internal import OneTimePassword
package import SallyportCore

/// Whose login it is, as the account database spells it.
package final class Account: Sendable {
  /// `pw_name`; the name as typed where there is no such account.
  package let name: UserName
  /// nil where there is no such account.
  package let uid: UInt32?
  /// The number of its primary group; nil where there is no such account.
  package let group: UInt32?

  package init(name: UserName, uid: UInt32?, group: UInt32? = nil) {
    self.name = name
    self.uid = uid
    self.group = group
  }
}

/// The account database, through the name service.
package enum Accounts {
  /// Looks `name` up (getpwnam_r). Where the name service folds spellings, the account's own
  /// spelling counts: under the name as typed, `Alice` would walk around alice's second factor.
  ///
  /// No such account is only what the C library tells as a clean "not found" (0 and no entry). It
  /// gives ENOENT and other numbers for sources that are missing or silent: those throw.
  package static func find(_ name: UserName) throws(StoreTrouble) -> Account {
    var size = 1024
    var result: Int32 = 0
    for _ in 0..<attempts {
      var account: Account?
      result = look(up: name, bufferSize: size, &account)
      if let account { return account }
      if result == 0 { return Account(name: name, uid: nil) }
      guard result == -sys_ERANGE || result == -sys_EINTR else { break }
      if result == -sys_ERANGE { size *= 4 }
    }
    throw .system(
      "getpwnam", path: Path(escaped(name.bytes, limit: 255)).text,
      errno: result < 0 ? 0 - result : sys_EINVAL)
  }

  /// Whether the account is in the group: as one of the members that the group lists, or because
  /// the group is among those of the account, its primary one included. Each of the two alone is
  /// not enough: a directory may list no members, and a list of all groups of an account does not
  /// show that a source failed. Where there is no such group it is not known.
  package static func isMember(_ account: Account, of group: [UInt8]) -> Tristate {
    let user = Path(account.name.bytes).cString
    var number: UInt32 = 0
    // SAFETY: all are C strings that live for the call.
    let listed = unsafe sys_group(Path(group).cString, user, &number)
    guard listed == 0 else { return listed < 0 ? .unknown : .yes }
    // SAFETY: as above.
    let has = unsafe sys_has_group(user, account.group ?? UInt32.max, number)
    return has < 0 ? .unknown : has == 0 ? .no : .yes
  }

  /// With a buffer of a megabyte at last, or after as many interruptions.
  private static let attempts = 6

  /// The result of the shim; 1 without an account where the database's spelling is no login name.
  private static func look(up name: UserName, bufferSize: Int, _ account: inout Account?) -> Int32 {
    var (uid, group): (UInt32, UInt32) = (0, 0)
    var buffer = [UInt8](repeating: 0, count: bufferSize)
    let typed = Path(name.bytes).cString
    var found: UserName?
    // SAFETY: all buffers live for the call; the spelling is a C string inside `buffer`.
    let result = unsafe buffer.withUnsafeMutableBytes { buffer -> Int32 in
      guard let base = buffer.baseAddress else { return -sys_EINVAL }
      var spelling: UnsafePointer<CChar>?
      let result = unsafe sys_account(typed, base, buffer.count, &spelling, &uid, &group)
      if result == 1, let spelling = unsafe spelling { found = unsafe userName(spelling) }
      return result
    }
    account = found.map { Account(name: $0, uid: uid, group: group) }
    return result
  }

  @unsafe private static func userName(_ text: UnsafePointer<CChar>) -> UserName? {
    // SAFETY: a C string.
    unsafe UserName(copy(of: UnsafeRawBufferPointer(start: text, count: strlen(text))))
  }
}
