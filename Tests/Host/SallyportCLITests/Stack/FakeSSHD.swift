import Foundation

@testable import SallyportDoctor

/// An sshd on a `PamBench`, which its settings say and which is told to read them again by systemd.
/// What it offers is what it has read, not what the files say.
final class FakeSSHD {
  /// What Debian 12's sshd says of its packaged file, as far as it is asked here.
  static let debian = """
    port 22
    listenaddress [::]:22
    listenaddress 0.0.0.0:22
    usepam yes
    permitrootlogin without-password
    hostbasedauthentication no
    pubkeyauthentication yes
    gssapiauthentication no
    passwordauthentication yes
    kbdinteractiveauthentication no
    pidfile /run/sshd.pid
    authorizedkeysfile .ssh/authorized_keys .ssh/authorized_keys2
    authenticationmethods any
    """

  private let machine: PamBench
  /// `sshd -T` without a file of ours.
  var settings = FakeSSHD.debian
  /// The settings that a Match block has for a user.
  var matches: [String: String] = [:]
  var isListening = true
  var reloads = true
  /// What sshd refuses when it is tested.
  var complaint: String?
  /// What was done, and what PAM's file was by then.
  private(set) var events: [String] = []
  /// The timers that systemd was asked for.
  private(set) var timers: [[String]] = []
  /// Which reloads are told to have failed, though sshd has read its settings.
  var failing: Set<Int> = []
  /// sshd refuses its settings without our file.
  var needsOurs = false
  /// Without this directory it tells nothing, once its settings were read.
  var directory: String?
  /// Called after a reload.
  var reloaded: () -> Void = {}
  /// Our file, as the sshd that runs has read it.
  private(set) var read = ""
  /// The ways in by each content that our file had when it was tested or read.
  private(set) var ways: [[[String]]] = []

  init(_ machine: PamBench) throws {
    self.machine = machine
    for path in ["/etc/ssh/sshd_config.d", "/run/systemd/system"] {
      try FileManager.default.createDirectory(
        atPath: machine.root + path, withIntermediateDirectories: true)
    }
    try machine.write(
      "/etc/ssh/sshd_config",
      "Include /etc/ssh/sshd_config.d/*.conf\nKbdInteractiveAuthentication no\nUsePAM yes\n")
    try machine.write(
      "/etc/passwd",
      """
      root:x:0:0::/root:/bin/sh
      alice:x:1000:1000::/home/alice:/bin/sh
      git:x:1001:1001::/home/git:/bin/sh

      """)
    try machine.write("/etc/shadow", "root:!::\nalice:$6$x::\ngit:!::\n")
    for home in ["alice", "git"] {
      try FileManager.default.createDirectory(
        atPath: "\(machine.root)/home/\(home)/.ssh", withIntermediateDirectories: true)
      try machine.write("/home/\(home)/.ssh/authorized_keys", "ssh-ed25519 AAAA x\n")
    }
    machine.programs = { [unowned self] in answer($0) }
  }

  var dropIn: String? { machine.read(SSHStage.path) }

  private func answer(_ words: [String]) -> Probe<CommandOutput> {
    if words[0] == "sshd", complaint == nil, let directory,
      !FileManager.default.fileExists(atPath: machine.root + directory)
    {
      let errors = "Missing privilege separation directory: \(directory)\n"
      return .seen(CommandOutput(status: 255, errors: errors))
    }
    switch words.prefix(2) {
    case ["sshd", "-t"]:
      ways.append(SSHSettings(said([], dropIn ?? "")).ways)
      let complaint = needsOurs && dropIn == nil ? "without ours" : complaint
      return .seen(CommandOutput(status: complaint == nil ? 0 : 255, errors: complaint ?? ""))
    case ["sshd", "-T"]:
      let text = words.contains("-f") ? planned(words[3]) : dropIn
      return .seen(CommandOutput(output: said(words, text ?? "")))
    case ["systemctl", "is-active"]:
      return .seen(CommandOutput(status: words[2] == "ssh.service" ? 0 : 3))
    case ["systemctl", "reload"]:
      let isAsking = machine.read("/etc/pam.d/sshd")?.contains("pam_sallyport") == true
      events.append(isAsking ? "reload, PAM asks" : "reload")
      if reloads { read = dropIn ?? "" }
      ways.append(SSHSettings(said([], read)).ways)
      reloaded()
      return .seen(CommandOutput(status: reloads && !failing.contains(events.count) ? 0 : 1))
    case ["systemd-run", "--quiet"]:
      timers.append(words)
      return .seen(CommandOutput())
    case ["systemctl", "show"]: return .seen(CommandOutput(output: "0\n"))
    case ["ssh", "-F"]:
      guard isListening else {
        return .seen(CommandOutput(status: 255, errors: "connect: Connection refused"))
      }
      let user = words.firstIndex(of: "-l").map { "user=\(words[$0 + 1])" } ?? ""
      let offered = SSHSettings(said([user], read)).offered.sorted().joined(separator: ",")
      return .seen(CommandOutput(status: 255, errors: "x@y: Permission denied (\(offered)).\n"))
    case _: return .absent
    }
  }

  /// Our file as a copy of the configuration has it.
  private func planned(_ path: String) -> String? {
    let copy = try? String(contentsOfFile: path, encoding: .utf8)
    let files = (copy ?? "").split(separator: "\"").filter { $0.hasPrefix("/proc/") }
    return files.first.flatMap { try? String(contentsOfFile: String($0), encoding: .utf8) }
  }

  private func said(_ words: [String], _ dropIn: String) -> String {
    let options = zip(words, words.dropFirst()).filter { $0.0 == "-o" }.map(\.1)
      .map { $0.replacing("=", with: " ", maxReplacements: 1) }
    let user = words.last.flatMap { word in
      word.split(separator: ",").first { $0.hasPrefix("user=") }?.dropFirst(5)
    }
    let own = user.flatMap { matches[String($0)] } ?? ""
    let parts = dropIn.components(separatedBy: "Match ")
    let block = parts.dropFirst().first { isIn($0, String(user ?? "")) }
      .map { $0.lowercased().split(separator: "\n").dropFirst().joined(separator: "\n") }
    return ([own] + options + [block, parts[0].lowercased(), settings].compactMap { $0 })
      .joined(separator: "\n")
  }

  /// Whether a Match block, from its criterion on, is about the user.
  private func isIn(_ block: String, _ user: String) -> Bool {
    let words = block.split { $0 == " " || $0 == "\n" }.map(String.init)
    let names = words[1].components(separatedBy: ",")
    if words[0] == "User" { return names.contains(user) }
    let groups = (machine.read("/etc/group") ?? "").components(separatedBy: "\n")
    let members = groups.filter { $0.hasPrefix("\(names[0]):") }
      .flatMap { $0.components(separatedBy: ":")[3].components(separatedBy: ",") }
    return members.contains(user)
  }
}
