import PAMStack
import SallyportSupport

/// Problems of sallyportd, and of programs that need it. Pure.
struct DaemonFindings {
  private let daemon: DaemonFacts
  /// Of the services that use the module and the usual store: those that need sallyportd, and those
  /// that ask it where it is there.
  private let dependent, callers: [String]
  /// Our line in the stack of sallyport-session.
  private let sessionLine: StackEntry?
  private let area = Area.daemon

  /// Services whose programs run as the user: screen lockers. Not vlock and xscreensaver, which
  /// have a set-uid part in Debian.
  static let userPrograms: Set = [
    "cinnamon-screensaver", "gtklock", "hyprlock", "i3lock", "kde", "kscreenlocker",
    "mate-screensaver", "swaylock", "waylock", "xsecurelock",
  ]
  /// Services of set-uid programs: the user who starts them chooses their limits and can stop them.
  private static let setUserID: Set = ["su", "su-l", "sudo", "sudo-i", "doas", "polkit-1", "vlock"]

  init(_ daemon: DaemonFacts, _ services: [ServiceFacts]) {
    self.daemon = daemon
    let names = services.filter { service in
      !service.lines.lines.isEmpty && service.lines.value(of: "store") == nil
    }.map(\.name)
    dependent = names.filter(DaemonFindings.userPrograms.contains)
    callers = names.filter(DaemonFindings.setUserID.contains)
    sessionLine = services.first { $0.name == DaemonFacts.service }?.lines.of(.auth).first
  }

  var all: [Finding] {
    let found =
      [openDirectory].compactMap { $0 } + findings(daemon.root, for: callers)
      + findings(daemon.anyUsers, for: dependent) + [absent, idle].compactMap { $0 }
      + (daemon.isSelfService || daemon.hasHelpdesk ? sessions : []) + [helpless].compactMap { $0 }
      + unclear
      + FleetFindings(daemon: daemon, start: start).all
    return found.isEmpty ? [.ok("daemon", area, healthy)] : found
  }

  private var healthy: String {
    let answering = [daemon.root, daemon.anyUsers, daemon.session].filter { $0.answer == .right }
    return answering.isEmpty
      ? "sallyportd does not run, and no service here asks it"
      : "sallyportd answers on \(answering.map(\.path).joined(separator: " and "))"
  }

  // MARK: what is not there

  /// Programs that are not root are refused without it.
  private var absent: Finding? {
    guard !dependent.isEmpty, daemon.anyUsers.isAbsent else { return nil }
    let verb = dependent.count == 1 ? "does" : "do"
    return .error(
      "daemon-missing", area,
      "\(listed(dependent)) \(verb) not run as root, so sallyportd has to check their codes, but "
        + "nobody listens on \(daemon.anyUsers.path)", fixes: [start],
      effect: .locksOut("everybody from \(listed(dependent))"))
  }

  /// su and sudo do without it.
  private var idle: Finding? {
    guard !callers.isEmpty, daemon.root.isAbsent else { return nil }
    return .ok(
      "daemon-callers", area,
      "in \(listed(callers)) the user who starts the program can stop or limit the check; "
        + "where sallyportd runs, it checks the code instead", fixes: [start])
  }

  // MARK: people who change their own enrollment

  private var sessions: [Finding] {
    findings(daemon.session, for: []) + [noSession, noStack, twoCodes].compactMap { $0 }
  }

  private var wanted: String { daemon.isSelfService ? "self_service = yes" : "helpdesk = GROUP" }

  private var loss: String {
    daemon.isSelfService
      ? "no user can change his own enrollment" : "no helper can help anybody"
  }

  private var helpless: Finding? {
    guard daemon.hasHelpdesk, !daemon.isAnybodyHelped else { return nil }
    return .warning(
      "helpdesk-nobody", area,
      "the policy has a helpdesk, but without helpdesk_for it may help nobody",
      fixes: [.command("sallyport config edit")])
  }

  private var unclear: [Finding] {
    daemon.rootGaps.map { gap in
      .warning(
        "helpdesk-unclear", area,
        "the helpdesk helps nobody: sallyport-session cannot find out who may become root: \(gap)",
        fixes: [.advice("sallyport-session(8), THE HELPDESK")])
    }
  }

  /// A session asks on root's socket.
  private var noSession: Finding? {
    let missing = [daemon.session, daemon.root].filter(\.isAbsent).map(\.path)
    guard !missing.isEmpty else { return nil }
    return .warning(
      "session-missing", area,
      "the policy says \(wanted), but nobody listens on \(listed(missing)): \(loss)",
      fixes: [startSessions])
  }

  private var noStack: Finding? {
    guard !daemon.hasStack else { return nil }
    return .warning(
      "session-stack", area,
      "the policy says \(wanted), but without /etc/pam.d/\(DaemonFacts.service) \(loss)",
      fixes: [.advice("sallyport-session(8), SETTING IT UP")])
  }

  private var twoCodes: Finding? {
    sessionLine.map { line in
      Finding.warning(
        "session-two-codes", area,
        "this line also asks for a code in sallyport-session, which then asks for another",
        location: line.location, fixes: [.advice("sallyport-session(8), SETTING IT UP")])
    }
  }

  // MARK: what is there

  private var openDirectory: Finding? {
    let path = DaemonFacts.directory
    guard let facts = daemon.directory.value else { return nil }
    guard facts.isDirectory else {
      return problem(
        "daemon-directory", "\(path) is not a directory", [.command("rm \(path)"), start],
        for: callers + dependent)
    }
    guard facts.owner != 0 || facts.isOthersToWrite else { return nil }
    return problem(
      "daemon-directory",
      "users other than root can change \(path), and with it the sockets of sallyportd",
      [.command("chown root:root \(path) && chmod 0755 \(path)")], for: callers + dependent)
  }

  private func findings(_ socket: SocketFacts, for users: [String]) -> [Finding] {
    let path = socket.path
    switch socket.file {
    case .absent: return []
    case .unseen(let reason): return [.unseen("daemon-socket", area, reason)]
    case .seen(let file) where !file.isSocket:
      return [
        problem(
          "daemon-kind", "\(path) is not a socket: each program that asks there is refused",
          [.command("rm -r \(path)")], for: users)
      ]
    case .seen(let file):
      return [rights(file, socket), answer(socket, for: users)].compactMap { $0 }
    }
  }

  /// Who may not connect is refused; who may, and should not, is not answered.
  private func rights(_ file: FileFacts, _ socket: SocketFacts) -> Finding? {
    let path = socket.path
    if file.owner != 0 {
      return problem(
        "daemon-owner", "\(path) is owned by uid \(file.owner)",
        [.command("chown root:root \(path)")])
    }
    guard file.mode != socket.mode else { return nil }
    let isClosed = file.mode & socket.mode != socket.mode
    return problem(
      "daemon-mode",
      "\(path) has mode \(octal(file.mode)), not \(octal(socket.mode))",
      [.command("chmod \(octal(socket.mode)) \(path)")],
      for: isClosed && socket.mode != 0o600 ? dependent : [])
  }

  private func octal(_ mode: UInt32) -> String {
    let digits = String(mode, radix: 8)
    return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
  }

  private func answer(_ socket: SocketFacts, for users: [String]) -> Finding? {
    let path = socket.path
    switch socket.answer {
    case .nobody, .right: return nil
    case .unasked(let reason): return .unseen("daemon-socket", area, reason)
    case .foreign(let user):
      return problem(
        "daemon-foreign", "a program of uid \(user) listens on \(path), and is not asked",
        [.command("rm \(path)")], for: users)
    case .otherVersion:
      return problem(
        "daemon-version", "what listens on \(path) is another version of sallyportd", [restart],
        for: users)
    case .late:
      return problem(
        "daemon-silent", "what listens on \(path) does not answer", [restart], for: users)
    }
  }

  /// An error where it locks `users` out.
  private func problem(_ id: String, _ text: String, _ fixes: [Fix], for users: [String] = [])
    -> Finding
  {
    Finding(
      id, area, text, severity: users.isEmpty ? .warning : .error, fixes: fixes,
      effect: users.isEmpty ? nil : .locksOut("everybody from \(listed(users))"))
  }

  // MARK: fixes

  private var start: Fix {
    switch daemon.starter {
    case .systemd: .command("systemctl enable --now sallyport.socket sallyport-root.socket")
    // The first makes the links where there are none; the second turns those of the package on.
    case .initScript:
      .command(
        "update-rc.d sallyport defaults && update-rc.d sallyport enable "
          + "&& service sallyport start")
    case nil: .advice("sallyportd(8)")
    }
  }

  private var startSessions: Fix {
    guard daemon.starter == .systemd else { return start }
    return .command("systemctl enable --now sallyport-root.socket sallyport-session.socket")
  }

  private var restart: Fix {
    switch daemon.starter {
    case .systemd: .command("systemctl restart sallyport.service")
    case .initScript: .command("service sallyport restart")
    case nil: .advice("sallyportd(8)")
    }
  }
}
