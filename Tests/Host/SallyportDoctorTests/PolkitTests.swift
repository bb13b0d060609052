import Foundation
import Testing

@testable import PAMStack
@testable import SallyportDoctor

/// Whom polkit asks.
@Suite struct `polkit's rules` {
  private let fake = FakeMachine()
  private let accounts = AccountFacts(
    accounts: [
      .init(name: "root", uid: 0, group: 0, shell: "/bin/sh"),
      .init(name: "alice", uid: 1000, group: 1000, shell: "/bin/sh", groups: [27]),
      .init(name: "bob", uid: 1001, group: 27, shell: "/bin/sh"),
      .init(name: "carol", uid: 1002, group: 1002, shell: "/bin/sh", groups: [10]),
    ],
    groups: [
      .init(name: "sudo", number: 27, members: ["alice", "root", "gone"]),
      .init(name: "wheel", number: 10, members: ["carol"]),
    ])

  /// As Debian's, but for what differs.
  private func facts(
    _ files: [String: String] = [:], default value: String = "auth_admin"
  ) throws -> PolkitFacts {
    for path in ["/usr/lib/polkit-1/polkitd", "/usr/bin/pkexec"] { try fake.write(path, "") }
    try fake.write(
      "/usr/share/polkit-1/actions/org.freedesktop.policykit.policy",
      "<action id=\"org.freedesktop.policykit.exec\">\n<defaults><allow_any> \(value) </allow_any>"
        + "<allow_active>yes</allow_active></defaults></action>\n"
        + "<action id=\"x\"><allow_any>yes</allow_any></action>\n")
    try write(
      "/usr/share/polkit-1/rules.d/50-default.rules",
      "/* a */\n// b\npolkit.addAdminRule(function(action, subject) {\n"
        + "    return [\"unix-group:sudo\"];\n});\n")
    for (path, text) in files { try write(path, text) }
    return PolkitFacts(of: fake.machine)
  }

  @Test func `the settings of an older polkit count where it reads them`() throws {
    let pkla = "/etc/polkit-1/localauthority/50-local.d/x.pkla"
    try write(pkla, "[x]\n")
    #expect(!(try facts().files.map(\.path).contains(pkla)))
    let compat = "/usr/share/polkit-1/rules.d/49-polkit-pkla-compat.rules"
    try write(compat, "x")
    #expect(try facts().files.first?.path == pkla)
    #expect(try facts().files.first?.rules == .unseen)
    try FileManager.default.removeItem(atPath: fake.root + pkla)
    #expect(try facts().files.count == 1)
    try write(pkla, "[x]\n")
    _ = try facts()
    try FileManager.default.removeItem(atPath: fake.root + "/usr/share/polkit-1/rules.d")
    #expect(PolkitFacts(of: fake.machine).files.map(\.path) == [pkla])
  }

  private func write(_ path: String, _ text: String) throws { try fake.write(path, text) }

  private static func rule(_ body: String) -> String {
    "polkit.addRule(function(action, subject) { \(body) });\n"
  }

  private static func administrators(_ names: String) -> String {
    "polkit.addAdminRule(function(action, subject) {return [\(names)];});"
  }

  private func answer(_ body: String, for name: String = "carol") throws -> PolkitFacts.Answer {
    let facts = try facts(["/etc/polkit-1/rules.d/10-x.rules": Self.rule(body)])
    return facts.answer(.pkexec, for: try #require(accounts[name]), among: accounts)
  }

  @Test func `A way is there with its program, polkitd and the action`() throws {
    #expect(PolkitFacts(of: fake.machine).ways == [])
    #expect(try facts().ways == [.pkexec])
    try fake.write("/usr/bin/run0", "")
    #expect(try facts().ways == [.pkexec])
    try fake.write(
      "/usr/share/polkit-1/actions/org.freedesktop.systemd1.policy",
      "<action id=\"org.freedesktop.systemd1.manage-units\"><allow_any>auth_admin</allow_any>")
    #expect(try facts().ways == [.pkexec, .run0])
  }

  @Test(arguments: [
    ("", ["alice", "bob"]), ("\"unix-user:carol\", \"unix-group:wheel\"", ["carol", "carol"]),
    ("\"unix-user:1001\"", ["bob"]), ("\"unix-group:10\"", ["carol"]),
    ("'unix-user:nobody'", ["root"]), ("\"unix-netgroup:x\", \"strange\"", ["root"]),
    ("\"unix-user:0\"", ["root"]),
  ])
  func `The first list of administrators counts, and root where it names nobody`(
    names: String, expected: [String]
  ) throws {
    let text = names.isEmpty ? "" : Self.administrators(names)
    let facts = try facts(["/etc/polkit-1/rules.d/40-a.rules": text])
    let found = facts.administrators(among: accounts)
    #expect(found.names == expected && found.unseen == nil)
  }

  @Test func `Files come in the order of their names, those of etc first`() throws {
    let facts = try facts([
      "/usr/share/polkit-1/rules.d/49-a.rules": Self.administrators("\"unix-user:bob\""),
      "/etc/polkit-1/rules.d/49-a.rules": Self.administrators("\"unix-user:carol\""),
      "/etc/polkit-1/rules.d/99-z.rules": Self.administrators("\"unix-user:root\""),
      "/etc/polkit-1/rules.d/00-a.rules.bak": Self.administrators("\"unix-user:root\""),
    ])
    #expect(facts.administrators(among: accounts).names == ["carol"])
  }

  @Test(arguments: [
    "polkit.addAdminRule(function(action, subject) { return admins; });",
    "var x = 1;", "polkit.addRule(f);", "polkit.addAdminRule(function(a, s) { return []; });",
    rule("if (f(action)) { return polkit.Result.YES; }"), "polkit.addRule(\"a", "/* a",
    rule("if (action.id != \"x\") { return polkit.Result.YES; }"),
    rule("if (action.id == \"x\" || subject.user == \"carol\") { return polkit.Result.YES; }"),
    rule("if (action.id == \"x\") { return polkit.Result.YES; } else { return polkit.Result.NO; }"),
    rule("if ((action.id == \"x\") || subject.local) return polkit.Result.YES;"),
  ])
  func `A file with anything else is not seen through`(text: String) throws {
    let path = "/etc/polkit-1/rules.d/10-x.rules"
    let facts = try facts([path: text])
    #expect(facts.administrators(among: accounts).unseen == path)
    let carol = try #require(accounts["carol"])
    #expect(facts.answer(.pkexec, for: carol, among: accounts) == .unseen(path))
  }

  private static let file = "/etc/polkit-1/rules.d/10-x.rules"
  private static let exec = "action.id == \"org.freedesktop.policykit.exec\""

  @Test(arguments: [
    ("", PolkitFacts.Answer.asksAdministrator),
    ("if (subject.isInGroup(\"wheel\")) { return polkit.Result.YES; }", .asksNothing(file)),
    ("if (subject.isInGroup(\"sudo\")) { return polkit.Result.YES; }", .asksAdministrator),
    ("if (subject.isInGroup(\"empower\")) { return polkit.Result.YES; }", .asksAdministrator),
    ("if (\(exec)) return polkit.Result.NO;", .refuses(file)),
    ("if (\(exec) && subject.user == 'carol') return polkit.Result.AUTH_SELF", .asksCaller),
    ("if (\(exec) && subject.user == 'bob') { return polkit.Result.YES; }", .asksAdministrator),
    ("if (\(exec) && subject.local) { return polkit.Result.YES; }", .unseen(file)),
    (
      "if ((action.id === \"a\" || \(exec)) && subject.user === \"carol\") "
        + "return polkit.Result.YES;",
      .asksNothing(file)
    ),
    (
      "if (action.id.indexOf(\"org.freedesktop.\") == 0) { return polkit.Result.YES; }",
      .asksNothing(file)
    ),
    (
      "if (action.id == \"a\" && subject.active == true) { return polkit.Result.YES; }",
      .asksAdministrator
    ),
    (
      "if (\(exec)) { return polkit.Result.AUTH_ADMIN; } return polkit.Result.YES;",
      .asksAdministrator
    ),
    ("return polkit.Result.YES;", .asksNothing(file)),
  ])
  func `The first rule that is for the caller and the action counts`(
    body: String, expected: PolkitFacts.Answer
  ) throws {
    #expect(try answer(body) == expected)
  }

  @Test(arguments: [
    ("auth_self", PolkitFacts.Answer.asksCaller), ("auth_admin_keep", .asksAdministrator),
    ("no", .refuses("/usr/share/polkit-1/actions")),
    ("yes", .asksNothing("/usr/share/polkit-1/actions")),
  ])
  func `Without a rule the action itself says what is asked`(
    value: String, expected: PolkitFacts.Answer
  ) throws {
    let facts = try facts(default: value)
    let alice = try #require(accounts["alice"])
    #expect(facts.answer(.pkexec, for: alice, among: accounts) == expected)
  }

  @Test func `A directory's members are not known`() throws {
    let unsure = AccountFacts(
      accounts: accounts.accounts, groups: accounts.groups, hasAllGroups: false)
    let rule = Self.rule("if (subject.isInGroup(\"ops\")) { return polkit.Result.YES; }")
    let facts = try facts([Self.file: rule])
    let alice = try #require(unsure["alice"])
    #expect(facts.answer(.pkexec, for: alice, among: unsure) == .unseen(Self.file))
  }

  @Test(
    .enabled(
      if: FileManager.default.fileExists(atPath: "/usr/lib/polkit-1/polkitd"), "there is no polkit")
  )
  func `The rules of this machine's packages are understood`() {
    let facts = PolkitFacts(of: Machine())
    #expect(facts.ways.contains(.pkexec))
    for (path, rules) in facts.files where path.hasPrefix("/usr/share") {
      #expect(rules != .unseen, "\(path)")
    }
  }
}
