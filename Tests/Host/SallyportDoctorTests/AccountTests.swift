import Foundation
import Glibc
import SallyportCore
import SallyportSystem
import Testing

@testable import PAMStack
@testable import SallyportDoctor

/// Who is on the machine, and what of theirs lets them in.
@Suite struct `Accounts of the machine` {
  private let fake = FakeMachine()

  private func write(passwd: String, shadow: String = "", group: String = "") throws {
    try fake.write("/etc/passwd", passwd)
    try fake.write("/etc/shadow", shadow)
    try fake.write("/etc/group", group)
  }

  private static func listed(_ name: String, _ uid: UInt32) throws -> HomeAccount {
    let name = try #require(UserName(Array(name.utf8)))
    return HomeAccount(
      account: Account(name: name, uid: uid, group: uid), home: "/", user: uid, group: uid,
      shell: "/bin/bash")
  }

  private func database(
    _ accounts: [HomeAccount], groups: [AccountFacts.Group] = [],
    find: [HomeAccount] = []
  ) -> AccountDatabase {
    AccountDatabase(
      accounts: { accounts }, groups: { groups },
      find: { name in find.first { $0.account.name == name } })
  }

  @Test func `Everybody is listed, whatever the uid and the source`() throws {
    try write(
      passwd: "root:x:0:0::/root:/bin/sh\ngit:x:999:999::/srv/git:/bin/sh\n#no:x:1:1::/:/bin/sh\n"
        + "toor:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/usr/sbin/nologin\n+nis::::::\n"
        + "git:x:1000:1000::/:/bin/sh\nshort:x:1\n")
    try fake.write("/etc/nsswitch.conf", "passwd: files sss systemd\n")
    let lisa = try Self.listed("lisa", 70_001)
    let accounts = AccountFacts(
      of: fake.machine, listing: database([try Self.listed("git", 999), lisa]))
    #expect(accounts.accounts.map(\.name) == ["root", "git", "toor", "nobody", "lisa"])
    #expect(accounts.accounts.map(\.uid) == [0, 999, 0, 65_534, 70_001])
    #expect(accounts["git"]?.source == .files)
    #expect(accounts["lisa"]?.source == .database(["sss", "systemd"]))
    #expect(accounts["lisa"]?.password == .elsewhere)
    #expect(accounts["lisa"]?.shell == "/bin/bash")
    #expect(accounts["nis"] == nil)
    #expect(accounts.gaps == [])
  }

  @Test func `A key without a password, or a password, makes a login of any uid`() throws {
    try write(
      passwd: "git:x:999:999::/srv/git:/bin/sh\nweb:x:33:33::/srv/web:/bin/sh\n"
        + "mail:x:8:8::/srv/mail:/bin/sh\nsync:x:4:4::/srv/git:/bin/sync\n",
      shadow: "git:!:1::::::\nweb:$6$x:1::::::\nmail:*:1::::::\nsync:$6$x:1::::::\n")
    try fake.write("/srv/git/.ssh/authorized_keys", "ssh-ed25519 AAAA\n")
    try fake.write("/srv/mail/.ssh/authorized_keys/directory", "")
    let accounts = AccountFacts(of: fake.machine)
    #expect(accounts.people.map(\.name) == ["git", "web"])
    #expect(accounts["git"]?.isPerson == false)
  }

  @Test(arguments: [
    ("x", "!", PasswordState.none, true), ("x", "!!", .none, true), ("x", "*", .none, false),
    ("x", "!$6$salt$hash", .none, true), ("x", "", .blank, false), ("x", "$6$x", .some, false),
    ("x", "x", .none, false), ("x", "ab0123456789.", .some, false), ("", "*", .blank, false),
    ("*", "$6$x", .none, false), ("$1$x", "*", .some, false), ("##a", "", .blank, false),
    ("x", "$6$x:x", .none, false),
  ])
  func `A password is none, blank or some`(
    passwd: String, shadow: String, state: PasswordState, isLocked: Bool
  ) throws {
    try write(passwd: "a:\(passwd):1000:1000::/:/bin/sh\n", shadow: "a:\(shadow):1::::::\n")
    let account = try #require(AccountFacts(of: fake.machine)["a"])
    #expect(account.password == state)
    #expect(account.isLocked == isLocked)
  }

  @Test func `With an empty password one can be let in, and without a line of shadow not`() throws {
    try write(
      passwd: "blank:x:1000:1000::/:/bin/sh\nlost:x:1001:1001::/:/bin/sh\n",
      shadow: "blank::1::::::\n")
    let accounts = AccountFacts(of: fake.machine)
    #expect(accounts.people.map(\.name) == ["blank"])
    #expect(accounts["lost"]?.password == PasswordState.none)
    #expect(accounts["lost"]?.aging == nil && accounts["blank"]?.aging != nil)
  }

  /// The days of a line of shadow: changed, minimum, maximum, warning, inactive, expires.
  @Test(arguments: [
    ("", PasswordAging.State.valid), ("19000:0:99999:7::", .valid), ("0:0:99999:7::", .mustChange),
    ("19990:0:20:7::", .valid), ("19980:0:20:7::", .mustChange), ("19970:0:20:7:11:", .mustChange),
    ("19970:0:20:7:10:", .inactive), ("19980:0:20:7:0:", .inactive), (":0:20:7:0:", .valid),
    ("20001:0:1:7:0:", .valid), ("20000:5:99999:7::", .valid), ("0:0:20:7::20000", .expired),
    ("19990:0:20:7::20001", .valid), ("19990:0:20:7::0", .expired), ("19990:0:20:7::-1", .valid),
    ("19990:0:-1:7:0:", .valid), ("19000:0:9223372036854775807:7:9223372036854775807:", .valid),
  ])
  func `A password and an account end as pam_unix has it`(days: String, state: PasswordAging.State)
    throws
  {
    try write(passwd: "a:x:1000:1000::/:/bin/sh\n", shadow: "a:$6$x:\(days):\n")
    #expect(AccountFacts(of: fake.machine)["a"]?.aging?.state(on: 20_000) == state)
  }

  /// The limits before Linux-PAM 1.6.
  @Test(arguments: [
    ("19980:0:20:7::", [PasswordAging.State.mustChange, .valid]), ("19979:0:20:7::", [.mustChange]),
    ("19970:0:20:7:10:", [.inactive, .mustChange]), ("19969:0:20:7:10:", [.inactive]),
    (":0:20:7::", [.valid, .mustChange]), (":0:20:7:0:", [.valid, .inactive]),
    ("0:0:20:7:0:", [.mustChange]), ("19990:0:20:7::20000", [.expired]),
    ("19000:0:9223372036854775807:7:9223372036854775807:", [.valid]),
    ("19990:0:5:7:9223372036854775807:", [.mustChange]), ("19990:0:20:7:5:", [.valid]),
    ("19990:0:5:7:9:", [.mustChange]),
  ])
  func `On some days the versions of pam_unix differ`(
    days: String, states: [PasswordAging.State]
  ) throws {
    try write(passwd: "a:x:1000:1000::/:/bin/sh\n", shadow: "a:$6$x:\(days):\n")
    #expect(AccountFacts(of: fake.machine)["a"]?.aging?.states(on: 20_000) == states)
  }

  @Test func `Of a directory's account pam_unix has what the name service tells`() throws {
    try write(passwd: "a:x:1000:1000::/:/bin/sh\n", shadow: "a:*:1::::::\n")
    let fields = [
      ("star", "*"), ("hash", "$6$x"), ("lost", "x"), ("kept", "x"), ("over", "##over"),
    ]
    let people = try fields.map { name, field in
      var one = try Self.listed(name, 70_000)
      one.password = field
      return one
    }
    var all = database(people)
    var count = 0
    all.shadows = {
      count += 1
      return [
        ShadowEntry(name: "kept", hash: "$6$x", aging: PasswordAging(changed: 19_000)),
        ShadowEntry(name: "over", hash: "*", aging: PasswordAging(expires: 1)),
        ShadowEntry(name: "star", hash: "$6$x", aging: PasswordAging(expires: 1)),
      ]
    }
    let accounts = AccountFacts(of: fake.machine, listing: all)
    let found = fields.compactMap { accounts[$0.0] }
    #expect(found.map(\.password) == [.elsewhere, .some, .elsewhere, .some, .elsewhere])
    #expect(
      found.map { $0.aging?.state(on: 20_000) } == [.valid, .valid, nil, .valid, .expired])
    #expect(count == 1)
    var one = try Self.listed("named", 70_001)
    one.password = "x"
    var named = database([], find: [one])
    named.shadow = { ShadowEntry(name: $0, hash: "$6$x", aging: PasswordAging(expires: 1)) }
    var others = AccountFacts(of: fake.machine)
    others.look(for: ["named"], of: fake.machine, in: named)
    #expect(others["named"]?.password == .some)
    #expect(others["named"]?.aging?.state(on: 20_000) == .expired)
  }

  @Test func `A shell gives a prompt, ends at once, or is not there`() throws {
    try write(
      passwd: "a:x:1:1::/:\nb:x:2:2::/:/usr/sbin/nologin\nc:x:3:3::/:/bin/gone\n"
        + "d:x:4:4::/:/bin/plain\n")
    for shell in ["/bin/sh", "/usr/sbin/nologin", "/bin/plain"] { try fake.write(shell, "") }
    for shell in ["/bin/sh", "/usr/sbin/nologin"] {
      // SAFETY: a C string that lives for the call.
      try #require(unsafe chmod(fake.root + shell, 0o755) == 0)
    }
    try fake.write("/etc/shells", "# shells\n/bin/sh\n/bin/gone\n")
    let accounts = AccountFacts(of: fake.machine)
    let shells = accounts.accounts.map { accounts.shell(of: $0) }
    #expect(shells.map(\.isThere) == [true, true, false, false])
    #expect(shells.map(\.endsAtOnce) == [false, true, false, false])
    #expect(shells.map(\.isListed) == [true, false, true, false])
    #expect(shells.map(\.givesPrompt) == [true, false, false, false])
  }

  @Test func `A source that is not read, or cannot be listed, is told`() throws {
    try write(passwd: "a:x:1000:1000::/:/bin/sh\n")
    try FileManager.default.removeItem(atPath: fake.root + "/etc/shadow")
    try fake.write("/etc/shadow/directory", "")
    try fake.write("/etc/nsswitch.conf", "passwd: files sss\ngroup: files sss\n")
    let accounts = AccountFacts(of: fake.machine)
    #expect(
      accounts.gaps == [
        .unread("/etc/shadow", "/etc/shadow: Invalid argument (EINVAL)"), .unlisted(["sss"]),
      ])
    #expect(accounts["a"]?.password == .unknown)
    #expect(accounts["a"]?.hasPassword == nil)
    let failing = AccountDatabase(
      accounts: { () throws(StoreTrouble) in throw .system("getpwent", path: "", errno: EIO) },
      groups: { [] }, find: { _ in nil })
    let cut = AccountFacts(of: fake.machine, listing: failing)
    #expect(cut.gaps.count == 2)
    #expect(cut.accounts.map(\.name) == ["a"])
    #expect(!cut.knowsGroups(of: try #require(cut["a"])))
  }

  @Test func `Who is not listed is looked up by the name, a number of them`() throws {
    try write(passwd: "a:x:1000:1000::/:/bin/sh\n", group: "staff:x:50:ldap\n")
    let sources = database([], find: [try Self.listed("ldap", 70_000)])
    var accounts = AccountFacts(of: fake.machine)
    accounts.look(for: ["a", "ldap", "gone", ""], of: fake.machine, in: sources)
    #expect(accounts.accounts.map(\.name) == ["a", "ldap"])
    #expect(accounts["ldap"]?.source == .named)
    #expect(accounts["ldap"]?.groups == [50])
    #expect(accounts.gaps == [])
    let many = (0...AccountFacts.mostNames).map { "name\($0)" }
    accounts.look(for: many, of: fake.machine, in: sources)
    #expect(accounts.gaps == [.tooManyNames(AccountFacts.mostNames)])
  }

  @Test func `Groups have those whom they list and those whose own they are`() throws {
    try write(
      passwd: "a:x:1000:100::/:/bin/sh\nb:x:1001:1001::/:/bin/sh\n",
      group: "users:x:100:b\nalso:x:100:\nsudo:x:27:\nadm:x:4:a\n")
    let sudo = AccountFacts.Group(name: "sudo", number: 27, members: ["a"], isInFile: false)
    let other = AccountFacts.Group(name: "other", number: 70, members: ["b"], isInFile: false)
    let accounts = AccountFacts(of: fake.machine, listing: database([], groups: [sudo, other]))
    let (a, b) = (try #require(accounts["a"]), try #require(accounts["b"]))
    #expect(accounts.groupNames(of: a) == ["users", "also", "sudo", "adm"])
    #expect(accounts.groupNames(of: b) == ["users", "also", "other"])
    #expect(accounts.members(of: "users") == ["b", "a"])
    #expect(accounts.isMember(a, of: "also") == .yes)
    #expect(accounts.isMember(b, of: "adm") == Tristate.no)
    #expect(accounts.isMember(b, of: "gone") == .unknown)
    try fake.write("/etc/nsswitch.conf", "group: files sss\n")
    let unsure = AccountFacts(of: fake.machine, listing: database([]))
    #expect(unsure.isMember(b, of: "users") == .yes)
    #expect(unsure.isMember(b, of: "adm") == nil)
  }

  @Test func `The end of a long file counts`() throws {
    let hash = "$6$" + String(repeating: "x", count: 100)
    let names = (1...11_000).map { "user\($0)" }
    try write(
      passwd: names.enumerated().map { "\($1):x:\(1000 + $0):100::/:/bin/sh\n" }.joined(),
      shadow: names.dropLast().map { "\($0):\(hash):1::::::\n" }.joined() + "user11000:!:1::::::\n")
    let accounts = AccountFacts(of: fake.machine)
    #expect(accounts.accounts.count == 11_000)
    #expect(accounts["user11000"]?.password == PasswordState.none)
    #expect(accounts["user10999"]?.password == .some)
  }

  @Test func `The groups of this machine's accounts are those that the name service finds`() throws
  {
    let accounts = AccountFacts(of: Machine())
    #expect(!accounts.accounts.isEmpty && !accounts.groups.isEmpty)
    for account in accounts.accounts where accounts.knowsGroups(of: account) {
      let name = try #require(UserName(Array(account.name.utf8)))
      let found = Account(name: name, uid: account.uid, group: account.group)
      for group in accounts.groups {
        let truth = Accounts.isMember(found, of: Array(group.name.utf8))
        #expect(accounts.isMember(account, of: group.name) == truth, "\(name) \(group.name)")
      }
    }
  }
}
