import TestSupport

/// A sudoers file by chance, as people write them.
struct SudoersDraw {
  /// Of the program that the trial puts there.
  private static let checksum = "38dbaaf65d13a58f4516c9498da227c7fc64fe80d67c173a9d08775dce09af06"

  private(set) var random: Seeded
  private(set) var text = ""

  private static let aliases = """
    User_Alias ADMINS = alice, %ops : NOBODYELSE = ALL, !carol
    Host_Alias HERE = web1, db : THERE = web2
    Runas_Alias SERVICES = web, #1900
    Cmnd_Alias TOOLS = /run/opt/a, /run/opt/b x : ALLBUT = ALL, !/run/opt/a, !/run/opt/rootshell
    Defaults !syslog, !mailerpath

    """

  init(seed: UInt64) {
    random = Seeded(seed &* 2 &+ 1)
    var lines = (0...random.below(4)).map { _ in rule() }
    for _ in 0..<random.below(4) { lines.insert(defaults(), at: random.below(lines.count + 1)) }
    text = SudoersDraw.aliases + lines.joined(separator: "\n") + "\n"
  }

  private mutating func one(_ choices: String...) -> String { random.one(of: choices) }

  private mutating func users() -> String {
    one(
      "alice", "alice", "bob", "%ops", "%#2000", "#1001", "ALL", "ALL, !alice", "ADMINS",
      "!ADMINS, bob", "NOBODYELSE", "!NOBODYELSE, alice", "alice,bob", "%ops, !carol", "CAROL",
      "Alice", "root, bob", "\"bob\"", "ALL, ! bob")
  }

  private mutating func hosts() -> String {
    one(
      "ALL", "ALL", "ALL", "ALL", "ALL", "web1", "web2", "ALL, !web1", "web?", "HERE", "ALL, !HERE",
      "THERE", "web1.example.org", "!THERE, ALL")
  }

  private mutating func runas() -> String {
    one(
      "", "", "(ALL)", "(ALL)", "(ALL : ALL)", "(root)", "(web)", "(ALL, !root)", "(SERVICES)",
      "()",
      "(:ops)", "(%web)", "(#0)", "(!web, ALL)", "(ALL, !SERVICES)")
  }

  private mutating func tags() -> String {
    one(
      "", "", "", "NOPASSWD:", "NOPASSWD: ", "PASSWD: ", "NOEXEC: ", "SETENV:NOPASSWD: ",
      "NOPASSWD: PASSWD: ", "NOTBEFORE=20200101000000Z NOPASSWD: ",
      "NOTAFTER=20200101000000Z NOPASSWD: ", "NOTBEFORE=2099010100+0100 ")
  }

  private mutating func command() -> String {
    one(
      "ALL", "ALL", "ALL", "ALL, !/run/opt/a", "/run/opt/a", "/run/opt/a x", "/run/opt/a \"\"",
      "/run/opt/b", "!/run/opt/a",
      "/run/opt/", "/run/opt/*", "TOOLS", "!TOOLS", "ALLBUT", "/run/opt/rootshell",
      "!/run/opt/rootshell",
      "/run/opt/b, PASSWD: /run/opt/a", "sha256:\(SudoersDraw.checksum) /run/opt/d")
  }

  private mutating func privilege() -> String {
    var commands: [String] = []
    for index in 0...random.below(3) {
      commands.append((index == 0 || random.flip() ? runas() : "") + " " + tags() + command())
    }
    return "\(hosts()) =\(commands.joined(separator: ","))"
  }

  private mutating func rule() -> String {
    "\(users()) \(privilege())" + (random.below(5) == 0 ? " : \(privilege())" : "")
  }

  private mutating func defaults() -> String {
    let bound = one(
      "", "", "", ":alice", ":%ops", ":ADMINS", ":ALL, !bob", ">web", ">root", ">SERVICES", "@web1",
      "@THERE", "@HERE", "!/run/opt/a", "!TOOLS", "!ALL", "!/run/opt/rootshell")
    let options = one(
      "!authenticate", "!authenticate", "authenticate", "rootpw", "targetpw", "runaspw", "!rootpw",
      "!authenticate, rootpw", "timestamp_timeout=-1", "!pam_acct_mgmt", "!pam_session",
      "pam_service=corp", "runaspw, !pam_acct_mgmt", "!authenticate, targetpw")
    let forAll = one(
      "exempt_group=ops", "pam_service=corp", "pam_login_service = \"corp-i\"", "!exempt_group",
      "runas_default=web", "!root_sudo", "!pam_acct_mgmt", "env_reset, !authenticate, authenticate")
    return random.below(3) == 0 ? "Defaults \(forAll)" : "Defaults\(bound) \(options)"
  }
}
