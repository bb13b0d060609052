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
    "/run/trial/proof", "/run/opt/a", "/run/opt/a x", "/run/opt/a odd", "/run/opt/b",
    "/run/opt/b x",
    "/run/opt/c", "/run/opt/d", "/run/opt/rootshell odd", "/run/opt/webshell odd",
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
        auth optional pam_exec.so /run/trial/noted
        auth required pam_permit.so
        account optional pam_exec.so /run/trial/noted
        account required pam_permit.so
        session optional pam_exec.so /run/trial/noted
        session required pam_permit.so

        """)
    }
  }

  private static func account(
    _ name: String, _ uid: UInt32, _ group: UInt32, _ groups: [UInt32] = []
  ) -> AccountFacts.Account {
    AccountFacts.Account(
      name: name, uid: uid, group: group,
      shell: ["root", "web"].contains(name) ? "/run/opt/\(name)shell" : "/bin/sh", groups: groups)
  }

  private static func groups(of account: AccountFacts.Account) -> [String] {
    ([account.group] + account.groups).compactMap { groupNames[$0] }
  }

  // MARK: what doctor says

  /// For each caller and way: the answer for a shell, and all that are no refusals.
  func told(_ text: String, at now: UnixTime) throws -> [String: String] {
    try machine.write("/etc/sudoers", text)
    let real = Machine(root: machine.root, run: Machine.runProgram)
    let sudoers = Sudoers(of: real)
    var answers: [String: String] = [:]
    for account in SudoersTrial.callers {
      let caller = sudoers.caller(account, groups: SudoersTrial.groups(of: account), at: now)
      let web = SudoTarget(SudoersTrial.web, groups: ["web"])
      for (name, way, user) in [
        ("shell", SudoWay.shell, "root"), ("web", .other(web), "web"), ("login", .login, "root"),
        ("login web", .other(web, .login), "web"),
      ] {
        let rules = caller.rules(way)
        let all = ([rules.shell] + rules.someCommands).map {
          SudoersTrial.word($0, account.name, user)
        }
        answers["\(account.name) \(name)"] = all[0]
        answers["\(account.name) \(name) all"] = SudoersTrial.all(all)
      }
    }
    return answers
  }

  private static func all(_ answers: [String]) -> String {
    Set(answers).subtracting(["refused"]).sorted().joined(separator: " or ")
  }

  private static func word(_ rule: RootRule, _ caller: String, _ target: String) -> String {
    switch rule {
    case .none: return "refused"
    case .asks(let check, _): return word(check, ["auth"], caller, target)
    case .asksNothing(_, let check, _): return word(check, [], caller, target)
    case .unseen(let gap): return "unseen: \(gap)"
    }
  }

  /// The phases, the service, and whose account it is about.
  private static func word(
    _ check: RootCheck, _ first: [String], _ caller: String, _ target: String
  ) -> String {
    let about = first + (check.runsAccountPhase ? ["account"] : [])
    let phases = about + (check.runsSessionPhase ? ["open_session"] : [])
    if phases.isEmpty { return "in" }
    let owner =
      switch check.owner {
      case .caller: caller
      case .root: "root"
      case .target: target
      case .account(let name): name
      }
    return "\(phases.joined(separator: ",")) \(check.service) \(about.isEmpty ? "" : owner)"
  }

  // MARK: what sudo does

  /// The same by the real sudo.
  func done(_ text: String) throws -> [String: String] {
    try machine.write("/etc/sudoers", text)
    var (names, script) = ([String](), try opening())
    for account in SudoersTrial.callers {
      for (way, words) in [("shell", "-u root"), ("web", "-u web")] {
        for command in SudoersTrial.commands {
          names.append("\(account.name) \(way)\(command == SudoersTrial.commands[0] ? "" : " all")")
          script += SudoersTrial.call(account, "\(words) \(command)")
        }
      }
      names += ["\(account.name) login", "\(account.name) login web"]
      script += SudoersTrial.call(account, "-i -u root") + SudoersTrial.call(account, "-i -u web")
    }
    let answers = try run(script).components(separatedBy: "NEXT-CALL\n").dropFirst()
    guard answers.count == names.count else { throw Failure(output: "\(answers)") }
    var (results, all): ([String: String], [String: [String]]) = ([:], [:])
    for (name, answer) in zip(names, answers) {
      let found = SudoersTrial.meaning(of: answer)
      all[name.hasSuffix(" all") ? name : "\(name) all", default: []].append(found)
      if !name.hasSuffix(" all") { results[name] = found }
    }
    return results.merging(all.mapValues(SudoersTrial.all)) { one, _ in one }
  }

  struct Failure: Error { let output: String }

  private static func meaning(of output: String) -> String {
    let refusals = ["is not allowed to", "is not in the sudoers file", "may not run sudo"]
    if refusals.contains(where: output.contains) { return "refused" }
    guard output.contains("IN-42") else { return output }
    let notes = output.split(separator: "\n").filter { $0.hasPrefix("NOTED ") }
      .map { $0.split(separator: " ").dropFirst() }.filter { $0.first != "close_session" }
    guard let first = notes.first, let service = first.dropFirst().first else { return "in" }
    let owner = first.first == "open_session" ? "" : first.last ?? ""
    return "\(notes.compactMap(\.first).joined(separator: ",")) \(service) \(owner)"
  }

  private static func call(_ account: AccountFacts.Account, _ words: String) -> String {
    """
    echo NEXT-CALL
    setpriv --reuid \(account.uid) --regid \(account.group) --init-groups \
    sudo -k \(words) < /dev/null 2>&1
    cat /run/trial/log
    : > /run/trial/log

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
        let loosest = ([rules.shell] + rules.someCommands).max { one, other in
          SudoersTrial.looseness(one) < SudoersTrial.looseness(other)
        }
        return [rules.shell, loosest ?? rules.shell].map { rule in
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

  private static func looseness(_ rule: RootRule) -> Int {
    switch rule {
    case .none: 0
    case .asks: 1
    case .unseen: 2
    case .asksNothing: 3
    }
  }

  /// The same by `doas -C`: the loosest of three commands.
  func doneByDoas(_ text: String) throws -> [String] {
    var script = try opening()
    try machine.write("/etc/doas.conf", text)
    script +=
      "cp \(machine.root)/etc/doas.conf /run/trial/doas.conf; chmod 644 /run/trial/doas.conf\n"
    for account in SudoersTrial.callers {
      for way in SudoersTrial.doasWays {
        for command in ["/run/trial/proof", "/run/opt/a", "/run/opt/a x", "/run/opt/a odd"] {
          script += """
            echo "$(setpriv --reuid \(account.uid) --regid \(account.group) --init-groups \
            doas -C /run/trial/doas.conf -u \(way) \(command) 2>/dev/null)."

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
    // What sudo logs and keeps stays here: in /run is the socket of a journal, too.
    text += "log=$(readlink -f /dev/log || true)\n"
    text += "mount -t tmpfs -o mode=755 none /run; mkdir -p /run/trial /run/opt /run/sudo\n"
    text += "case $log in /run/*|'') ;; *) [ ! -S $log ] || mount --bind /dev/null $log ;; esac\n"
    for directory in ["/var/log", "/var/lib/sudo"] {
      text += "[ ! -d \(directory) ] || mount -t tmpfs -o mode=755 none \(directory)\n"
    }
    let noted = "echo NOTED $PAM_TYPE $PAM_SERVICE $PAM_USER >> /run/trial/log"
    text += "cd /run/trial; printf '#!/bin/sh\\necho IN-42\\n' > proof\n: > log\n"
    text += "printf '#!/bin/sh\\n\(noted)\\n' > noted\nchmod 755 proof noted\n"
    text += "chmod 666 log\n"
    text += "for name in a b c d rootshell webshell; do cp proof /run/opt/$name; done\nset +e\n"
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
