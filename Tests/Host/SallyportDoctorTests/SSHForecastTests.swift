import Foundation
import SallyportCore
import SallyportSystem
import Testing

@testable import PAMStack
@testable import SallyportDoctor

/// What sshd is set to, and who alice is: what becomes of each list of methods.
struct SSHForecastCase: CustomTestStringConvertible {
  let name: String
  /// `sshd -T` beside the usual.
  var settings: [String]
  /// For those who come from 192.0.2.1.
  var there: [String] = []
  /// From the password on, in /etc/shadow.
  var shadow = "$6$x$y:19000:0:99999:7:::"
  var hasKey = false
  /// A file that keeps all but root out.
  var noLogin: String?
  var stack = "auth required pam_unix.so\nauth required pam_sallyport.so\n"
  let wanted: [Verdict]
  var testDescription: String { name }

  private static let noPAM = [
    "usepam no", "passwordauthentication yes", "authenticationmethods password",
  ]
  private static let key = ["authenticationmethods publickey"]

  static let all: [SSHForecastCase] = [
    SSHForecastCase(
      name: "prompts", settings: ["authenticationmethods keyboard-interactive"],
      wanted: [.asked(.code)]),
    SSHForecastCase(name: "a key that is missing", settings: key, wanted: [.refused(.noKey)]),
    SSHForecastCase(
      name: "two keys", settings: ["authenticationmethods publickey,publickey"], hasKey: true,
      wanted: [.unseen(.keysElsewhere)]),
    SSHForecastCase(
      name: "a key alone, of a program", settings: key, shadow: "*:19000:0:99999:7:::",
      hasKey: true, wanted: [.withoutCode(.keyAlone)]),
    SSHForecastCase(
      name: "a key that the methods leave out",
      settings: ["authenticationmethods keyboard-interactive"], shadow: "*:19000:0:99999:7:::",
      hasKey: true, wanted: [.refused(.keyLeftOut)]),
    SSHForecastCase(
      name: "a key alone from one address",
      settings: ["authenticationmethods keyboard-interactive"],
      there: ["authenticationmethods publickey"], shadow: "*:19000:0:99999:7:::", hasKey: true,
      wanted: [.refused(.keyLeftOut), .withoutCode(.keyAlone)]),
    SSHForecastCase(
      name: "a key, where sshd takes none",
      settings: ["authenticationmethods keyboard-interactive", "pubkeyauthentication no"],
      shadow: "*:19000:0:99999:7:::", hasKey: true, wanted: [.refused(.noPassword)]),
    SSHForecastCase(
      name: "keys by a command",
      settings: key + ["authorizedkeyscommand /bin/keys", "authorizedkeyscommanduser nobody"],
      wanted: [.unseen(.keysElsewhere)]),
    SSHForecastCase(
      name: "denied", settings: ["denyusers alice"] + key, hasKey: true,
      wanted: [.refused(.notAllowed)]),
    SSHForecastCase(name: "without PAM", settings: noPAM, wanted: [.withoutCode(.noPAM)]),
    SSHForecastCase(
      name: "without PAM, an empty password", settings: noPAM, shadow: ":19000:0:99999:7:::",
      wanted: [.refused(.noPassword)]),
    SSHForecastCase(
      name: "without PAM, and over", settings: noPAM, shadow: "$6$x$y:19000:0:99999:7::1:",
      wanted: [.refused(.expired)]),
    SSHForecastCase(
      name: "without PAM, and nobody may log in", settings: noPAM, noLogin: "/etc/nologin",
      wanted: [.refused(.noLogin)]),
    SSHForecastCase(
      name: "without PAM, by a file that sshd does not know", settings: noPAM,
      noLogin: "/run/nologin", wanted: [.withoutCode(.noPAM)]),
    SSHForecastCase(
      name: "nothing at all",
      settings: [
        "authenticationmethods none", "permitemptypasswords yes", "passwordauthentication yes",
      ],
      shadow: ":19000:0:99999:7:::", stack: "auth required pam_unix.so nullok\n",
      wanted: [.withoutCode(.noLine)]),
    SSHForecastCase(
      name: "the last list is left out from one address", settings: ["authenticationmethods any"],
      there: ["kbdinteractiveauthentication no"], hasKey: true,
      wanted: [.withoutCode(.keyAlone), .asked(.code), .withoutCode(.keyAlone)]),
  ]
}

@Suite struct `Who gets in over ssh` {
  private let fake = FakeMachine()

  @Test(arguments: SSHForecastCase.all) func `is told for each list of methods`(
    _ one: SSHForecastCase
  ) throws {
    try fake.write(
      "/etc/passwd", "root:x:0:0::/root:/bin/sh\nalice:x:999:999::/home/alice:/bin/sh\n")
    try fake.write("/etc/shadow", "root:*:19000:0:99999:7:::\nalice:\(one.shadow)\n")
    try fake.write("/etc/group", "root:x:0:\nalice:x:999:\n")
    try fake.write("/bin/sh", "")
    try fake.change("/bin/sh", mode: 0o755)
    try fake.write(
      "/etc/pam.d/sshd",
      one.stack + "account required pam_unix.so\nsession required pam_permit.so\n")
    if one.hasKey {
      try fake.write(
        "/home/alice/.ssh/authorized_keys", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA alice\n")
    }
    try fake.write("/etc/ssh/sshd_config", "Match Address 192.0.2.0/24\n  UsePAM yes\n")
    let more = "\nauthorizedkeysfile .ssh/authorized_keys\nauthorizedkeyscommand none"
    let machine = Machine(root: fake.root) { words in
      let isThere = words.last?.contains("addr=192.0.2.1,") == true
      let settings = (isThere ? one.there : []) + one.settings + [Healthy.sshText]
      return .seen(CommandOutput(output: settings.joined(separator: "\n") + more))
    }
    if let path = one.noLogin { try fake.write(path, "") }
    var facts = AccessFacts(
      of: machine, Store(root: Array("\(fake.root)/store".utf8), owner: .effectiveUser),
      at: Healthy.now)
    facts.isStoreBroken = false
    facts.enrollments["alice"] = .enrolled([.totp])
    let row = try #require(AccessTable(facts).rows.first { $0.user == "alice" })
    let cells = row.cells.filter { $0.way.kind == .ssh }
    #expect(cells.map(\.verdict) == one.wanted)
    // Where its key lets it in from somewhere, that is meant.
    let isLockedOut = !cells.contains(where: \.verdict.mayLetIn)
    for cell in cells where cell.verdict == .refused(.keyLeftOut) {
      #expect(cell.severity == (isLockedOut ? .error : .ok))
    }
  }
}
