import Foundation
import PAMStack
import SallyportCore
import SallyportSystem
import Testing

@testable import SallyportDoctor

/// Tests of the table of who gets in, on a machine with Debian's usual stacks.
protocol AccessTrial {
  var fake: FakeMachine { get }
}

extension AccessTrial {
  var asks: String {
    "auth required pam_unix.so\nauth required pam_sallyport.so\naccount required pam_unix.so\n"
      + "session required pam_permit.so\n"
  }
  var open: String {
    "auth required pam_unix.so\naccount required pam_unix.so\nsession required pam_permit.so\n"
  }

  /// alice may call sudo, ansible without a password; git has no rule.
  func prepare() throws {
    try fake.write("/etc/debian_version", "12\n")
    try fake.write("/etc/pam.d/other", "auth required pam_deny.so\n")
    for service in ["sudo", "sudo-i", "su", "su-l", "login"] {
      try fake.write("/etc/pam.d/\(service)", asks)
    }
    try fake.write("/bin/sh", "")
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o755], ofItemAtPath: "\(fake.root)/bin/sh")
    try accounts(["root:x:0:0", "alice:x:1000:1000", "ansible:x:1001:1001", "git:x:999:999"])
    try fake.write("/etc/sudoers", "alice ALL=(ALL) ALL\nansible ALL=(ALL) NOPASSWD: ALL\n")
  }

  func accounts(_ rows: [String], passwords: [String: String] = [:]) throws {
    let lines = rows.map { "\($0)::/home/\($0.prefix { $0 != ":" }):/bin/sh\n" }
    try fake.write("/etc/passwd", lines.joined())
    let names = rows.map { String($0.prefix { $0 != ":" }) }
    let shadow = names.map { "\($0):\(passwords[$0] ?? "$6$x$y"):19000:0:99999:7:::\n" }
    try fake.write("/etc/shadow", shadow.joined())
    try fake.write("/etc/group", rows.map { "\($0):\n" }.joined().replacing("::", with: ":"))
  }

  /// `enrolled`: whom the files of this machine have a phone of.
  func table(_ enrolled: String...) -> AccessTable {
    table(enrolled, of: fake.machine)
  }

  func table(_ enrolled: [String], of machine: Machine) -> AccessTable {
    let store = Store(root: Array("\(fake.root)/store".utf8), owner: .effectiveUser)
    var facts = AccessFacts(of: machine, store, at: Healthy.now)
    facts.isStoreBroken = false
    for name in enrolled { facts.enrollments[name] = .enrolled([.totp]) }
    return AccessTable(facts)
  }

  func verdicts(_ table: AccessTable, _ user: String, _ way: String) -> [Verdict] {
    table.rows.filter { $0.user == user }.flatMap(\.cells).filter { $0.way.name == way }
      .map(\.verdict)
  }
}
