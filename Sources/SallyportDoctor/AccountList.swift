import Glibc
package import SallyportCore
package import SallyportSystem
package import SallyportText
import Synchronization

/// An account with what a file in its home needs.
package struct HomeAccount {
  package let account: Account
  package let home: String
  package let user: UInt32
  package let group: UInt32

  /// Neither root nor a service: the usual UID_MIN and UID_MAX of login.defs(5).
  package var isPerson: Bool { (1000..<60_000).contains(user) }
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

  /// The process has one place in the database: two readers would each miss what the other gets.
  private static let reading = Mutex(())

  /// Every account that the database lists. Some sources list none but answer for a name.
  package static func all() throws(StoreTrouble) -> [HomeAccount] {
    try reading.withLock { _ throws(StoreTrouble) in try list() }
  }

  private static func list() throws(StoreTrouble) -> [HomeAccount] {
    var accounts: [HomeAccount] = []
    setpwent()
    defer { endpwent() }
    while true {
      errno = 0
      // SAFETY: the entry holds until the next call and is copied before it.
      guard let entry = unsafe getpwent() else {
        // At the end some sources leave ENOENT.
        if errno == 0 || errno == ENOENT { return accounts }
        throw .system("getpwent", path: "", errno: errno)
      }
      let found = unsafe entry.pointee
      guard let text = unsafe found.pw_name, let home = unsafe found.pw_dir else {
        throw .system("getpwent", path: "", errno: EIO)
      }
      guard let name = unsafe UserName(Array(String(cString: text).utf8)) else { continue }
      accounts.append(
        HomeAccount(
          account: Account(name: name, uid: unsafe found.pw_uid),
          home: unsafe String(cString: home), user: unsafe found.pw_uid,
          group: unsafe found.pw_gid))
    }
  }
}

extension AccountBook {
  /// Where the home of an account is; nil without an account.
  package static func home(of account: Account) throws(StoreTrouble) -> HomeAccount? {
    guard account.uid != nil else { return nil }
    errno = 0
    // SAFETY: the entry holds until the next look-up and is copied before it.
    guard let entry = unsafe getpwnam(String(decoding: account.name.bytes, as: UTF8.self)) else {
      throw .system("getpwnam", path: account.name.text, errno: errno != 0 ? errno : EIO)
    }
    let found = unsafe entry.pointee
    guard let home = unsafe found.pw_dir else {
      throw .system("getpwnam", path: account.name.text, errno: EIO)
    }
    return HomeAccount(
      account: account, home: unsafe String(cString: home), user: unsafe found.pw_uid,
      group: unsafe found.pw_gid)
  }
}

/// The moments that a local date can mean: none, one, or two where clocks are set back.
package func moments(of date: CalendarDate) -> [UnixTime] {
  [Int32(0), 1].compactMap { summer in
    // SAFETY: a structure of numbers and a text that is not used; the pointer lives for the call,
    // which puts right what no clock here showed.
    var fields = unsafe tm()
    unsafe (fields.tm_year, fields.tm_mon) = (Int32(date.year) - 1900, Int32(date.month) - 1)
    unsafe (fields.tm_mday, fields.tm_hour) = (Int32(date.day), Int32(date.hour))
    unsafe (fields.tm_min, fields.tm_sec) = (Int32(date.minute), Int32(date.second))
    unsafe fields.tm_isdst = summer
    let seconds = unsafe mktime(&fields)
    guard unsafe fields.tm_isdst == summer else { return nil }
    let time = UnixTime(Int64(seconds))
    return CalendarDate(time) == date ? time : nil
  }
}
