import CSystem
package import SallyportCore
package import SallyportSystem
package import SallyportText

/// An account with what a file in its home needs.
package struct HomeAccount {
  package let account: Account
  package let home: String
  package let user: UInt32
  package let group: UInt32
}

/// Accounts for many names at once. Each look-up of its own reads the whole account database where
/// that is a file, so for many it is read once, and only what is not in it is looked up.
package struct AccountBook {
  private var known: [[UInt8]: Account] = [:]

  /// From so many names on the database is read as a whole.
  private static let many = 32

  package init(forNames count: Int) throws(StoreTrouble) {
    guard count >= AccountBook.many else { return }
    for one in try AccountBook.all() where known[one.account.name.bytes] == nil {
      known[one.account.name.bytes] = one.account
    }
  }

  /// The account of that name, by its own spelling.
  package mutating func find(_ name: UserName) throws(StoreTrouble) -> Account {
    if let account = known[name.bytes] { return account }
    let found = try Accounts.find(name)
    known[name.bytes] = found
    return found
  }

  /// Every account that the database lists. Some sources list none but answer for a name.
  package static func all() throws(StoreTrouble) -> [HomeAccount] {
    var accounts: [HomeAccount] = []
    accounts_begin()
    defer { accounts_end() }
    while true {
      var (user, group): (UInt32, UInt32) = (0, 0)
      var (name, home): (UnsafePointer<CChar>?, UnsafePointer<CChar>?) = (nil, nil)
      // SAFETY: both texts hold until the next call and are copied before it.
      let result = unsafe account_next(&name, &home, &user, &group)
      if result == 0 { return accounts }
      guard result == 1, let name = unsafe name, let home = unsafe home else {
        throw .system("getpwent", path: "", errno: result < 0 ? -result : EIO)
      }
      let text = unsafe (String(cString: name), String(cString: home))
      guard let userName = UserName(Array(text.0.utf8)) else { continue }
      accounts.append(
        HomeAccount(
          account: Account(name: userName, uid: user), home: text.1, user: user, group: group))
    }
  }
}

extension AccountBook {
  /// Where the home of an account is; nil without an account.
  package static func home(of account: Account) throws(StoreTrouble) -> HomeAccount? {
    guard account.uid != nil else { return nil }
    var (user, group): (UInt32, UInt32) = (0, 0)
    var home: UnsafePointer<CChar>?
    // SAFETY: the text holds until the next call and is copied before it.
    let result = unsafe String(decoding: account.name.bytes, as: UTF8.self).withCString {
      unsafe account_named($0, &home, &user, &group)
    }
    guard result == 1, let home = unsafe home else {
      throw .system("getpwnam", path: account.name.text, errno: result < 0 ? -result : EIO)
    }
    return HomeAccount(
      account: account, home: unsafe String(cString: home), user: user, group: group)
  }
}

/// The moments that a local date can mean: none, one, or two where clocks are set back.
package func moments(of date: CalendarDate) -> [UnixTime] {
  [false, true].compactMap { summer in
    var seconds: Int64 = 0
    // SAFETY: filled within the call.
    let isTime = unsafe time_of(
      Int32(date.year), Int32(date.month), Int32(date.day), Int32(date.hour), Int32(date.minute),
      Int32(date.second), summer, &seconds)
    return isTime ? UnixTime(seconds) : nil
  }
}
