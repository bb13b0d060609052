import PAMStack
import SallyportCore
import Testing

@testable import SallyportDoctor

/// Whose password a directory has, in the stacks that Debian and Red Hat write.
@Suite struct `A login through the modules of others` {
  private static let code = RehearsalCase.asks
  private static let session = "session required pam_permit.so\n"
  /// Debian's, with a module of a directory.
  private static func debian(_ module: String, _ more: String = "") -> String {
    "auth [success=2 default=ignore] pam_unix.so nullok\n"
      + "auth [success=1 default=ignore] \(module) use_first_pass\n"
      + "auth requisite pam_deny.so\nauth required pam_permit.so\n" + code
      + "account [success=1 new_authtok_reqd=done default=ignore] pam_unix.so\n"
      + "account requisite pam_deny.so\naccount required pam_permit.so\n"
      + "account sufficient pam_localuser.so\n"
      + "account [default=bad success=ok user_unknown=ignore] \(module)\n" + more + session
  }
  private static let redHat = """
    auth required pam_env.so
    auth required pam_faildelay.so delay=2000000
    auth [default=1 ignore=ignore success=ok] pam_usertype.so isregular
    auth [default=1 ignore=ignore success=ok] pam_localuser.so
    auth sufficient pam_unix.so nullok
    auth [default=1 ignore=ignore success=ok] pam_usertype.so isregular
    auth sufficient pam_sss.so forward_pass
    auth required pam_deny.so
    account required pam_unix.so
    account sufficient pam_localuser.so
    account sufficient pam_usertype.so issystem
    account [default=bad success=ok user_unknown=ignore] pam_sss.so
    account required pam_permit.so
    session required pam_permit.so

    """
  private static let sssd = AccountTraits(
    uid: 70_000, password: .elsewhere, isLocal: false, sources: ["sss"])
  private static let unlisted = AccountTraits(
    uid: 70_000, password: .elsewhere, aging: [.unlisted], isLocal: false, sources: ["ldap"])
  private static let robot = AccountTraits(uid: 1000, password: .none)
  private static let both = RehearsalCase.password + code

  static let cases = [
    RehearsalCase(
      name: "of SSSD", stack: debian("pam_sss.so"), traits: sssd, wanted: .asked(.code)),
    RehearsalCase(
      name: "of SSSD, pam_unix required",
      stack: debian("pam_sss.so").replacing("account required", with: "account required"),
      traits: sssd, wanted: .asked(.code)),
    RehearsalCase(
      name: "of the files, beside SSSD", stack: debian("pam_sss.so"), wanted: .asked(.code)),
    RehearsalCase(
      name: "a robot of the files, beside SSSD", stack: debian("pam_sss.so"), traits: robot,
      wanted: .unseen(.moduleDecides)),
    RehearsalCase(
      name: "a robot of the files, below minimum_uid",
      stack: debian("pam_krb5.so minimum_uid=2000"), traits: robot, wanted: .refused(.noPassword)),
    RehearsalCase(
      name: "root has no account in SSSD", stack: debian("pam_sss.so"),
      traits: AccountTraits(uid: 0, password: .none), wanted: .refused(.noPassword)),
    RehearsalCase(
      name: "a hash in the directory's passwd", stack: both + RehearsalCase.account,
      traits: AccountTraits(uid: 70_000, isLocal: false, sources: ["nis"]), wanted: .asked(.code)),
    RehearsalCase(
      name: "no line of shadow", stack: debian("pam_ldap.so"), traits: unlisted,
      wanted: .refused(.stackShut)),
    RehearsalCase(
      name: "no line of shadow, and it does not matter",
      stack: debian("pam_ldap.so").replacing("pam_unix.so\n", with: "pam_unix.so broken_shadow\n"),
      traits: unlisted, wanted: .asked(.code)),
    RehearsalCase(
      name: "NOPASSWD of an account of SSSD", stack: both + RehearsalCase.account, traits: sssd,
      phases: [.account, .session], wanted: .withoutCode(.noPasswd)),
    RehearsalCase(
      name: "NOPASSWD, and no line of shadow", stack: both + RehearsalCase.account,
      traits: AccountTraits(uid: 1000, password: .none, aging: [.unlisted]),
      phases: [.account, .session], wanted: .refused(.stackShut)),
    RehearsalCase(
      name: "Red Hat's, of the files",
      stack: redHat.replacing(
        "account required pam_unix", with: code + "account required pam_unix"),
      wanted: .withoutCode(.skipped)),
    RehearsalCase(
      name: "Red Hat's in a substack, of SSSD",
      stack: code + redHat, traits: sssd, wanted: .asked(.code)),
    RehearsalCase(
      name: "Red Hat's in a substack, of the files", stack: code + redHat, wanted: .asked(.code)),
    RehearsalCase(
      name: "a password of Kerberos, first",
      stack: "auth [success=2 default=ignore] pam_krb5.so minimum_uid=1000\n"
        + "auth [success=1 default=ignore] pam_unix.so nullok try_first_pass\n"
        + "auth requisite pam_deny.so\nauth required pam_permit.so\n" + code
        + "account required pam_krb5.so minimum_uid=1000\n" + RehearsalCase.account,
      wanted: .asked(.code)),
    RehearsalCase(
      name: "an account of another directory than the module's", stack: debian("pam_winbind.so"),
      traits: sssd, wanted: .unseen(.moduleDecides)),
  ]

  @Test(arguments: cases) func `ends as it will`(_ one: RehearsalCase) throws {
    #expect(try one.verdict() == one.wanted)
  }

  @Test(arguments: [PasswordAging.State.mustChange, .inactive])
  func `Whom nobody asks for a new password is kept out by the old one`(
    state: PasswordAging.State
  ) throws {
    let one = RehearsalCase(
      name: "", stack: Self.both + RehearsalCase.account,
      traits: AccountTraits(uid: 1000, password: .none, aging: [state]),
      phases: [.account, .session], wanted: .refused(.expired))
    #expect(try one.verdict() == one.wanted)
  }

  // MARK: one field

  private static let forward =
    "auth required pam_sallyport.so forward_pass\n"
    + "auth required pam_unix.so use_first_pass\n" + RehearsalCase.account

  static let fields = [
    RehearsalCase(
      name: "the exempt types the password alone", stack: forward, enrollment: .none,
      note: .exempt(until: nil), wanted: .withoutCode(.exempt)),
    RehearsalCase(
      name: "so does somebody for whom it is off", stack: forward,
      policy: "[default]\nstate = disabled\n", wanted: .withoutCode(.disabled)),
    RehearsalCase(
      name: "what is typed there is taken without a word for it",
      stack: forward.replacing(" use_first_pass", with: ""), wanted: .asked(.code)),
    RehearsalCase(
      name: "nothing was typed before",
      stack: RehearsalCase.account
        + "auth required pam_unix.so use_first_pass\n" + code, wanted: .refused(.stackShut)),
    RehearsalCase(
      name: "sshd's password", stack: both + RehearsalCase.account, accepted: [],
      answers: .once, asksInAccount: false, service: "sshd", wanted: .refused(.noPrompt)),
    RehearsalCase(
      name: "sshd's password, not enrolled", stack: both + RehearsalCase.account,
      enrollment: .none, accepted: [], answers: .once, asksInAccount: false, service: "sshd",
      wanted: .refused(.notEnrolled)),
    RehearsalCase(
      name: "sshd's password and one field", stack: forward, accepted: [], answers: .once,
      asksInAccount: false, service: "sshd", wanted: .asked(.code)),
    RehearsalCase(
      name: "sshd's password is the code", stack: code + RehearsalCase.account, accepted: [],
      answers: .once, asksInAccount: false, service: "sshd", wanted: .asked(.code)),
    RehearsalCase(
      name: "sshd's password is the code, exempt", stack: both + RehearsalCase.account,
      enrollment: .none, note: .exempt(until: nil), accepted: [], answers: .once,
      asksInAccount: false,
      service: "sshd", wanted: .withoutCode(.exempt)),
    RehearsalCase(
      name: "sshd's none",
      stack: both.replacing("unix.so", with: "unix.so nullok")
        + RehearsalCase.account, traits: AccountTraits(uid: 1000, password: .blank), accepted: [],
      answers: .empty, asksInAccount: false, service: "sshd", wanted: .refused(.noPrompt)),
    RehearsalCase(
      name: "enrolling without prompts, required", stack: RehearsalCase.enrolls,
      policy: "[default]\nenrollment = required\n", enrollment: .none, accepted: [],
      answers: .once, asksInAccount: false, service: "sshd", wanted: .refused(.noPrompt)),
    RehearsalCase(
      name: "enrolling without prompts, offered", stack: RehearsalCase.enrolls,
      policy: "[default]\nenrollment = offer\n", enrollment: .none, accepted: [],
      answers: .once, asksInAccount: false, service: "sshd", wanted: .withoutCode(.offered)),
  ]

  @Test(arguments: fields) func `answers one field as the person would`(_ one: RehearsalCase) throws
  {
    #expect(try one.verdict() == one.wanted)
  }

  // MARK: modules that ask for nothing

  private static func only(_ line: String) -> RehearsalCase {
    RehearsalCase(
      name: line, stack: line + "\n" + session, phases: [.auth], wanted: .refused(.stackShut))
  }

  static let quiet = [
    // Alone in a stack, PAM_IGNORE lets nobody in.
    RehearsalCase(
      name: "nologin alone", stack: "account required pam_nologin.so\n" + session,
      phases: [.account, .session], wanted: .refused(.stackShut)),
    RehearsalCase(
      name: "nologin successok", stack: "account required pam_nologin.so successok\n" + session,
      phases: [.account, .session], wanted: .withoutCode(.noPasswd)),
    RehearsalCase(
      name: "nologin", stack: both + "account required pam_nologin.so\n" + RehearsalCase.account,
      isNoLogin: true, wanted: .refused(.noLogin)),
    RehearsalCase(
      name: "nologin by another file",
      stack: both + "account required pam_nologin.so file=/no\n" + RehearsalCase.account,
      isNoLogin: true, wanted: .asked(.code)),
    only("auth required pam_warn.so"), only("auth required pam_selinux.so"),
    only("auth required pam_limits.so"), only("auth required pam_motd.so"),
    only("auth required pam_faillock.so authfail"), only("auth required pam_env.so"),
    RehearsalCase(
      name: "limits in the account phase",
      stack: both + "account required pam_limits.so\n" + RehearsalCase.account,
      wanted: .refused(.stackShut)),
    RehearsalCase(
      name: "env in the account phase",
      stack: both + "account required pam_env.so\n" + RehearsalCase.account,
      wanted: .refused(.stackShut)),
    RehearsalCase(
      name: "loginuid, echo and keyinit",
      stack: "auth optional pam_echo.so hi\nauth required pam_keyinit.so\n" + both
        + "account required pam_loginuid.so\n" + RehearsalCase.account
        + "session required pam_keyinit.so\nsession optional pam_motd.so\n",
      wanted: .asked(.code)),
    RehearsalCase(
      name: "faillock around a password",
      stack: "auth required pam_faillock.so preauth\nauth sufficient pam_faillock.so authsucc\n"
        + both + RehearsalCase.account, wanted: .withoutCode(.skipped)),
  ]

  @Test(arguments: quiet) func `goes by what each module returns`(_ one: RehearsalCase) throws {
    #expect(try one.verdict() == one.wanted)
  }

  // MARK: conditions

  private static func around(
    _ condition: String, _ wanted: Verdict, uid: UInt32 = 1000, accepted: [String]? = nil
  ) -> RehearsalCase {
    var one = RehearsalCase(
      name: condition, stack: "auth sufficient \(condition)\n" + both + RehearsalCase.account,
      traits: AccountTraits(uid: uid), service: accepted == nil ? "sudo" : "sshd", wanted: wanted)
    one.accepted = accepted
    return one
  }

  static let conditions = [
    around("pam_succeed_if.so user = alice", .withoutCode(.skipped)),
    around("pam_succeed_if.so login != alice", .asked(.code)),
    around("pam_succeed_if.so user in bob:alice", .withoutCode(.skipped)),
    around("pam_succeed_if.so user notin bob:alicia", .withoutCode(.skipped)),
    around("pam_succeed_if.so user in bob:ali", .asked(.code)),
    around("pam_succeed_if.so user =~ a*", .unseen(.moduleDecides)),
    around("pam_succeed_if.so service = sudo", .withoutCode(.skipped)),
    around("pam_succeed_if.so service in sshd:login", .asked(.code)),
    around("pam_succeed_if.so shell = /bin/sh uid >= 1000", .withoutCode(.skipped)),
    around("pam_succeed_if.so shell notin /bin/sh:/bin/bash", .asked(.code)),
    around("pam_succeed_if.so tty = ssh", .withoutCode(.skipped), accepted: []),
    around("pam_succeed_if.so tty = ssh", .unseen(.moduleDecides)),
    around("pam_succeed_if.so rhost = 192.0.2.1", .unseen(.moduleDecides)),
    around("pam_succeed_if.so uid > 2000 rhost = 192.0.2.1", .asked(.code)),
    around("pam_succeed_if.so uid > 10 rhost", .asked(.code)),
    around("pam_succeed_if.so quiet", .withoutCode(.skipped)),
    around("pam_succeed_if.so use_uid uid > 10", .withoutCode(.skipped)),
    around("pam_succeed_if.so use_uid uid > 10", .unseen(.moduleDecides), uid: 1001),
    around("pam_usertype.so isregular", .withoutCode(.skipped)),
    around("pam_usertype.so isregular", .asked(.code), uid: 500),
    around("pam_usertype.so issystem", .withoutCode(.skipped), uid: 65_534),
    around("pam_usertype.so issystem", .withoutCode(.skipped), uid: 99),
    around("pam_usertype.so issystem", .asked(.code), uid: 100),
    around("pam_usertype.so", .asked(.code)),
  ]

  @Test(arguments: conditions) func `goes by conditions`(_ one: RehearsalCase) throws {
    #expect(try one.verdict() == one.wanted)
  }

  @Test func `Uids of the system are those of login defs`() throws {
    let fake = FakeMachine()
    #expect(SystemUsers(of: fake.machine) == SystemUsers(range: 101...999))
    try fake.write("/etc/login.defs", "# UID_MIN 7\nUID_MIN\t500\nSYS_UID_MIN 201\n")
    #expect(SystemUsers(of: fake.machine) == SystemUsers(range: 201...499))
    try fake.write("/etc/login.defs", "UID_MIN 500\nSYS_UID_MIN 201\nSYS_UID_MAX  900\n")
    #expect(SystemUsers(of: fake.machine) == SystemUsers(range: 201...900))
  }

  // MARK: what is not known

  static let doubts = [
    RehearsalCase(
      name: "a doubt in one phase that matters in the next",
      stack: "auth sufficient pam_corp.so\n" + both + "account required pam_sallyport.so demand\n"
        + RehearsalCase.account, wanted: .unseen(.moduleDecides)),
    RehearsalCase(
      name: "a doubt that does not matter",
      stack: "auth optional pam_corp.so\n" + both
        + RehearsalCase.account, wanted: .asked(.code)),
    RehearsalCase(
      name: "two doubts, and one of them is enough",
      stack: "auth optional pam_corp.so\n" + both + "account optional pam_corp.so\n"
        + "account required pam_corp.so\n" + RehearsalCase.account,
      wanted: .unseen(.moduleDecides)),
    RehearsalCase(
      name: "too many doubts",
      stack: String(repeating: "auth optional pam_corp.so\n", count: 5) + both
        + String(repeating: "account optional pam_corp.so\n", count: 4) + RehearsalCase.account,
      wanted: .unseen(.tooComplex)),
    RehearsalCase(
      name: "a password that ends today",
      stack: both + RehearsalCase.account,
      traits: AccountTraits(uid: 1000, aging: [.inactive, .mustChange]),
      wanted: .unseen(.moduleDecides)),
    RehearsalCase(
      name: "no_pass_expiry of a key",
      stack: both + RehearsalCase.account.replacing("unix.so", with: "unix.so no_pass_expiry"),
      traits: AccountTraits(uid: 1000, aging: [.inactive]), phases: [.account, .session],
      wanted: .withoutCode(.noPasswd)),
    RehearsalCase(
      name: "no_pass_expiry of a password",
      stack: both + RehearsalCase.account.replacing("unix.so", with: "unix.so no_pass_expiry"),
      traits: AccountTraits(uid: 1000, aging: [.inactive]), wanted: .refused(.expired)),
  ]

  @Test(arguments: doubts) func `is not known where something else decides`(_ one: RehearsalCase)
    throws
  {
    #expect(try one.verdict() == one.wanted)
  }
}
