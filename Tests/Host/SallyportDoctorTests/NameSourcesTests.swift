import Testing

@testable import SallyportDoctor

@Suite struct `Sources of accounts and groups` {
  @Test(arguments: [
    ("passwd: files\n", ["files"]), ("", ["files"]), ("group: files sss\n", ["files"]),
    ("passwd:\tfiles  sss\n", ["files", "sss"]), ("  passwd : files\n", [":", "files"]),
    ("passwd: files # sss\n", ["files"]), ("#passwd: sss\n", ["files"]),
    ("passwd: files [NOTFOUND=return] sss\n", ["files", "sss"]),
    ("passwd: files[!UNAVAIL=return SUCCESS=merge]sss\n", ["files", "sss"]),
    ("passwd: files\npasswd: sss\n", ["sss"]), ("passwd:files systemd", ["files", "systemd"]),
    ("passwd: compat\n", ["compat"]), ("passwd files sss\n", ["files", "sss"]),
    ("passwd", ["files"]), ("passwd:\n", []),
  ])
  func `the sources of accounts are read as the C library reads them`(
    _ text: String, _ sources: [String]
  ) {
    #expect(NameSources.sources(of: "passwd", in: text) == sources)
  }

  @Test(arguments: [
    (nil, true, true), ("passwd: files\n", true, true), ("passwd: files systemd\n", false, true),
    ("passwd: files sss systemd\n", false, false), ("passwd: compat\n", false, true),
  ])
  func `accounts are all known only where all are in files`(
    _ text: String?, _ known: Bool, _ areLocal: Bool
  ) throws {
    let fake = FakeMachine()
    if let text { try fake.write("/etc/nsswitch.conf", text) }
    let sources = NameSources(of: "passwd", on: fake.machine)
    #expect(sources.areFiles == known && sources.areLocal == areLocal)
  }

  @Test func `a file of sources that cannot be read is no proof that accounts are known`() throws {
    let fake = FakeMachine()
    try fake.write("/etc/nsswitch.conf/inside", "")
    let sources = NameSources(of: "passwd", on: fake.machine)
    #expect(!sources.areFiles && !sources.areLocal)
  }

  @Test(arguments: [
    ("[nss]\nuser_attributes = +initgrExpireTimestamp\n", true),
    ("[nss]\nuser_attributes = mail, +initgrExpireTimestamp\n", true), ("[nss]\n", false),
    ("#user_attributes = +initgrExpireTimestamp\n", false), ("user_attributes = +mail\n", false),
  ])
  func `a group from SSSD has a flaw unless SSSD tells whose groups it asked for`(
    _ settings: String, _ tells: Bool
  ) throws {
    let fake = FakeMachine()
    try fake.write("/etc/sssd/conf.d/one.conf", settings)
    #expect(SSSDSettings.tellsOfGroups(on: fake.machine) == tells)
    for database in ["group", "initgroups"] {
      try fake.write("/etc/nsswitch.conf", "\(database): files sss\n")
      // The machine's own account database has it, but not the files of this one.
      let flaw = GroupCensus(of: fake.machine).flaw(of: "root")
      #expect((flaw == nil) == tells, "\(flaw?.text ?? "")")
    }
    try fake.write("/etc/group", "root:x:0:\n")
    #expect(GroupCensus(of: fake.machine).flaw(of: "root") == nil)
  }

  @Test func `an upgrade tells of a rule that tightens for all accounts of SSSD`() throws {
    let fake = FakeMachine()
    try fake.write("/etc/nsswitch.conf", "group: files sss\n")
    try fake.write("/etc/group", "wheel:x:10:\n")
    try fake.write(
      "/etc/security/sallyport.conf", "[a]\nmatch_group = wheel\n\n[b]\nmatch_group = ops\n")
    let told = PolicyText.unsureGroups(on: fake.machine)
    #expect(told.count == 1)
    let start = "/etc/security/sallyport.conf:5: SSSD does not say who is outside of group ops,"
    #expect(told.first?.hasPrefix(start) == true)
    try fake.write("/etc/sssd/sssd.conf", "user_attributes = +initgrExpireTimestamp\n")
    #expect(PolicyText.unsureGroups(on: fake.machine).isEmpty)
  }
}
