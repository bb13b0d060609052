import Foundation
import Testing

@testable import SallyportCLI
@testable import SallyportDoctor

@Suite struct `sshd's side of turning it on` {
  private let machine: PamBench
  private let sshd: FakeSSHD

  init() throws {
    machine = try PamBench()
    sshd = try FakeSSHD(machine)
  }

  @Test func `sshd asks by prompts before PAM asks for a code`() throws {
    let before = try machine.content()
    let done = machine.run("enable", "sshd", "--yes")
    #expect(done.status == 0)
    #expect(sshd.dropIn == SSHStage(method: .passwordCode).text)
    #expect(sshd.events == ["reload"])
    #expect(done.answer.contains("/etc/ssh/sshd_config.d/00-sallyport.conf (new)\n+  UsePAM yes\n"))
    #expect(machine.run("enable", "sshd").answer.contains("Nothing was changed."))
    #expect(machine.run("disable", "sshd", "--yes").status == 0)
    #expect(sshd.dropIn == nil)
    #expect(sshd.events == ["reload", "reload"])
    #expect(try machine.content() == before)
  }

  @Test(
    arguments: [
      ("\nlogingracetime 120", "--enroll", true), ("\nlogingracetime 120", "--no-enroll", false),
      ("\nlogingracetime 300", "--enroll", false),
    ])
  func `says where people have little time to enroll`(
    _ grace: String, _ enroll: String, _ isTold: Bool
  ) {
    sshd.settings += grace
    let shown = machine.run("enable", "sshd", enroll, "--dry-run").answer
    let line = "    add to /etc/ssh/sshd_config: LoginGraceTime 5m\n"
    #expect(shown.contains("sshd ends a login 120 s after it began") == isTold, "\(shown)")
    #expect(shown.contains(line) == isTold)
  }

  @Test func `with a key PAM asks between two steps of sshd, and the other way round`() throws {
    #expect(machine.run("enable", "sshd", "--sshd", "key+code", "--yes").status == 0)
    #expect(sshd.events == ["reload", "reload, PAM asks"])
    #expect(machine.run("disable", "sshd", "--yes").status == 0)
    #expect(sshd.events.suffix(2) == ["reload, PAM asks", "reload"])
  }

  // decisive
  @Test func `that is misspelt is explained by the help`() {
    let wrong = machine.run("enable", "sshd", "--sshd", "key")
    #expect(wrong.status == 64)
    #expect(wrong.aside.contains("hint: sallyport pam enable --help\n"), "\(wrong.aside)")
    let help = machine.run("enable", "--help").answer
    #expect(help.contains("- A key and a code.\n"), "\(help)")
    #expect(help.split(separator: "\n").allSatisfy { $0.count <= 80 }, "\(help)")
  }

  @Test func `where nothing is proven nothing is left`() throws {
    let before = try machine.content()
    sshd.isListening = false
    #expect(machine.run("enable", "sshd", "--yes").status == 78)
    sshd.isListening = true
    sshd.complaint = "/etc/ssh/sshd_config: line 3: Bad configuration option"
    let refused = machine.run("enable", "sshd", "--yes")
    #expect(refused.aside.contains("line 3"))
    sshd.complaint = nil
    sshd.reloads = false
    #expect(machine.run("enable", "sshd", "--yes").status == 78)
    #expect(sshd.dropIn == nil)
    #expect(try machine.content() == before)
  }

  @Test func `what is set already needs no sshd that runs`() throws {
    #expect(machine.run("enable", "sshd", "--yes").status == 0)
    let on = try machine.content()
    sshd.isListening = false
    let again = machine.run("enable", "sshd", "--yes")
    #expect(again.status == 0 && again.answer.contains("Nothing was changed."), "\(again.aside)")
    #expect(machine.run("enable", "sshd", "--sshd", "key+password+code", "--yes").status == 78)
    #expect(try machine.content() == on)
  }

  @Test func `a dry run shows the same and writes nothing`() throws {
    let before = try machine.content()
    let dry = machine.run("enable", "sshd", "--dry-run")
    #expect(dry.answer.contains("+  AuthenticationMethods keyboard-interactive\n"))
    #expect(sshd.dropIn == nil && sshd.events.isEmpty)
    #expect(try machine.content() == before)
  }

  @Test func `a Match block that excepts somebody enrolled is in the way`() throws {
    let block = "Match User alice\nAuthenticationMethods publickey\n"
    try machine.write(
      "/etc/ssh/sshd_config", "Include /etc/ssh/sshd_config.d/*.conf\nUsePAM yes\n" + block)
    sshd.matches["alice"] = "authenticationmethods publickey"
    let refused = machine.run("enable", "sshd", "--yes")
    #expect(refused.status == 78)
    #expect(
      refused.aside.contains(
        "  /etc/ssh/sshd_config:4: Match user alice: AuthenticationMethods publickey\n"))
    let hint = "hint: /etc/ssh/sshd_config:4: AuthenticationMethods keyboard-interactive"
    #expect(refused.aside.contains(hint))
    #expect(sshd.dropIn == nil)
  }

  @Test func `none leaves sshd alone and names who has a key`() throws {
    let done = machine.run("enable", "sshd", "--sshd", "none", "--yes")
    #expect(done.status == 0 && done.answer.contains("Still in by key alone: alice, git\n"))
    #expect(sshd.dropIn == nil && sshd.events.isEmpty)
  }

  @Test func `a file that somebody changed stays`() throws {
    #expect(machine.run("enable", "sshd", "--yes").status == 0)
    let changed = SSHStage(method: .passwordCode).text + "UseDNS no\n"
    try machine.write(SSHStage.path, changed)
    #expect(machine.run("enable", "sshd", "--yes").status == 73)
    let done = machine.run("disable", "sshd", "--yes")
    #expect(done.status == 73 && done.aside.contains("is not as this command writes it"))
    #expect(machine.read("/etc/pam.d/sshd")?.contains("pam_sallyport") == false)
    #expect(machine.run("disable", "sshd", "--yes").status == 73)
    #expect(sshd.dropIn == changed)
  }

  @Test(arguments: [
    ("authenticationmethods publickey,password", "key+password+code"),
    ("authenticationmethods any", "password+code"),
    ("pubkeyauthentication no", "password+code"),
  ])
  func `what is asked for now is asked for then`(settings: String, method: String) throws {
    sshd.settings = settings + "\n" + FakeSSHD.debian
    struct Answer: Decodable {
      struct SSHD: Decodable { let method: String }
      let sshd: SSHD
    }
    let dry = machine.run("enable", "sshd", "--dry-run", "--json")
    #expect(try dry.json(Answer.self).sshd.method == method)
  }

  @Test func `what is set already gets no file, but has to be read`() throws {
    let lists = "authenticationmethods publickey,keyboard-interactive\n"
    sshd.settings = lists + "kbdinteractiveauthentication yes\n" + FakeSSHD.debian
    #expect(machine.run("enable", "sshd", "--sshd", "key+code", "--yes").status == 0)
    #expect(sshd.dropIn == nil && sshd.events == ["reload"])
    #expect(machine.read("/etc/pam.d/sshd")?.contains("after-key") == true)
    #expect(machine.run("disable", "sshd", "--yes").status == 0)
    #expect(sshd.events == ["reload"])
  }

  @Test func `the host and the port of the question are of one address`() throws {
    sshd.settings =
      "listenaddress 192.0.2.1:2222\nlistenaddress 127.0.0.1:22\n"
      + FakeSSHD.debian.replacing("listenaddress", with: "#")
    sshd.isListening = false
    #expect(machine.run("enable", "sshd", "--yes").aside.contains("at 127.0.0.1:22:"))
  }

  @Test func `keys alone need a word`() {
    sshd.settings = "passwordauthentication no\n" + FakeSSHD.debian
    let refused = machine.run("enable", "sshd", "--yes")
    #expect(refused.status == 64 && refused.aside.contains("--sshd key+code"))
    #expect(machine.run("enable", "sudo", "--sshd", "none", "--yes").status == 64)
  }
}
