import PAMStack

/// The lists of methods that sshd accepts under one set of settings, and whether each asks for a
/// code. Pure.
struct SSHWays {
  private let settings: SSHSettings
  private let lines: ModuleLines
  private let configuration: SSHConfiguration
  private let block: Int?
  private let area = Area.service("sshd")

  init(
    _ settings: SSHSettings, _ lines: ModuleLines, _ configuration: SSHConfiguration, block: Int?
  ) {
    (self.settings, self.lines) = (settings, lines)
    (self.configuration, self.block) = (configuration, block)
  }

  /// What a list of methods does: asks for a code, lets in without one, or always fails.
  private enum Kind { case asks, open, dead }

  private func kind(of way: [String]) -> Kind {
    // The method `password` answers every prompt with the password.
    if way.contains("password"), lines.isInAuth, !lines.takesPassword { return .dead }
    // It answers every prompt with an empty password, which is no code.
    if way.contains("none"), lines.isInAuth { return .dead }
    if lines.isAfterKey, !way.prefix(while: { $0 != prompting }).contains(where: isKey) {
      if way.contains(prompting) || way.contains("password") { return .dead }
    }
    let asks = way.contains("keyboard-interactive") || way.contains("password")
    if asks, lines.isInAuth { return .asks }
    if way.contains("keyboard-interactive"), lines.demands { return .asks }
    return lines.demands ? .dead : .open
  }

  private func ways(_ kind: Kind) -> [[String]] {
    settings.ways.filter { self.kind(of: $0) == kind }
  }

  /// Whether every working list needs a key.
  var needsKey: Bool { needs(["publickey"]) }

  /// Whether every working list runs the auth stack, which needs a correct password.
  var needsPassword: Bool {
    lines.needsPassword && needs(["keyboard-interactive", "password"])
      && !settings.isOn("permitemptypasswords") && !ways(.asks).contains(where: takesKey)
  }

  private func needs(_ methods: Set<String>) -> Bool {
    let working = ways(.asks) + ways(.open)
    return settings.usesPAM && !working.isEmpty
      && working.allSatisfy { !methods.isDisjoint(with: $0) }
  }

  /// Whether a key comes before the prompts, and the PAM lines then ask for the code alone.
  private func takesKey(_ way: [String]) -> Bool {
    lines.takesKeys && way.prefix(while: { $0 != prompting }).contains(where: isKey)
  }

  var findings: [Finding] {
    guard settings.usesPAM else { return [noPAM] }
    let found = [prompts, open, unfinished, password, early].compactMap { $0 }
    if !found.isEmpty { return found }
    let ways = ways(.asks).map { $0.joined(separator: ",") }.joined(separator: " ")
    return [.ok("ssh-ways", area, "every way in asks for a code: \(ways)")]
  }

  private var noPAM: Finding {
    finding(
      "ssh-use-pam", .error, "UsePAM is not on: sshd never asks for a code", at: "UsePAM",
      fixes: [.line("UsePAM yes")], effect: .letsIn("anybody with a password or a key over ssh"))
  }

  /// Without keyboard-interactive, a code cannot be asked for.
  private var prompts: Finding? {
    guard !settings.takesPrompts, ways(.asks).isEmpty else { return nil }
    let who = ways(.open).isEmpty ? "everybody over ssh" : "anyone without a key over ssh"
    return finding(
      "ssh-prompts", .error, "prompts cannot reach the user: KbdInteractiveAuthentication is no",
      at: "KbdInteractiveAuthentication", fixes: [.line("KbdInteractiveAuthentication yes")],
      effect: .locksOut(who))
  }

  private var open: Finding? {
    let open = ways(.open)
    guard let first = open.first else { return nil }
    let what: String
    switch first {
    case ["publickey"]: what = "a key alone logs in without a code"
    case ["hostbased"]: what = "a trusted host alone logs in without a code"
    case ["gssapi-with-mic"]: what = "a Kerberos ticket alone logs in without a code"
    case ["none"]: what = "an empty password logs in without a code"
    case _: what = "\(first.joined(separator: ",")) logs in without a code"
    }
    let factor =
      first.contains("publickey") ? "publickey,keyboard-interactive" : "keyboard-interactive"
    let demand = Fix.advice(parts: [
      "or refuse them:", "account required pam_sallyport.so demand,", "first in /etc/pam.d/sshd",
    ])
    return finding(
      "ssh-no-code", .error, what, at: "AuthenticationMethods",
      fixes: ownFixes ?? [.line("AuthenticationMethods \(factor)"), demand],
      effect: .letsIn("\(holder(of: first)) over ssh"))
  }

  /// For accounts in a block of our own file, which nobody edits; nil elsewhere.
  private var ownFixes: [Fix]? {
    guard let block, configuration.blocks[block].location.file == SSHStage.path else { return nil }
    let users = configuration.blocks[block].criteria.filter { $0.name == "user" }
    let words = users.flatMap { $0.patterns.split(separator: ",") }
      .map { Purpose.word(String($0), "sshd") }
    return [
      .meant(words),
      .advice(parts: ["or, for a person,", "sallyport enroll NAME,", "then", SSHWays.again]),
    ]
  }

  /// Writes our file with the method and the group that it names.
  private static let again = "sallyport pam enable sshd"

  private func holder(of way: [String]) -> String {
    switch way.first {
    case "publickey": "anyone with a key"
    case "hostbased": "anyone on a trusted host"
    case "gssapi-with-mic": "anyone with a ticket"
    case "none": "anyone, to an account with an empty password"
    case _: "anyone who passes \(way.joined(separator: ","))"
    }
  }

  /// There are only lists that nobody can complete.
  private var unfinished: Finding? {
    let works = !ways(.asks).isEmpty || !ways(.open).isEmpty
    guard !works, settings.takesPrompts else { return nil }
    let written = settings.writtenWays.map { $0.joined(separator: ",") }.joined(separator: " ")
    var reason = "none is enabled"
    if written.contains("password") { reason = "password cannot answer the code's prompt" }
    if lines.isAfterKey { reason = "after-key needs a key before the prompts" }
    let factor = lines.isAfterKey ? "publickey,keyboard-interactive" : "keyboard-interactive"
    return finding(
      "ssh-methods", .error, "nobody can complete AuthenticationMethods \(written): \(reason)",
      at: "AuthenticationMethods", fixes: [.line("AuthenticationMethods \(factor)")],
      effect: .locksOut("everybody over ssh"))
  }

  private var password: Finding? {
    let isOffered = settings.ways.contains { $0.contains("password") && kind(of: $0) == .dead }
    guard isOffered, !ways(.asks).isEmpty else { return nil }
    let keyword = settings.namesMethods ? "AuthenticationMethods" : "PasswordAuthentication"
    let fix =
      settings.namesMethods
      ? "AuthenticationMethods "
        + ways(.asks).map { $0.joined(separator: ",") }.joined(separator: " ")
      : "PasswordAuthentication no"
    return finding(
      "ssh-password", .warning,
      "method password never succeeds: sshd answers the code's prompt with the password",
      at: keyword, fixes: [.line(fix)])
  }

  /// Enrolling happens within keyboard-interactive, before the methods that come later: a stranger
  /// with only the password could enroll a device of their own.
  private var early: Finding? {
    let written = settings.writtenWays
    let ordered = written.map { way in
      way.filter { $0 != prompting } + way.filter { $0 == prompting }
    }
    guard lines.enrolls, settings.namesMethods, written != ordered else { return nil }
    let methods = ordered.map { $0.joined(separator: ",") }.joined(separator: " ")
    return finding(
      "ssh-enroll-early", .error, "keyboard-interactive enrolls before the other methods are asked",
      at: "AuthenticationMethods", fixes: [.line("AuthenticationMethods \(methods)")],
      effect: .letsIn("anyone with the password alone, to an enrollment of their own"))
  }

  private let prompting = "keyboard-interactive"

  private func isKey(_ method: String) -> Bool {
    ["publickey", "hostbased", "gssapi-with-mic"].contains(method)
  }

  private func finding(
    _ id: String, _ severity: Severity, _ text: String, at keyword: String, fixes: [Fix],
    effect: Effect? = nil
  ) -> Finding {
    let location = configuration.location(of: keyword, in: block ?? configuration.blockForAll)
    let isOurs = location?.file == SSHStage.path
    let fixes = fixes.map { isOurs && $0.kind == .line ? .command(SSHWays.again) : $0 }
    return Finding(
      id, area, text, severity: severity, location: location, fixes: fixes, effect: effect
    ).added(to: configuration.file, isWhole: block == nil)
  }
}

extension Finding {
  /// If no line sets it, suggests a new first line of the file, since sshd uses the first value. In
  /// a Match block, the administrator has to add it there.
  func added(to file: String, isWhole: Bool = true) -> Finding {
    guard location == nil else { return self }
    var found = self
    if isWhole { found.location = FileLocation(file: file) }
    found.fixes = fixes.map { fix in
      guard fix.kind == .line else { return fix }
      return isWhole ? .add(fix.text) : .advice("\(fix.text), inside this block")
    }
    return found
  }
}
