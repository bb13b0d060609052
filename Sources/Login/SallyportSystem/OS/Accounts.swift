internal import CSystem
internal import OneTimePassword
package import SallyportCore

/// The account database, through the name service.
package enum Accounts {
  /// Looks `name` up with getpwnam_r(3). If the name service ignores case, the spelling in the
  /// database counts: under the name as typed, `Alice` would bypass alice's second factor.
  ///
  /// There is no such account only if the C library returns 0 and no entry. For sources that are
  /// missing or do not answer it returns ENOENT and other errors; those throw.
  package static func find(_ name: UserName) throws(StoreTrouble) -> Account {
    var size = 1024
    var result: Int32 = 0
    for _ in 0..<attempts {
      var account: Account?
      result = look(up: name, bufferSize: size, &account)
      if let account { return account }
      if result == 0 { return Account(name: name, uid: nil) }
      guard result == -ERANGE || result == -EINTR else { break }
      if result == -ERANGE { size *= 4 }
    }
    throw .system(
      "getpwnam", path: Path(escaped(name.bytes, limit: 255)).text,
      errno: result < 0 ? 0 - result : EINVAL)
  }

  /// Whether the account is in the group: as a member that the group lists, or by the list of the
  /// account's groups, which includes the primary one. Both are needed: a directory service may
  /// list no members, and the list of an account's groups does not show that a source failed.
  /// Unknown if there is no such group, or if nothing shows that a directory was asked.
  package static func isMember(_ account: Account, of group: [UInt8]) -> Tristate {
    // SAFETY: both are C strings that live for the call.
    let found = unsafe sys_is_member(
      Path(account.name.bytes).cString, account.group ?? UInt32.max, Path(group).cString)
    return found < 0 ? .unknown : found == 0 ? .no : .yes
  }

  /// The last one has a buffer of a mebibyte; interruptions count too.
  private static let attempts = 6

  /// Returns the result of the shim: 1, but no account, if the spelling in the database is not a
  /// valid name.
  private static func look(up name: UserName, bufferSize: Int, _ account: inout Account?) -> Int32 {
    var (uid, group): (UInt32, UInt32) = (0, 0)
    var buffer = [UInt8](repeating: 0, count: bufferSize)
    let typed = Path(name.bytes).cString
    var found: UserName?
    // SAFETY: all buffers live for the call; the spelling is a C string inside `buffer`.
    let result = unsafe buffer.withUnsafeMutableBytes { buffer -> Int32 in
      guard let base = buffer.baseAddress else { return -EINVAL }
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
