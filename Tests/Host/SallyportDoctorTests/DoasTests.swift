import PAMStack
import Testing

@testable import SallyportDoctor

@Suite struct `A rule of doas` {
  private let fake = FakeMachine()

  private func doas(_ name: String, _ text: String, as target: String? = nil) throws -> RootRules {
    try fake.write("/etc/doas.conf", text)
    let accounts = ["root", "web", "alice", "bob"].map(person)
    let facts = AccountFacts(
      accounts: accounts, groups: [AccountFacts.Group(name: "ops", number: 2000, members: [])])
    return Doas(of: fake.machine, facts).rules(for: person(name), as: target.map(person))
  }

  @Test(arguments: [
    ("permit alice", "caller doas 1"), ("permit nopass alice", "nopass 1"), ("", "none"),
    ("permit bob", "none"), ("permit :ops", "caller doas 1"), ("permit :2000", "caller doas 1"),
    ("permit 1005", "caller doas 1"), ("permit :nobodys", "none"),
    ("permit nopass alice\npermit :ops", "caller doas 2"), ("permit alice\ndeny :ops", "none"),
    ("permit alice as root", "caller doas 1"), ("permit alice as 0", "caller doas 1"),
    ("permit alice as web", "none"), ("permit nopass alice cmd id", "none"),
    ("permit persist keepenv setenv { -A B=$C \"D E\" } alice # x", "caller doas 1"),
    ("permit nopass keepenv \\\n  alice", "nopass 1"), ("permit \"alice\"", "caller doas 1"),
    ("permit \\\n nopass alice", "none"),
    ("permit nolog nopass alice as root cmd id args", "none"),
    // what doas cannot parse
    ("permit nopass alice\npermitt bob", "none"), ("permit nopass persist alice", "none"),
    ("deny nopass bob\npermit alice", "none"), ("permit nopass alice as", "none"),
    ("permit nopass alice extra", "none"),
  ]) func `is the last that matches`(lines: String, answer: String) throws {
    #expect(said(try doas("alice", lines + "\n").shell) == answer)
  }

  @Test func `may be for some commands, or for another account`() throws {
    let some = try doas("alice", "permit alice\npermit nopass alice cmd id\n")
    #expect(said(some.shell) == "caller doas 1" && some.someCommands.map(said) == ["nopass 2"])
    let denied = try doas("alice", "permit nopass alice cmd id args -u\ndeny alice cmd id\n")
    #expect(denied.someCommands.isEmpty)
    let covered = try doas("alice", "permit nopass alice cmd id\npermit alice\n")
    #expect(said(covered.shell) == "caller doas 2" && covered.someCommands.isEmpty)
    #expect(said(try doas("alice", "permit alice as web\n", as: "web").shell) == "caller doas 1")
    // doas asks root too.
    #expect(said(try doas("root", "permit root\n").shell) == "caller doas 1")
  }

  @Test func `does not count where others may write the file`() throws {
    try fake.write("/etc/doas.conf", "permit nopass alice\n")
    try fake.change("/etc/doas.conf", mode: 0o664)
    let accounts = AccountFacts(accounts: [person("alice")])
    let doas = Doas(of: fake.machine, accounts)
    #expect(doas.fault == FileLocation(file: "/etc/doas.conf"))
    #expect(doas.rules(for: person("alice")).shell == .none)
  }

  @Test func `does not count where the last line has no end`() throws {
    #expect(try doas("alice", "permit nopass alice\npermit bob").shell == .none)
    #expect(said(try doas("alice", "permit nopass alice\n# the end").shell) == "nopass 1")
  }

  @Test func `is not known for a group of an account that a directory has`() throws {
    try fake.write("/etc/doas.conf", "permit nopass 1005\npermit :ops\n")
    var account = person("alice")
    (account.groups, account.source) = ([], .database(["sss"]))
    let doas = Doas(of: fake.machine, AccountFacts(accounts: [account]))
    #expect(doas.rules(for: account).shell == .unseen(.group("ops")))
    // One group may have it, the other not.
    try fake.write(
      "/etc/doas.conf", "permit nopass :ops\ndeny :staff\npermit :ops cmd id\n")
    let either = Doas(of: fake.machine, AccountFacts(accounts: [account])).rules(for: account)
    #expect(either.shell == .unseen(.group("ops")))
    #expect(either.someCommands.isEmpty)
    try fake.write("/etc/doas.conf", "permit 1005\npermit nopass :ops cmd id\n")
    let some = Doas(of: fake.machine, AccountFacts(accounts: [account])).rules(for: account)
    #expect(said(some.shell) == "caller doas 1")
    #expect(some.someCommands == [.unseen(.group("ops"))])
    try fake.write("/etc/doas.conf", "permit nopass :ops\npermit 1005\n")
    let sure = Doas(of: fake.machine, AccountFacts(accounts: [account])).rules(for: account)
    #expect(said(sure.shell) == "caller doas 2")
  }
}
