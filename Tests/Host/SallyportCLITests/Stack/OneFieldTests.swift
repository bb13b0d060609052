import Testing

@testable import SallyportCLI

/// Programs that never ask, and those that have one answer for every prompt.
@Suite struct `Services with one field` {
  private func machine(_ service: String, _ auth: String) throws -> PamBench {
    var files = Stacks.debian
    files[service] = Stacks.ends(auth)
    return try PamBench(files)
  }

  @Test(arguments: ["cron", "crond", "atd", "systemd-user", "runuser", "runuser-l"])
  func `a program without an auth phase is not turned on, and its line asks nobody`(
    service: String
  ) throws {
    let machine = try machine(service, "@include common-auth")
    let before = try machine.content()
    let refused = machine.run("enable", service, "--yes")
    #expect(refused.status == 78)
    #expect(refused.aside.contains("\(service) runs no auth phase: nobody is asked for a code"))
    #expect(try machine.content() == before)
    let asked = "@include common-auth\nauth required pam_sallyport.so"
    #expect(Stacks.prompts(of: service, asked) == ["authNeverRuns \(service):2"])
    #expect(Stacks.prompts(of: "sudo", asked) == [])
    try machine.write("/etc/pam.d/\(service)", Stacks.ends(asked))
    let row = machine.run("status").answer.split(separator: "\n").first { $0.hasPrefix(service) }
    #expect(row?.split(separator: " ")[1] == "nobody")
  }

  @Test func `what they include is not said to ask there`() throws {
    let machine = try machine("cron", "@include common-auth")
    let said = machine.run("enable", "common-auth", "--yes").answer
    #expect(said.contains("The same in: cups, login, sshd, su, su-l, sudo\n"), "\(said)")
  }

  @Test(arguments: [
    "vsftpd", "ftp", "proftpd", "pure-ftpd", "xrdp-sesman", "dovecot", "openvpn", "radiusd", "imap",
    "pop", "smtp", "sieve", "ldap", "xmpp", "i3lock", "swaylock", "slock",
  ])
  func `a program with one field gets a line that splits it, before the password`(
    service: String
  ) throws {
    let machine = try machine(
      service, "auth required pam_listfile.so item=user sense=deny file=/x\n@include common-auth")
    let before = try machine.content()
    let enabled = machine.run("enable", service, "--yes")
    #expect(enabled.status == 0, "\(enabled.aside)")
    #expect(
      machine.ours(service) == [
        "auth required pam_listfile.so item=user sense=deny file=/x | "
          + "auth     required   pam_sallyport.so forward_pass",
        "@include common-auth | account  required   pam_sallyport.so",
        "@include common-account | session  required   pam_sallyport.so",
      ])
    #expect(
      enabled.answer.contains(
        "a login with PASSWORD123456 as the password, where 123456 is the code"),
      "\(enabled.answer)")
    #expect(machine.run("disable", service, "--yes").status == 0)
    #expect(try machine.content() == before)
  }

  @Test(arguments: [
    ("auth required pam_unix.so", true),
    ("auth sufficient pam_unix.so\nauth sufficient pam_sss.so\nauth required pam_deny.so", true),
    ("auth required pam_sss.so prompt_always", false),
    ("auth required pam_userdb.so db=/x try_first_pass", true),
    ("auth required pam_userdb.so db=/x", false),
    ("auth required pam_winbind.so try_first_pass", true),
    ("auth required pam_winbind.so", false),
    ("auth required pam_krb5.so try_first_pass", false),
    ("auth required pam_unix.so\nauth required pam_mysql.so", false),
    ("auth required pam_nologin.so\nauth required pam_permit.so", false),
  ])
  func `each password module behind the line must be known to take its part`(
    auth: String, isWritten: Bool
  ) throws {
    let machine = try machine("vsftpd", auth)
    let before = try machine.content()
    let outcome = machine.run("enable", "vsftpd", "--yes")
    #expect(outcome.status == (isWritten ? 0 : 78), "\(outcome.aside)")
    if isWritten {
      #expect(machine.ours("vsftpd").first?.hasSuffix("forward_pass") == true)
    } else {
      #expect(outcome.aside.contains("Clients with one field"), "\(outcome.aside)")
      #expect(try machine.content() == before)
    }
  }

  @Test func `config check says where remember has no effect`() throws {
    var files = Stacks.debian
    files["first"] = Stacks.ends("auth required pam_sallyport.so\n@include common-auth")
    files["last"] = Stacks.ends("@include common-auth\nauth required pam_sallyport.so")
    files["vsftpd"] = Stacks.ends(
      "auth required pam_sallyport.so forward_pass\n@include common-auth")
    files["sshd"] = Stacks.ends("auth required pam_sallyport.so")
    let machine = try PamBench(files)
    try machine.write("/on.conf", "[default]\nremember = 8h\n")
    try machine.write("/off.conf", "[default]\nremember = 0\n")
    let cases = [
      ("first", "nothing asks for a password before the code (/etc/pam.d/first:1)"),
      ("vsftpd", "password and code are typed in one field (/etc/pam.d/vsftpd:1)"),
      ("sshd", "before the code (/etc/pam.d/sshd:1); after a key it has"), ("last", nil),
    ]
    for (service, text) in cases {
      let lines = machine.check("/on.conf", "--service", service).answer
      let said = lines.split(whereSeparator: \.isWhitespace).joined(separator: " ")
      #expect(said.contains("remember has no effect") == (text != nil), "\(said)")
      if let text { #expect(said.contains(text), "\(said)") }
      let json = machine.check("/on.conf", "--service", service, "--json").answer
      let place = "\"file\" : \"/etc/pam.d/\(service)\",\n    \"line\" : 1"
      #expect(json.contains("\"remember_idle\" : null") == (text == nil), "\(json)")
      #expect(json.contains(place) == (text != nil), "\(json)")
      let off = machine.check("/off.conf", "--service", service).answer
      #expect(!off.contains("no effect"), "\(off)")
    }
  }

  @Test func `no one is enrolled through one field`() throws {
    let machine = try machine("vsftpd", "@include common-auth")
    let refused = machine.run("enable", "vsftpd", "--enroll", "--yes")
    #expect(refused.status == 78)
    #expect(refused.aside.contains("enroll and forward_pass cannot be used together"))
  }

  @Test func `a line in a shared file that a program with one field includes is not written`()
    throws
  {
    let machine = try machine("vsftpd", "@include common-auth")
    let refused = machine.run("enable", "common-auth", "--yes")
    #expect(refused.status == 78)
    #expect(
      refused.aside.contains("the program has one answer for every prompt, and pam_unix.so"),
      "\(refused.aside)")
  }
}
