import Foundation
import Testing

@testable import SallyportCLI

@Suite struct `Enabling a service` {
  @Test(arguments: ["sshd", "sudo", "su", "login", "common-auth", "cups"])
  func `what enable writes, disable undoes to the byte`(service: String) throws {
    for ending in ["\n", "", "\n\n# the end"] {
      let machine = try PamBench()
      let text = try #require(Stacks.debian[service]) + ending
      try machine.write("/etc/pam.d/\(service)", text)
      try FileManager.default.setAttributes(
        [.posixPermissions: 0o640], ofItemAtPath: "\(machine.root)/etc/pam.d/\(service)")
      let before = try machine.content()
      #expect(machine.run("enable", service, "--yes").status == 0)
      #expect(machine.ours(service).isEmpty == false)
      let enabled = try machine.content()
      #expect(enabled[service]?.hasPrefix("640 ") == true)
      let backup = enabled.first { $0.key.hasPrefix("\(service).before-sallyport-2026-03-03") }
      #expect(backup?.value == before[service])
      #expect(machine.run("disable", service, "--yes").status == 0)
      #expect(try machine.content() == before)
    }
  }

  @Test(arguments: [
    (
      "sshd",
      [
        "@include common-auth | auth     required   pam_sallyport.so enroll",
        "# Disallow non-root logins when /etc/nologin exists. | "
          + "account  required   pam_sallyport.so",
        "session [success=ok ignore=ignore module_unknown=ignore default=bad]        "
          + "pam_selinux.so close | session  required   pam_sallyport.so",
      ]
    ),
    (
      "sudo",
      [
        "# Set up user limits from /etc/security/limits.conf. | "
          + "session  required   pam_sallyport.so",
        "@include common-auth | auth     required   pam_sallyport.so enroll",
        "auth     required   pam_sallyport.so enroll | account  required   pam_sallyport.so",
      ]
    ),
    (
      "login",
      [
        "session [success=ok ignore=ignore module_unknown=ignore default=bad] pam_selinux.so close"
          + " | session  required   pam_sallyport.so",
        "@include common-auth | auth     required   pam_sallyport.so enroll",
        "# Standard Un*x account and session | account  required   pam_sallyport.so",
      ]
    ),
    (
      // No account lines: nothing that could enroll.
      "cups",
      [
        "@include common-auth | auth     required   pam_sallyport.so",
        "auth     required   pam_sallyport.so | session  required   pam_sallyport.so",
      ]
    ),
    (
      "common-auth",
      ["# end of pam-auth-update config | auth     required   pam_sallyport.so"]
    ),
  ])
  func `the lines go where the walk allows them`(service: String, lines: [String]) throws {
    let machine = try PamBench()
    machine.run("enable", service, "--yes")
    #expect(machine.ours(service) == lines)
  }

  // shows: enable-admits
  @Test(arguments: [
    // su's own line and Debian's, in one file.
    """
    auth sufficient pam_rootok.so
    auth [success=1 default=ignore] pam_unix.so
    """,
    """
    auth [success=1 default=ignore] pam_unix.so
    auth [success=2 default=die] pam_sss.so use_first_pass
    auth [success=1 default=ignore] pam_permit.so
    """,
  ])
  func `our line stands where no jump counts it and leads to a refusal`(auth: String) throws {
    var files = Stacks.debian
    files["su"] = """
      \(auth)
      auth requisite pam_deny.so
      auth required pam_permit.so
      @include common-account
      @include common-session
      """
    let machine = try PamBench(files)
    #expect(machine.run("enable", "su", "--nullok", "--yes").status == 0)
    let lines = machine.ours("su")
    #expect(lines.first?.hasPrefix("auth requisite pam_deny.so | auth") == true, "\(lines)")
  }

  @Test func `Fedora's sudo is asked in front of its include, its sshd behind the substack`() throws
  {
    let machine = try PamBench(Stacks.fedora, debian: false)
    #expect(machine.run("enable", "sudo", "--yes").status == 0)
    #expect(
      machine.ours("sudo").first == "#%PAM-1.0 | auth     required   pam_sallyport.so")
    #expect(machine.run("enable", "sshd", "--yes").status == 0)
    #expect(
      machine.ours("sshd").first
        == "auth       substack     password-auth | auth     required   pam_sallyport.so enroll")
  }

  // decisive
  @Test func `enabling twice changes nothing, other words need disable first`() throws {
    let machine = try PamBench()
    machine.run("enable", "sshd", "--yes")
    let once = try machine.content()
    let again = machine.run("enable", "sshd")
    #expect(again.status == 0)
    #expect(again.answer == "sshd already asks for a code. Nothing was changed.\n")
    let other = machine.run("enable", "sshd", "--nullok")
    #expect(other.status == 73)
    #expect(other.aside.contains("hint: sallyport pam disable sshd"))
    #expect(try machine.content() == once)
  }

  @Test func `what was changed in between stays, only our lines go`() throws {
    let machine = try PamBench()
    machine.run("enable", "sshd", "--yes")
    let enabled = try #require(machine.read("/etc/pam.d/sshd"))
    try machine.write(
      "/etc/pam.d/sshd",
      enabled.replacing(" enroll", with: " \\\n   enroll debug")
        + "# mine\nauth optional pam_echo.so\n")
    #expect(machine.run("disable", "sshd", "--yes").status == 0)
    let text = try #require(Stacks.debian["sshd"])
    #expect(machine.read("/etc/pam.d/sshd") == text + "\n# mine\nauth optional pam_echo.so\n")
    let left = try machine.content().keys.filter { $0.hasPrefix("sshd.") }
    #expect(left == ["sshd.before-sallyport-2026-03-03"], "the old file is kept where it differs")
  }

  // decisive
  @Test func `an older backup is never written over`() throws {
    let machine = try PamBench()
    try machine.write("/etc/pam.d/sshd.before-sallyport-2026-03-03", "older\n")
    machine.run("enable", "sshd", "--yes")
    #expect(machine.read("/etc/pam.d/sshd.before-sallyport-2026-03-03") == "older\n")
    let kept = machine.read("/etc/pam.d/sshd.before-sallyport-2026-03-03-2")
    #expect(kept == Stacks.debian["sshd"].map { $0 + "\n" })
  }

  @Test func `a half copy that a kill left is removed on any day, also beside a link`() throws {
    // Behind a link the new file is written elsewhere, so the copy alone has this name.
    for isLink in [false, true] {
      let machine = try PamBench()
      let path = "\(machine.root)/etc/pam.d/sudo"
      if isLink {
        try FileManager.default.moveItem(atPath: path, toPath: "\(machine.root)/etc/sudo.pam")
        try FileManager.default.createSymbolicLink(
          atPath: path, withDestinationPath: "../sudo.pam")
      }
      let before = try machine.content()
      // Under a name without a date, which each run takes away: where it cannot, nothing is copied.
      let blocked = "\(machine.root)/etc/pam.d/.sudo.sallyport-new"
      try FileManager.default.createDirectory(
        atPath: "\(blocked)/x", withIntermediateDirectories: true)
      #expect(machine.run("enable", "sudo", "--yes").status == 74)
      try FileManager.default.removeItem(atPath: blocked)
      #expect(try machine.content() == before)
      try machine.write("/etc/pam.d/.sudo.sallyport-new", "half of")
      #expect(machine.run("enable", "sudo", "--yes").status == 0)
      #expect(machine.run("disable", "sudo", "--yes").status == 0)
      #expect(try machine.content() == before)
    }
  }

  @Test(arguments: [
    // Past the end already before; the second by a quiet module, at the end.
    "auth [success=9 default=ignore] pam_listfile.so\n@include common-auth",
    "@include common-auth\nauth [success=9 default=ignore] pam_listfile.so",
  ])
  func `disable undoes what enable wrote, whatever jumps over it`(auth: String) throws {
    for keepsBackup in [true, false] {
      var files = Stacks.debian
      files["odd"] = "\(auth)\n@include common-account\n@include common-session"
      let machine = try PamBench(files)
      let before = try machine.content()
      let enabled = machine.run("enable", "odd", "--yes")
      try #require(enabled.status == 0, "\(enabled.aside)")
      let backup = "\(machine.root)/etc/pam.d/odd.before-sallyport-2026-03-03"
      if !keepsBackup {
        try FileManager.default.removeItem(atPath: backup)
      }
      let undone = machine.run("disable", "odd", "--yes")
      #expect(undone.status == 0, "\(undone.aside)")
      #expect(try machine.content() == before)
    }
  }

  @Test func `a link stays a link, and what it leads to is changed`() throws {
    let machine = try PamBench()
    let path = "\(machine.root)/etc/pam.d/sudo"
    try FileManager.default.moveItem(atPath: path, toPath: "\(machine.root)/etc/sudo.pam")
    try FileManager.default.createSymbolicLink(
      atPath: path, withDestinationPath: "../sudo.pam")
    #expect(machine.run("enable", "sudo", "--yes").status == 0)
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: path) == "../sudo.pam")
    #expect(machine.read("/etc/sudo.pam")?.contains("pam_sallyport.so") == true)
    #expect(machine.run("disable", "sudo", "--yes").status == 0)
    #expect(machine.read("/etc/sudo.pam") == Stacks.debian["sudo"].map { $0 + "\n" })
  }

  @Test func `a service that only the vendor has gets a file, and loses it again`() throws {
    let machine = try PamBench()
    let before = try machine.content()
    let text = "@include common-auth\n@include common-account\n@include common-session\n"
    try machine.write("/usr/lib/pam.d/polkit-1", text)
    let enabled = machine.run("enable", "polkit-1", "--yes")
    #expect(enabled.answer.contains("/etc/pam.d/polkit-1 (new, from the vendor's)"))
    #expect(machine.ours("polkit-1").count == 3)
    #expect(machine.read("/usr/lib/pam.d/polkit-1") == text)
    #expect(machine.run("disable", "polkit-1", "--yes").status == 0)
    #expect(try machine.content() == before)
  }

  // decisive
  @Test func `what is enabled by an included file is not enabled twice`() throws {
    let machine = try PamBench()
    let su = machine.run("enable", "su", "--yes")
    #expect(su.answer.contains("The same in: su-l\n"))
    let login = machine.run("enable", "su-l", "--only", "--yes")
    #expect(login.status == 73)
    #expect(login.aside.contains("su-l already asks for a code, by /etc/pam.d/su:"))
    // common-auth serves su too, which would ask twice.
    let all = machine.run("enable", "common-auth", "--yes")
    #expect(all.status == 78)
    #expect(all.aside.contains("asks for a second code"))
    machine.run("disable", "su", "--yes")
    let common = machine.run("enable", "common-auth", "--yes")
    #expect(common.status == 0)
    let names = "The same in: cups, login, sshd, su, su-l, sudo\n"
    #expect(common.answer.contains(names), "\(common.answer)")
  }

  // shows: enroll-after-yes, enable-admits
  @Test(arguments: [
    (["enable", "nothing"], 66, "there is no service nothing"),
    (["enable", "../shadow"], 64, "not a valid service name"),
    (["enable", "su", "--demand"], 78, "demand cannot be used in su"),
    (["enable", "cups", "--demand"], 78, "demand cannot be used in cups"),
    (["enable", "cups", "--enroll"], 78, "enroll without its account line"),
    (["enable", "runuser"], 78, "runuser runs no auth phase: nobody is asked for a code"),
    (["enable", "closed"], 78, "nobody can pass the auth stack"),
    (["enable", "broken"], 78, "libpam gives up reading here"),
    (["enable", "corp"], 78, "corp has no required first factor"),
    (["enable", "corp-or"], 78, "corp-or has no required first factor"),
    (["enable", "wheel"], 78, "wheel has no required first factor"),
    (["enable", "code"], 78, "code has no required first factor"),
    (["enable", "key"], 78, "key has no required first factor"),
    (["enable", "key-or"], 78, "key-or has no required first factor"),
    (["enable", "card"], 78, "card has no required first factor"),
    (["enable", "exec"], 78, "exec has no required first factor"),
    (["enable", "server"], 78, "server has no required first factor"),
    (
      ["enable", "inner"], 78, "inner was not changed: front includes its file, and would be broken"
    ),
    (["enable", "inner"], 78, "(/etc/pam.d/front:1) counts this line, and leads to a refusal"),
    (
      ["enable", "anybody", "--enroll"], 78,
      "a stranger with a wrong password can enroll, since /etc/pam.d/anybody:"
    ),
    (["enable", "account-only"], 78, "has no auth lines of its own"),
    (["disable", "sshd"], 66, "has no pam_sallyport.so line"),
    (["disable", "jump"], 78, "its jump counts our line"),
    (
      ["disable", "last"], 78,
      "last was not changed; the result would be broken: nobody can pass the auth stack"
    ),
  ])
  func `what would lock out or let in is not written`(
    arguments: [String], status: Int32, text: String
  ) throws {
    var files = Stacks.debian
    files["closed"] = "auth required pam_deny.so\naccount required pam_permit.so"
    files["broken"] = "@include common-auth\nauth required pam_permit.so \\"
    files["anybody"] = """
      auth optional pam_unix.so
      auth required pam_permit.so
      @include common-account
      @include common-session
      """
    files["corp"] = "auth optional pam_exec.so expose_authtok /x\nauth required pam_permit.so"
    files["corp-or"] = "auth optional pam_corp.so\n@include common-account"
    // Who is not of wheel gets in with no password.
    files["wheel"] =
      "auth sufficient pam_wheel.so trust\nauth [success=ignore default=die] pam_unix.so"
    // All of these may answer PAM_IGNORE, and then a code would be the only yes.
    files["code"] = "auth required pam_google_authenticator.so nullok"
    files["key"] = "auth required pam_u2f.so nouserok"
    files["key-or"] = "auth sufficient pam_unix.so\nauth required pam_u2f.so nouserok"
    files["card"] = "auth required pam_securid.so"
    files["exec"] = "auth required pam_exec.so expose_authtok /x"
    files["server"] = "auth required pam_ldap.so minimum_uid=1000"
    files["inner"] = "auth [success=ok default=die] pam_unix.so"
    files["front"] = """
      auth [success=2 default=ignore] pam_sss.so
      auth include inner
      auth requisite pam_localuser.so
      auth required pam_permit.so
      """
    files["account-only"] = "@include common-account"
    files["jump"] = """
      auth [success=1 default=ignore] pam_succeed_if.so user ingroup robots
      auth required pam_sallyport.so
      @include common-auth
      """
    files["last"] = "auth required pam_sallyport.so\nauth optional pam_deny.so"
    let machine = try PamBench(files)
    let before = try machine.content()
    let outcome = machine.run(
      arguments[0], arguments[1], "--yes", arguments.count > 2 ? arguments[2] : "--yes")
    #expect(outcome.status == status)
    #expect(outcome.aside.contains(text), "\(outcome.aside)")
    #expect(try machine.content() == before)
  }

  @Test func `sudo that asks for root's code is not turned on before root has one`() throws {
    let machine = try PamBench()
    try machine.write("/etc/sudoers", "Defaults targetpw\nALL ALL=(ALL) ALL\n")
    let before = try machine.content()
    let refused = machine.run("enable", "sudo", "--yes")
    #expect(refused.status == 78)
    #expect(refused.aside.contains("root is not enrolled, and sudo would ask for root's code"))
    #expect(refused.aside.contains("hint: sallyport enroll root"))
    #expect(try machine.content() == before)
    let inAll = machine.run("enable", "common-auth", "--dry-run")
    #expect(inAll.status == 78)
    #expect(inAll.aside.contains("root is not enrolled, and sudo would ask for root's code"))
    #expect(machine.run("enable", "sshd", "--yes").status == 0, "it is about sudo only")
    try machine.write("/etc/sudoers", "Defaults:carol targetpw\n")
    #expect(machine.run("enable", "sudo", "--dry-run").status == 0, "and about everybody")
    try machine.write("/etc/sudoers", "Defaults targetpw\n")
    _ = try machine.bench.enroll("root")
    let enabled = machine.run("enable", "sudo", "--yes")
    #expect(enabled.status == 0)
    #expect(enabled.answer.contains("sudo asks for root's code, as sudoers says targetpw."))
  }

  // shows: enroll-after-yes
  @Test func `where enroll may not stand, the line is written without it`() throws {
    var files = Stacks.debian
    files["anybody"] = """
      auth [success=ok default=die] pam_exec.so expose_authtok /x
      @include common-account
      @include common-session
      """
    let machine = try PamBench(files)
    let outcome = machine.run("enable", "anybody", "--yes")
    #expect(outcome.status == 0, "\(outcome.aside)")
    #expect(
      machine.ours("anybody").contains { $0.hasSuffix("| auth     required   pam_sallyport.so") })
  }

  @Test func `demand stands on the account line`() throws {
    let machine = try PamBench()
    machine.run("enable", "sudo", "--demand", "--no-enroll", "--yes")
    let lines = machine.ours("sudo").map { $0.components(separatedBy: " | ").last ?? "" }
    #expect(
      lines == [
        "session  required   pam_sallyport.so", "auth     required   pam_sallyport.so",
        "account  required   pam_sallyport.so demand",
      ])
  }

  @Test func `nothing is written where nobody is enrolled, on a dry run, or on a no`() throws {
    let machine = try PamBench(enrolled: false)
    let before = try machine.content()
    let nobody = machine.run("enable", "sshd", "--yes")
    #expect(nobody.status == 78)
    let who = "nobody could log in to sshd after this: nobody is enrolled"
    #expect(nobody.aside.hasPrefix("sallyport: \(who)\nhint: sallyport enroll NAME\n"))
    #expect(machine.run("enable", "sshd", "--nullok", "--dry-run").status == 0)
    _ = try machine.bench.enroll()
    let dry = machine.run("enable", "sshd", "--dry-run")
    #expect(dry.answer.hasSuffix("Nothing was written (--dry-run).\n"))
    let no = machine.run("enable", "sshd", answers: "n")
    #expect(no.status == 1)
    #expect(no.aside == "sallyport: nothing was changed\n")
    #expect(try machine.content() == before)
    #expect(machine.run("enable", "sshd", answers: "y").status == 0)
  }
}
