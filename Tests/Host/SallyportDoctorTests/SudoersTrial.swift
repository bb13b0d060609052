import Foundation
import Glibc
import PAMStack
import SallyportCore
import TestSupport

@testable import SallyportDoctor

/// The real sudo on a private machine with sudoers of ours, and what doctor says of it.
struct SudoersTrial {
  /// Who calls.
  static let callers = [
    account("alice", 1001, 1001), account("bob", 1002, 1002, [2000]),
    account("carol", 1003, 2000), account("root", 0, 0),
  ]
  static let web = account("web", 1900, 1900)
  private static let groupNames: [UInt32: String] = [
    0: "root", 1001: "alice", 1002: "bob", 1900: "web", 2000: "ops",
  ]
  /// One that no rule names, and those that rules name; with arguments that they name and others.
  private static let commands = [
    "/srv/proof", "/opt/a", "/opt/a x", "/opt/a odd", "/opt/b", "/opt/b x", "/opt/c", "/opt/d",
    "/opt/rootshell odd",
  ]

  private let machine: FakeMachine

  init() throws {
    machine = FakeMachine()
    try machine.write("/etc/sudoers", "")
    try machine.write("/proc/sys/kernel/hostname", "web1.example.org\n")
    try machine.write("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n")
    try machine.write("/etc/hosts", "127.0.0.1 localhost\n127.0.1.1 web1.example.org web1\n")
    let accounts = SudoersTrial.callers + [SudoersTrial.web]
    try machine.write(
      "/etc/passwd",
      accounts.map { "\($0.name):x:\($0.uid):\($0.group)::/:\($0.shell)\n" }.joined())
    try machine.write(
      "/etc/group",
      SudoersTrial.groupNames.map { "\($1):x:\($0):\($1 == "ops" ? "bob" : "")\n" }.joined())
    try machine.write("/etc/shadow", accounts.map { "\($0.name):*:20000::::::\n" }.joined())
    for service in ["sudo", "sudo-i", "corp", "corp-i"] {
      try machine.write(
        "/etc/pam.d/\(service)",
        """
        auth optional pam_exec.so /srv/asked
        auth required pam_permit.so
        account required pam_permit.so
        session required pam_permit.so

        """)
    }
  }

  private static func account(
    _ name: String, _ uid: UInt32, _ group: UInt32, _ groups: [UInt32] = []
  ) -> AccountFacts.Account {
    AccountFacts.Account(
      name: name, uid: uid, group: group, shell: name == "root" ? "/opt/rootshell" : "/bin/sh",
      groups: groups)
  }

  private static func groups(of account: AccountFacts.Account) -> [String] {
    ([account.group] + account.groups).compactMap { groupNames[$0] }
  }

  // MARK: what doctor says

  /// For each caller and way: the answer for a shell, and the loosest of all.
  func told(_ text: String, at now: UnixTime) throws -> [String: String] {
    try machine.write("/etc/sudoers", text)
    let real = Machine(root: machine.root, run: Machine.runProgram)
    let sudoers = Sudoers(of: real)
    var answers: [String: String] = [:]
    for account in SudoersTrial.callers {
      let caller = sudoers.caller(account, groups: SudoersTrial.groups(of: account), at: now)
      let target = SudoTarget(SudoersTrial.web, groups: ["web"])
      let ways = [("shell", SudoWay.shell, "root"), ("web", .other(target), "web")]
      for (name, way, user) in ways {
        let rules = caller.rules(way)
        let loosest = rules.someCommands ?? rules.shell
        answers["\(account.name) \(name)"] = SudoersTrial.word(rules.shell, account.name, user)
        answers["\(account.name) \(name) loosest"] = SudoersTrial.word(loosest, account.name, user)
      }
      answers["\(account.name) login"] =
        SudoersTrial.word(caller.rules(.login).shell, account.name, "root")
    }
    return answers
  }

  private static func word(_ rule: RootRule, _ caller: String, _ target: String) -> String {
    switch rule {
    case .none: "refused"
    case .asks(let owner, let service, _):
      switch owner {
      case .caller: "\(service) \(caller)"
      case .root: "\(service) root"
      case .target: "\(service) \(target)"
      case .account(let name): "\(service) \(name)"
      }
    case .asksNothing: "in"
    case .unseen(let gap): "unseen: \(gap)"
    }
  }

  // MARK: what sudo does

  /// The same by the real sudo.
  func done(_ text: String) throws -> [String: String] {
    try machine.write("/etc/sudoers", text)
    var (names, script) = ([String](), try opening())
    for account in SudoersTrial.callers {
      for (way, words) in [("shell", "-u root"), ("web", "-u web")] {
        for command in SudoersTrial.commands {
          names.append("\(account.name) \(way)\(command == "/srv/proof" ? "" : " loosest")")
          script += SudoersTrial.call(account, "\(words) \(command)")
        }
      }
      names.append("\(account.name) login")
      script += SudoersTrial.call(account, "-i -u root")
    }
    let answers = try run(script).components(separatedBy: "NEXT-CALL\n").dropFirst()
    guard answers.count == names.count else { throw Failure(output: "\(answers)") }
    var results: [String: String] = [:]
    for (name, answer) in zip(names, answers) {
      let found = SudoersTrial.meaning(of: answer)
      results[name] = SudoersTrial.looser(results[name], found)
      if name.hasSuffix(" shell") || name.hasSuffix(" web") { results["\(name) loosest"] = found }
    }
    return results
  }

  struct Failure: Error { let output: String }

  private static func looser(_ one: String?, _ other: String) -> String {
    guard let one, one != "refused" else { return other }
    return other == "in" ? other : one
  }

  private static func meaning(of output: String) -> String {
    let refusals = ["is not allowed to", "is not in the sudoers file", "may not run sudo"]
    if refusals.contains(where: output.contains) { return "refused" }
    guard output.contains("IN-42") else { return output }
    let asked = output.split(separator: "\n").first { $0.hasPrefix("ASKED ") }
    return asked.map { String($0.dropFirst("ASKED ".count)) } ?? "in"
  }

  private static func call(_ account: AccountFacts.Account, _ words: String) -> String {
    """
    echo NEXT-CALL
    setpriv --reuid \(account.uid) --regid \(account.group) --init-groups \
    sudo -k \(words) < /dev/null 2>&1
    cat /srv/log
    : > /srv/log

    """
  }

  // MARK: doas

  private static let doasWays = ["root", "web"]

  /// For each caller and target: the answer for a command that no rule names, and for one.
  func toldOfDoas(_ text: String) throws -> [String] {
    try machine.write("/etc/doas.conf", text)
    let groups = SudoersTrial.groupNames.map {
      AccountFacts.Group(name: $1, number: $0, members: [])
    }
    let accounts = SudoersTrial.callers + [SudoersTrial.web]
    let doas = Doas(of: machine.machine, AccountFacts(accounts: accounts, groups: groups))
    return SudoersTrial.callers.flatMap { account in
      SudoersTrial.doasWays.flatMap { way -> [String] in
        let rules = doas.rules(for: account, as: way == "web" ? SudoersTrial.web : nil)
        return [rules.shell, rules.someCommands ?? rules.shell].map { rule in
          switch rule {
          case .none: "deny"
          case .asks: "permit"
          case .asksNothing: "permit nopass"
          case .unseen: "unseen"
          }
        }
      }
    }
  }

  /// The same by `doas -C`: the loosest of three commands.
  func doneByDoas(_ text: String) throws -> [String] {
    var script = try opening() + "mkdir /srv/x\n"
    try machine.write("/etc/doas.conf", text)
    script += "cp \(machine.root)/etc/doas.conf /srv/doas.conf; chmod 644 /srv/doas.conf\n"
    for account in SudoersTrial.callers {
      for way in SudoersTrial.doasWays {
        for command in ["/srv/proof", "/opt/a", "/opt/a x", "/opt/a odd"] {
          script += """
            echo "$(setpriv --reuid \(account.uid) --regid \(account.group) --init-groups \
            doas -C /srv/doas.conf -u \(way) \(command) 2>/dev/null)."

            """
        }
      }
    }
    let lines = try run(script).split(separator: "\n").map { line in
      line == "." ? "deny" : String(line.dropLast())
    }
    return stride(from: 0, to: lines.count - 3, by: 4).flatMap { start -> [String] in
      let all = Array(lines[start..<start + 4])
      return [all[0], all.max { $0.count < $1.count && $1 != "deny" || $0 == "deny" } ?? ""]
    }
  }

  private func opening() throws -> String {
    var text = "set -e\nexport LC_ALL=C\nhostname web1.example.org\n"
    for file in ["sudoers", "passwd", "group", "shadow", "hosts", "nsswitch.conf", "pam.d"] {
      text += "mount --bind \(machine.root)/etc/\(file) /etc/\(file)\n"
    }
    for directory in ["/opt", "/srv", "/run/sudo", "/var/log"] {
      text += "mkdir -p \(directory); mount -t tmpfs -o mode=755 none \(directory)\n"
    }
    let asked = "echo ASKED $PAM_SERVICE $PAM_USER >> /srv/log"
    text += "printf '#!/bin/sh\\necho IN-42\\n' > /srv/proof\n: > /srv/log\n"
    text += "printf '#!/bin/sh\\n\(asked)\\n' > /srv/asked\nchmod 755 /srv/proof /srv/asked\n"
    text += "chmod 666 /srv/log\n"
    text += "for name in a b c d rootshell; do cp /srv/proof /opt/$name; done\nset +e\n"
    text += "chown root: /etc/sudoers; chmod 440 /etc/sudoers\n"
    return text
  }

  private func run(_ script: String) throws -> String {
    let (process, pipe) = (Process(), Pipe())
    process.executableURL = URL(fileURLWithPath: "/usr/bin/unshare")
    process.arguments = ["--mount", "--uts", "--propagation", "private", "sh", "-c", script]
    (process.standardOutput, process.standardError) = (pipe, pipe)
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return String(decoding: output, as: UTF8.self)
  }
}
