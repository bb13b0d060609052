import Foundation
import Testing

@testable import PAMStack
@testable import SallyportDoctor

/// A stack in /etc/pam.d/sshd, and what it means.
struct StackCase: CustomTestStringConvertible {
  let name: String
  let stack: String
  var wrong: [String] = []
  var fix: Fix?
  var effect: Effect?
  var testDescription: String { name }

  private static let common = """
    auth [success=1 default=ignore] pam_unix.so nullok
    auth requisite pam_deny.so
    auth required pam_permit.so

    """
  private static let ends = """

    account required pam_unix.so
    session required pam_unix.so
    """
  private static func withCommon(_ more: String) -> String { common + more + ends }

  static let all: [StackCase] = [
    StackCase(
      name: "Debian's password, then ours", stack: withCommon("auth required pam_sallyport.so")),
    StackCase(
      name: "no line", stack: withCommon(""), wrong: ["service-unasked error"],
      fix: .command("sallyport pam enable sshd"),
      effect: .letsIn("anybody with the password in sshd")),
    StackCase(
      name: "optional", stack: withCommon("auth optional pam_sallyport.so oops debug"),
      wrong: ["stack-uncounted error", "line-word warning"],
      fix: .line("auth required pam_sallyport.so debug"),
      effect: .letsIn("anybody with the password in sshd")),
    StackCase(
      name: "after a sufficient password",
      stack:
        "auth sufficient pam_unix.so\nauth required pam_sallyport.so\nauth required pam_deny.so"
        + ends,
      wrong: ["stack-skipped error", "stack-wrong-password warning"],
      fix: .command("sallyport pam enable sshd --no-enroll --sshd none"),
      effect: .letsIn("anybody with the password in sshd")),
    StackCase(
      name: "denied to all",
      stack: "auth required pam_deny.so\nauth required pam_sallyport.so" + ends,
      wrong: ["stack-shut error"], effect: .locksOut("everybody from sshd")),
    StackCase(
      name: "a wrong password asks too",
      stack: "auth required pam_unix.so\nauth required pam_sallyport.so" + ends,
      wrong: ["stack-wrong-password warning"]),
    StackCase(
      name: "nullok alone", stack: "auth required pam_sallyport.so nullok" + ends,
      wrong: ["stack-ignore error", "stack-only-factor error"],
      effect: .locksOut("the unenrolled from sshd")),
    StackCase(
      name: "another code that is not asked of everybody, then ours",
      stack: "auth required pam_google_authenticator.so nullok\nauth required pam_sallyport.so"
        + ends,
      wrong: ["stack-only-factor error"]),
    StackCase(
      name: "a security key that not everybody has, then ours",
      stack: "auth required pam_u2f.so nouserok\nauth required pam_sallyport.so" + ends,
      wrong: ["stack-only-factor error"]),
    StackCase(
      name: "a password that jumps over our line onto the refusal",
      stack: "auth [success=1 default=ignore] pam_unix.so\n"
        + "auth [success=2 default=die] pam_sss.so use_first_pass\n"
        + "auth required pam_sallyport.so\nauth [success=1 default=ignore] pam_permit.so\n"
        + "auth requisite pam_deny.so\nauth required pam_permit.so" + ends,
      wrong: ["stack-jumped-over error"],
      effect: .locksOut("everybody whom pam_sss.so lets pass, from sshd")),
    StackCase(
      name: "root passes, everybody else jumps over our line onto the refusal",
      stack: "auth sufficient pam_rootok.so\nauth [success=1 default=ignore] pam_unix.so\n"
        + "auth required pam_sallyport.so\nauth requisite pam_deny.so\n"
        + "auth required pam_permit.so" + ends,
      wrong: ["stack-wrong-password warning", "stack-jumped-over error"]),
    StackCase(
      name: "enroll without its account line",
      stack: common + "auth required pam_sallyport.so enroll\n" + ends
        + "\nsession required pam_sallyport.so",
      wrong: ["enroll-account error"], fix: .add("account required pam_sallyport.so"),
      effect: .letsIn("the unenrolled in sshd")),
    StackCase(
      name: "enroll after a sufficient password that may be wrong",
      stack: "account required pam_sallyport.so\nauth sufficient pam_unix.so\n"
        + "auth required pam_sallyport.so enroll\nauth required pam_permit.so\n"
        + "account required pam_unix.so\nsession required pam_sallyport.so\n"
        + "session required pam_unix.so",
      wrong: [
        "stack-skipped error", "stack-wrong-password warning", "stack-only-factor error",
        "enroll-wrong-password error",
      ]),
    StackCase(
      name: "enroll with a first_pass word",
      stack: "account required pam_sallyport.so\nsession required pam_sallyport.so\n"
        + withCommon("auth required pam_sallyport.so enroll try_first_pass"),
      wrong: ["enroll-first-pass error"],
      fix: .line("auth required pam_sallyport.so try_first_pass")),
    StackCase(
      name: "a word that means nothing",
      stack: withCommon("auth required pam_sallyport.so nulok"),
      wrong: ["line-word warning"], fix: .line("auth required pam_sallyport.so nullok")),
    StackCase(
      name: "a word with a letter left out, between others",
      stack: withCommon("auth required pam_sallyport.so debug enrol echo"),
      wrong: ["line-word warning"],
      fix: .line("auth required pam_sallyport.so debug enroll echo")),
    StackCase(
      name: "a control that is none",
      stack: withCommon("auth requird pam_sallyport.so"),
      wrong: ["stack-fault warning", "stack-shut error"]),
  ]
}

@Suite struct `Doctor on the stacks` {
  private let fake = FakeMachine()

  private func findings(_ stack: String, service name: String = "sshd") throws -> [Finding] {
    try fake.write("/etc/debian_version", "12.1\n")
    try fake.write("/etc/pam.d/\(name)", stack + "\n")
    try fake.write("/etc/pam.d/other", "auth required pam_deny.so\n")
    let stack = ServiceStack(of: fake.machine, name)
    let service = ServiceFacts(stack, of: fake.machine)
    return StackFindings(service, ssh: nil).all
  }

  // shows: enable-admits
  @Test(arguments: StackCase.all) func `Each stack has its findings`(item: StackCase) throws {
    let found = try findings(item.stack)
    #expect(found.wrong == item.wrong)
    let first = found.first { $0.severity != .ok }
    if let fix = item.fix { #expect(first?.fixes.first == fix) }
    if let effect = item.effect { #expect(first?.effect == effect) }
  }

  @Test func `demand in a service without a person is refused`() throws {
    let stack = "account required pam_sallyport.so demand\nauth required pam_unix.so\n"
    #expect(try findings(stack, service: "cron").wrong.contains("demand-forbidden error"))
  }

  @Test func `two prompts lock everybody out of a program with one field`() throws {
    let stack = "auth required pam_unix.so\nauth requisite pam_sallyport.so"
    for (service, severity) in [("vsftpd", Severity.error), ("openvpn", .warning)] {
      let found = try findings(stack, service: service).first { $0.id == "stack-one-field" }
      #expect(found?.severity == severity)
      #expect(found?.location?.text == "/etc/pam.d/\(service):2")
      #expect(found?.effect == (service == "vsftpd" ? .locksOut("everybody from vsftpd") : nil))
      #expect(
        found?.fixes.first
          == .command("sallyport pam enable \(service) --no-enroll"))
    }
  }

  @Test
  func `a program that runs no auth phase is told of by name, unless it only includes a line`()
    throws
  {
    let own = try findings("auth required pam_sallyport.so", service: "cron")
    #expect(own.wrong == ["service-no-auth warning"])
    #expect(own.first?.fixes == [.command("sallyport pam disable cron")])
    #expect(try findings("auth required pam_unix.so", service: "atd").wrong == own.wrong)
    try fake.write("/etc/pam.d/common-auth", "auth required pam_sallyport.so\n")
    #expect(try findings("@include common-auth", service: "systemd-user").wrong == [])
  }

  private func service(_ stack: String, named name: String, _ remembers: Bool) throws
    -> ServiceFacts
  {
    try fake.write("/etc/debian_version", "12.1\n")
    try fake.write("/etc/pam.d/\(name)", stack + "\n")
    var service = ServiceFacts(ServiceStack(of: fake.machine, name), of: fake.machine)
    service.policy.remembers = remembers
    return service
  }

  private static let keyFirst = SSHSettings(Healthy.sshText)
  private static let prompts = SSHSettings(
    "authenticationmethods keyboard-interactive\n" + Healthy.sshText)

  @Test(arguments: [
    ("sshd", "required", keyFirst, false), ("sshd", "required", prompts, true),
    ("sudo", "required", keyFirst, true), ("dovecot", "requisite", prompts, true),
  ])
  func `a code alone is an error everywhere but behind sshd's other methods`(
    name: String, control: String, ssh: SSHSettings, isTold: Bool
  ) throws {
    let alone = try service("auth \(control) pam_sallyport.so", named: name, false)
    let found = StackFindings(alone, ssh: ssh).all.filter { $0.id == "stack-only-factor" }
    #expect(found.map(\.severity) == (isTold ? [.error] : []))
    let exec = "auth required pam_exec.so expose_authtok /x\nauth \(control) pam_sallyport.so"
    let unknown = try service(exec, named: name, false)
    let unseen = StackFindings(unknown, ssh: ssh).all.filter { $0.id == "stack-unknown-factor" }
    #expect(unseen.map(\.severity) == (isTold ? [.unseen] : []))
  }

  @Test(arguments: [
    ("sudo", "auth required pam_sallyport.so\nauth required pam_unix.so", true),
    ("sudo", "auth required pam_sallyport.so forward_pass\nauth required pam_unix.so", true),
    ("sudo", "auth requisite pam_unix.so\nauth required pam_sallyport.so", false),
    ("sudo", "auth requisite pam_u2f.so\nauth required pam_sallyport.so", true),
    ("sshd", "auth required pam_sallyport.so", false),
    ("sshd", "auth required pam_sallyport.so forward_pass\nauth required pam_unix.so", true),
  ])
  func `remember has no effect where nothing asks for a password before the code`(
    name: String, stack: String, isIdle: Bool
  ) throws {
    for remembers in [true, false] {
      let service = try service(stack, named: name, remembers)
      let found = StackFindings(service, ssh: Self.keyFirst).all
      #expect(found.contains { $0.id == "remember-idle" } == (isIdle && remembers))
    }
  }

  @Test func `an owner whose location is remembered is locked out where no other line succeeds`()
    throws
  {
    let stack = "auth [default=ignore] pam_unix.so\nauth required pam_sallyport.so"
    let found = StackFindings(try service(stack, named: "sudo", true), ssh: nil).all
    #expect(
      found.first { $0.id == "stack-ignore" }?.effect
        == .locksOut("anyone whose origin is remembered, from sudo"))
    let off = StackFindings(try service(stack, named: "sudo", false), ssh: nil).all
    #expect(!off.contains { $0.id == "stack-ignore" })
  }

  @Test(arguments: [
    ("sufficient pam_localuser.so", "required pam_sallyport.so demand", true),
    ("required pam_nologin.so", "optional pam_sallyport.so demand", true),
    ("required pam_nologin.so", "required pam_sallyport.so demand", false),
  ])
  func `demand that a login can do without demands nothing of the enrolled either`(
    first: String, ours: String, isIdle: Bool
  ) throws {
    let stack =
      "auth required pam_unix.so\naccount \(first)\naccount \(ours)\n"
      + "account required pam_unix.so\nsession required pam_unix.so"
    let found = try findings(stack)
    #expect(found.contains { $0.id == "service-unasked" } == isIdle)
    if first.hasPrefix("sufficient") {
      #expect(
        found.first { $0.id == "account-skipped" }?.effect
          == .letsIn("the enrolled who were not asked, and the unenrolled, in sshd"))
    }
  }

  @Test func `a line with words of its own is not proposed to be rewritten`() throws {
    let stack =
      "auth sufficient pam_unix.so\nauth required pam_sallyport.so nullok\n"
      + "auth required pam_deny.so\naccount required pam_unix.so\nsession required pam_unix.so"
    let found = try #require(try findings(stack).first { $0.id == "stack-skipped" })
    #expect(
      found.fixes == [.advice("put it before /etc/pam.d/sshd:1, or make that one required")])
  }

  @Test func `demand takes the location of an auth line`() throws {
    let stack =
      "account required pam_sallyport.so demand\nauth required pam_unix.so\n"
      + "account required pam_unix.so\nsession required pam_unix.so"
    #expect(try findings(stack).wrong == [])
  }

  @Test func `Only services that name the module are looked at, not what they include`() throws {
    try fake.write("/etc/debian_version", "12.1\n")
    try fake.write("/etc/pam.d/common-auth", "auth required pam_sallyport.so\n")
    try fake.write("/etc/pam.d/su", "@include common-auth\n")
    try fake.write("/etc/pam.d/su-l", "auth include su\n")
    try fake.write("/etc/pam.d/cron", "auth required pam_permit.so\n")
    #expect(ServiceStack.ours(of: fake.machine).map(\.service) == ["su", "su-l"])
    let lines = ModuleLines(of: ServiceStack(of: fake.machine, "su"))
    #expect(lines.of(.auth).map(\.location.text) == ["/etc/pam.d/common-auth:1"])
  }

  @Test func `Where no service names the module, that is a finding`() {
    #expect(Healthy.diagnosis { $0.services = [] }.wrong == ["no-service warning"])
  }
}
