import CCommand
import Glibc
package import SallyportCore
package import SallyportSupport
package import SallyportSystem
import Synchronization

/// An account, and what is needed to read a file in its home.
package struct HomeAccount {
  package let account: Account
  package let home: String
  package let user: UInt32
  package let group: UInt32
  package var shell = ""
  /// The password of passwd(5), `x` where it stands in shadow(5).
  package var password = "*"

  /// Whether it is neither root nor a system account.
  package var isPerson: Bool { HomeAccount.people.contains(user) }

  package static let firstPerson: UInt32 = 1000
  /// The uids of people: the default UID_MIN and UID_MAX of login.defs(5).
  package static let people = firstPerson..<60_000

  /// Whether it is nobody's, or of those that systemd gives to services while they run.
  package static func isReserved(_ uid: UInt32) -> Bool {
    (61_184...65_535).contains(uid) || uid == .max
  }
}

/// Accounts for many names at once. If the account database is a file, each lookup reads all of it;
/// so for many names it is read once, and only missing names are looked up.
package struct AccountBook {
  private var known: [[UInt8]: Account] = [:]

  /// The number of names from which the whole database is read.
  private static let many = 32

  /// Looks up each name.
  init() {}

  package init(forNames count: Int) throws(StoreTrouble) {
    guard count >= AccountBook.many else { return }
    for one in try AccountBook.all() where known[one.account.name.bytes] == nil {
      known[one.account.name.bytes] = one.account
    }
  }

  /// The account with this name, spelled as in the database.
  package mutating func find(_ name: UserName) throws(StoreTrouble) -> Account {
    if let account = known[name.bytes] { return account }
    let found = try Accounts.find(name)
    known[name.bytes] = found
    return found
  }

  /// The position in the database is shared by the process: each of two readers would miss what the
  /// other gets.
  private static let reading = Mutex(())

  /// Every account that the database lists. Some sources list none, but find an account by name.
  package static func all() throws(StoreTrouble) -> [HomeAccount] {
    try reading.withLock { _ throws(StoreTrouble) in try list() }
  }

  private static func list() throws(StoreTrouble) -> [HomeAccount] {
    var accounts: [HomeAccount] = []
    setpwent()
    defer { endpwent() }
    while true {
      errno = 0
      // SAFETY: the entry is valid until the next call, and is copied before it.
      guard let entry = unsafe getpwent() else {
        // Some sources set ENOENT at the end.
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
          account: Account(
            name: name, uid: unsafe found.pw_uid, group: unsafe found.pw_gid),
          home: unsafe String(cString: home), user: unsafe found.pw_uid,
          group: unsafe found.pw_gid, shell: unsafe copied(found.pw_shell) ?? "",
          password: unsafe copied(found.pw_passwd) ?? "*"))
    }
  }

  @unsafe private static func copied(_ field: UnsafePointer<CChar>?) -> String? {
    // SAFETY: a C string of an entry, or NULL.
    unsafe field.map { unsafe String(cString: $0) }
  }
}

extension AccountBook {
  /// The names that the group lists, as they are spelled there; nil if there is no such group.
  package static func members(of group: String) throws(StoreTrouble) -> [[UInt8]]? {
    errno = 0
    // SAFETY: the entry is valid until the next lookup of a group, and is copied before it.
    guard let entry = unsafe getgrnam(group) else {
      if errno == 0 || errno == ENOENT { return nil }
      throw .system("getgrnam", path: group, errno: errno)
    }
    return unsafe members(of: entry.pointee)
  }

  @unsafe private static func members(of found: group) -> [[UInt8]] {
    var members: [[UInt8]] = []
    // SAFETY: a list of C strings that ends with NULL.
    guard var next = unsafe found.gr_mem else { return members }
    while let name = unsafe next.pointee {
      members.append(unsafe Array(UnsafeRawBufferPointer(start: name, count: strlen(name))))
      unsafe next += 1
    }
    return members
  }

  /// Every group that the database lists.
  static func groups() throws(StoreTrouble) -> [AccountFacts.Group] {
    try reading.withLock { _ throws(StoreTrouble) in
      var groups: [AccountFacts.Group] = []
      setgrent()
      defer { endgrent() }
      while true {
        errno = 0
        // SAFETY: the entry is valid until the next call, and is copied before it.
        guard let entry = unsafe getgrent() else {
          if errno == 0 || errno == ENOENT { return groups }
          throw .system("getgrent", path: "", errno: errno)
        }
        guard let name = unsafe entry.pointee.gr_name else { continue }
        groups.append(
          AccountFacts.Group(
            name: unsafe String(cString: name), number: unsafe entry.pointee.gr_gid,
            members: unsafe members(of: entry.pointee).map { String(decoding: $0, as: UTF8.self) },
            isInFile: false))
      }
    }
  }

  /// What the database lists of shadow(5).
  static func shadows() -> [ShadowEntry] {
    reading.withLock { _ in
      var entries: [ShadowEntry] = []
      setspent()
      defer { endspent() }
      // SAFETY: the entry is valid until the next call, and is copied before it.
      while let entry = unsafe getspent() {
        if let found = unsafe shadow(entry.pointee) { entries.append(found) }
      }
      return entries
    }
  }

  /// nil where it has none of this name.
  static func shadow(of name: String) -> ShadowEntry? {
    // SAFETY: the entry is valid until the next lookup, and is copied before it.
    unsafe getspnam(name).flatMap { unsafe shadow($0.pointee) }
  }

  @unsafe private static func shadow(_ found: spwd) -> ShadowEntry? {
    guard let name = unsafe copied(found.sp_namp), let hash = unsafe copied(found.sp_pwdp) else {
      return nil
    }
    let days = unsafe [found.sp_lstchg, found.sp_max, found.sp_inact, found.sp_expire].map {
      $0 == -1 ? nil : Int($0)
    }
    return ShadowEntry(
      name: name, hash: hash,
      aging: PasswordAging(
        changed: days[0], maximum: days[1], inactive: days[2], expires: days[3]))
  }

  /// Whether the database may have people who are not `listed`: nsswitch.conf has a source beyond
  /// this machine's files of which `listed` has nobody, so that it finds people by name alone, or
  /// several of them, or cannot be read.
  package static func mayLackPeople(_ listed: [HomeAccount], on machine: Machine) -> Bool {
    guard let count = NameSources(of: "passwd", on: machine).directories, count < 2 else {
      return true
    }
    guard count == 1 else { return false }
    guard let text = machine.bytes("/etc/passwd", limit: 64 << 20).value else { return true }
    let local = Set(text.split(separator: 0x0a).map { Array($0.prefix { $0 != 0x3a }) })
    return !listed.contains { one in
      let uid = one.user
      return uid >= HomeAccount.firstPerson && !HomeAccount.isReserved(uid)
        && !local.contains(one.account.name.bytes)
    }
  }

  /// Ends a sentence about such people.
  package static let unlisted = "whom a source in nsswitch.conf may not list"

  /// Adds the home directory; nil if the account does not exist.
  package static func home(of account: Account) throws(StoreTrouble) -> HomeAccount? {
    guard account.uid != nil else { return nil }
    errno = 0
    // SAFETY: the entry is valid until the next lookup, and is copied before it.
    guard let entry = unsafe getpwnam(String(decoding: account.name.bytes, as: UTF8.self)) else {
      throw .system("getpwnam", path: account.name.text, errno: errno != 0 ? errno : EIO)
    }
    let found = unsafe entry.pointee
    guard let home = unsafe found.pw_dir else {
      throw .system("getpwnam", path: account.name.text, errno: EIO)
    }
    return HomeAccount(
      account: account, home: unsafe String(cString: home), user: unsafe found.pw_uid,
      group: unsafe found.pw_gid, shell: unsafe copied(found.pw_shell) ?? "",
      password: unsafe copied(found.pw_passwd) ?? "*")
  }
}

/// The times that a local date can stand for: none, one, or two when clocks are set back.
package func moments(of date: CalendarDate) -> [UnixTime] {
  [Int32(0), 1].compactMap { summer in
    // SAFETY: a struct of numbers and a text that is not used; the pointer lives for the call,
    // which normalizes times that no local clock showed.
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
