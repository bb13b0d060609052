import SallyportAdministration
import SallyportCore
import Testing

/// The files of a machine.
private func rules(_ files: [String: String], unseen: Set<String> = []) -> RootNames {
  RootNames(
    of: RuleFiles(
      text: { path in
        if unseen.contains(path) { return .unseen("\(path): no") }
        return files[path].map { .seen($0) } ?? .absent
      },
      names: { directory in
        if unseen.contains(directory) { return nil }
        let inside = (Array(files.keys) + unseen).filter { $0.hasPrefix("\(directory)/") }
        let names = inside.map { path in
          String(path.dropFirst(directory.count + 1).prefix { $0 != "/" })
        }
        return Set(names).sorted()
      }))
}

private func person(_ name: String, uid: UInt32 = 1002, group: UInt32 = 1002) throws -> Account {
  Account(name: try #require(UserName(name.utf8)), uid: uid, group: group)
}

/// Of bob, who is in these groups.
private func power(_ names: RootNames, in groups: [String] = [], name: String = "bob") throws
  -> RootPower
{
  RootPower(of: try person(name), by: names) { groups.contains($0) ? .yes : .no }
}

@Suite struct `Whether the rules of a machine make somebody root` {
  // shows: climb-root
  @Test(arguments: [
    "bob ALL=(ALL) ALL", "BOB ALL=(ALL) /bin/ls", "bob ALL=(carol) NOPASSWD: /usr/bin/x",
    "carol, bob web=ALL", "carol , !bob\tALL = ALL", "#1002 ALL=ALL", "ALL ALL=(ALL) ALL",
    "%ops ALL=(ALL) ALL", "carol,\\\n  %ops ALL=ALL", "User_Alias A = carol, bob\nA ALL=ALL",
    "User_Alias A = x : B = carol,%ops\n", "\"bob\" ALL=ALL", "b\\ob ALL=ALL",
    "x ALL=ALL # y\nbob ALL=ALL", "# a \\\nbob ALL=ALL", "  bob ALL=ALL : web=(root) ALL",
  ]) func `is yes where any rule of sudo names him`(_ text: String) throws {
    let found = try power(rules(["/etc/sudoers": text]), in: ["ops"])
    guard case .some(let place) = found else {
      Issue.record("\(found)")
      return
    }
    #expect(place.hasPrefix("/etc/sudoers:"))
  }

  @Test func `is no where the rules are for others`() throws {
    let text = """
      # bob ALL=(ALL) ALL
      Defaults env_reset
      Defaults:bob !authenticate
      Defaults!/usr/bin/x pam_service=bob
      Host_Alias BOB = bob
      Cmnd_Alias SHELLS = /bin/sh, /bin/bob
      Runas_Alias OP = bob
      root ALL=(ALL:ALL) ALL
      %sudo ALL=(ALL:ALL) ALL
      carol bob = (bob) /usr/bin/bob
      @includedir /etc/sudoers.d
      #include sudoers.local
      """
    let files = [
      "/etc/sudoers": text, "/etc/sudoers.d/one.bak": "bob ALL=ALL", "/etc/sudoers.d/a~": "?",
      "/etc/sudoers.d/two": "dave ALL=ALL", "/etc/nsswitch.conf": "sudoers: files sss\n",
    ]
    #expect(try power(rules(files), in: ["users"]) == .none)
    for path in ["/etc/sudoers.d/two", "/etc/sudoers.local"] {
      let found = try power(rules(files.merging([path: "bob ALL=ALL"]) { $1 }))
      #expect(found == .some("\(path):1"))
    }
  }

  // decisive
  // shows: climb-root
  @Test(arguments: [
    "x", "?", "+web ALL=ALL", "%:AD\\\\x ALL=ALL", "%#100 ALL=ALL", "\"bob ALL=ALL",
    "User_Alias A", "User_Alias A = b x", "Defaultsx", "#include", "@include \"a b\"",
    "@includedir /etc/%h", ", bob ALL=ALL",
  ]) func `is not known where a line is not understood`(_ text: String) throws {
    let found = try power(rules(["/etc/sudoers": "root ALL=ALL\n\(text)\n"]))
    guard case .unknown(let why) = found else {
      Issue.record("\(found)")
      return
    }
    #expect(why.hasPrefix("/etc/sudoers:2"))
  }

  // decisive
  // shows: climb-root
  @Test func `is not known where rules are not read`() throws {
    let places: [([String: String], Set<String>)] = [
      ([:], ["/etc/sudoers"]), (["/etc/sudoers": "@includedir /etc/d\n"], ["/etc/d"]),
      (["/etc/sudoers": "@include /etc/x\n"], ["/etc/x"]), ([:], ["/etc/sudo.conf"]),
      (["/etc/sudo.conf": "Plugin other_policy other.so\n"], []),
      (["/etc/sudo.conf": "plugin sudoers_policy sudoers.so sudoers_file=/x\n"], []),
      (["/etc/nsswitch.conf": "sudoers: files ldap\n"], []), ([:], ["/etc/nsswitch.conf"]),
      (["/etc/nsswitch.conf": "sudoers: sss\n", "/etc/sssd/sssd.conf": ""], []),
      ([:], ["/etc/doas.conf"]), (["/etc/doas.conf": "permit \"bob\"\n"], []),
      (["/etc/doas.conf": "allow bob\n"], []), (["/etc/doas.conf": "permit setenv { A bob\n"], []),
      (["/etc/doas.conf": "permit :100\n"], []),
      // What sudo and doas read otherwise than it looks.
      (["/etc/sudoers": "\\x62ob ALL=ALL\n"], []),
      (["/etc/sudoers": "carol ALL=/bin/echo \" # a \\\nbob ALL=ALL\n"], []),
      (["/etc/sudoers": "Defaults group_plugin=x, always_query_group_plugin\n"], []),
      (["/etc/doas.conf": "#1 a \\\npermit bob\n"], []),
      // Only polkit's own file says that it goes by rules.
      (
        [
          "/usr/share/polkit-1/rules.d/60-x.rules": "",
          "/etc/polkit-1/localauthority/a/b.pkla": "",
        ], []
      ),
      ([:], ["/etc/polkit-1/rules.d"]), ([:], ["/etc/polkit-1/rules.d/a.rules"]),
      (["/etc/polkit-1/rules.d/a.rules": "polkit.spawn([])"], []),
      (
        [
          "/etc/polkit-1/rules.d/49-polkit-pkla-compat.rules": "",
          "/etc/polkit-1/localauthority/50-local.d/a.pkla": "[x]",
        ], []
      ),
      (
        [
          "/usr/share/polkit-1/rules.d/a.rules":
            "polkit.addAdminRule(function(action, subject) { return [\"unix-netgroup:x\"]; });"
        ], []
      ),
    ]
    for (files, unseen) in places {
      let found = try power(rules(files, unseen: unseen))
      guard case .unknown = found else {
        Issue.record("\(files) \(unseen): \(found)")
        continue
      }
    }
  }

  @Test func `is not known where a file includes itself without end`() throws {
    let endless = RuleFiles(
      text: {
        $0.hasPrefix("/etc/sudoers") || $0.hasSuffix("/x") ? .seen("@include ./x\n") : .absent
      },
      names: { _ in [] })
    guard case .unknown(let why) = try power(RootNames(of: endless)) else {
      Issue.record("it is known")
      return
    }
    #expect(why.hasSuffix("too many files"))
  }

  @Test func `is no where sudo has its usual plug-ins`() throws {
    let text = "# Plugin x y z\nPlugin sudoers_policy sudoers.so\nPath askpass /bin/x\n"
    #expect(try power(rules(["/etc/sudo.conf": text])) == .none)
  }

  // shows: climb-root
  @Test func `is yes where doas permits him anything`() throws {
    for text in [
      "permit bob", "permit nopass keepenv :ops as carol cmd /bin/ls", "permit persist 1002",
      "permit setenv { A=b -C } bob", "permit nopass setenv {X} nolog bob # x",
    ] {
      let found = try power(rules(["/etc/doas.conf": "\(text)\n"]), in: ["ops"])
      #expect(found == .some("/etc/doas.conf:1"), "\(text)")
    }
    let others = "deny bob\npermit carol as bob\npermit :wheel\n# permit bob\n"
    #expect(try power(rules(["/etc/doas.conf": others])) == .none)
    #expect(try power(rules(["/etc/doas.d/a.conf": "permit bob"])) == .some("/etc/doas.d/a.conf:1"))
  }

  private static func rule(_ condition: String, _ result: String) -> String {
    "polkit.addRule(function(action, subject) { if (\(condition)) "
      + "{ return polkit.Result.\(result); } });"
  }

  // shows: climb-root
  @Test func `is yes where polkit has him as an administrator, or a rule lets him do something`()
    throws
  {
    let admin = """
      polkit.addAdminRule(function(action, s) { return ["unix-group:ops", "unix-user:carol"]; });
      """
    let mount = "action.id == \"org.freedesktop.udisks2.filesystem-mount\""
    let off = "action.id == \"org.freedesktop.login1.power-off\""
    let local = "/etc/polkit-1/rules.d/a.rules"
    let packaged = "/usr/share/polkit-1/rules.d/a.rules"
    let cases: [(String, String, RootPower)] = [
      (local, admin, .some(local)), (packaged, admin, .some(packaged)),
      (packaged, "x \(admin)", .some(packaged)),
      (local, Self.rule("subject.user == \"bob\"", "YES"), .some(local)),
      (local, Self.rule("\(mount) && subject.isInGroup(\"ops\")", "AUTH_SELF"), .some(local)),
      (local, Self.rule(mount, "YES"), .some(local)), (local, Self.rule(off, "YES"), .none),
      (local, Self.rule("subject.user == \"bob\"", "AUTH_ADMIN"), .none),
      (local, Self.rule("subject.user == \"carol\"", "YES"), .none),
      (packaged, Self.rule("\(mount) && subject.isInGroup(\"ops\")", "YES"), .none),
      (packaged, "for (;;) {}", .none),
    ]
    for (path, text, wanted) in cases {
      #expect(try power(rules([path: text]), in: ["ops"]) == wanted, "\(path): \(text)")
    }
  }

  // decisive
  // shows: climb-root
  @Test func `is yes in a group that is root by another name, and for uid 0 and group 0`() throws {
    for group in RootPower.groups {
      #expect(try power(rules([:]), in: [group]) == .some("group \(group)"))
    }
    for (uid, group) in [(UInt32(0), UInt32(5)), (5, 0)] {
      let found = RootPower(of: try person("toor", uid: uid, group: group), by: rules([:])) { _ in
        .no
      }
      guard case .some = found else {
        Issue.record("\(found)")
        continue
      }
    }
    let staff = ["/etc/staff-group-for-usr-local": ""]
    #expect(try power(rules([:]), in: ["staff"]) == .none)
    #expect(try power(rules(staff), in: ["staff"]) == .some("/etc/staff-group-for-usr-local"))
  }

  // decisive
  @Test func `is not known where it is not known who is in a group`() throws {
    let late = RootPower(of: try person("bob"), by: rules([:])) { $0 == "docker" ? .unknown : .no }
    #expect(late == .unknown("group docker: who is in the group"))
    let names = rules(["/etc/sudoers": "%ops ALL=ALL\nbob ALL=ALL\n"])
    // What is certain goes first.
    let found = RootPower(of: try person("bob"), by: names) { _ in .unknown }
    #expect(found == .some("/etc/sudoers:2"))
  }

  @Test func `is asked of a directory unless groups are in files alone`() throws {
    for (text, isLocal) in [
      ("group: files systemd\n", true), ("group: files [SUCCESS=merge] systemd\n", true),
      ("group: files sss\n", false), ("group: files\ninitgroups: files sss\n", false), ("", true),
    ] {
      #expect(rules(["/etc/nsswitch.conf": text]).areGroupsLocal == isLocal, "\(text)")
    }
  }
}
