import PAMStack

/// Problems of sshd's settings, if its PAM service asks for a code. Pure.
struct SSHFindings {
  let ssh: SSHFacts
  /// Our lines in sshd's stacks.
  let lines: ModuleLines
  /// The names of enrolled users.
  let enrolled: Set<String>
  private let area = Area.service("sshd")

  var all: [Finding] {
    switch ssh.settings {
    case .absent: [.unseen("ssh-installed", area, "there is no sshd on this machine")]
    case .unseen(let complaint): [unusable(complaint)]
    case .seen(let settings): findings(of: settings)
    }
  }

  private func findings(of settings: SSHSettings) -> [Finding] {
    let base = SSHWays(settings, lines, ssh.configuration, block: nil).findings
    let problems = Set(base.filter { $0.severity != .ok }.map(\.id))
    var unread = ssh.configuration.unread.map { Finding.unseen("ssh-files", area, $0) }
    if ssh.configuration.blocks.count > SSHFacts.mostBlocks {
      let text = "only the first \(SSHFacts.mostBlocks) Match blocks were checked"
      unread.append(.unseen("ssh-blocks", area, text))
    }
    return base + SSHKeyFindings(ssh, lines).all + more(of: settings) + unread
      + ssh.variants.flatMap { findings(of: $0, besides: problems) }
  }

  /// sshd rejects its configuration, so its settings are unknown.
  private func unusable(_ complaint: String) -> Finding {
    if let location = locationIn(complaint) {
      return .error(
        "ssh-config", area, "sshd rejects its configuration and will not start again: \(complaint)",
        location: location, fixes: [.advice("correct the line; sshd -t says what is left")],
        effect: .locksOut("everybody over ssh once sshd is restarted"))
    }
    let fixes: [Fix] =
      complaint.contains("/run/sshd")
      ? [.command("mkdir -p -m 0755 /run/sshd")] : [.command("sudo sallyport doctor")]
    return .unseen("ssh-settings", area, "sshd -T: \(complaint)", fixes: fixes)
  }

  // MARK: everybody

  private func more(of settings: SSHSettings) -> [Finding] {
    let grace = lines.enrolls ? settings.shortGrace(in: ssh.configuration.file) : nil
    return [names(settings), root(settings), grace, penalties(settings)].compactMap { $0 }
  }

  /// Since OpenSSH 9.8.
  private func penalties(_ settings: SSHSettings) -> Finding? {
    guard !["", "no"].contains(settings["persourcepenalties"]) else { return nil }
    return .ok(
      "ssh-penalties", area,
      "after some refusals sshd keeps an address out for a while, also with a right code",
      fixes: [
        .advice("for an address that many share: PerSourcePenaltyExemptList in sshd_config(5)")
      ])
  }

  private func names(_ settings: SSHSettings) -> Finding? {
    guard settings.isOn("usedns") else {
      return .ok("ssh-use-dns", area, "sshd gives addresses, not names")
    }
    return .warning(
      "ssh-use-dns", area, "with UseDNS an origin can be a host name, which is never a known place",
      location: ssh.configuration.location(of: "UseDNS"), fixes: [.line("UseDNS no")]
    ).added(to: ssh.configuration.file)
  }

  /// sshd refuses prompts for root unless PermitRootLogin is `yes`; to root that looks like a wrong
  /// code.
  private func root(_ settings: SSHSettings) -> Finding? {
    let permission = settings["permitrootlogin"]
    let isHalfOpen = ["prohibit-password", "without-password"].contains(permission)
    let isAsked = settings.ways.allSatisfy { $0.contains("keyboard-interactive") }
    guard isHalfOpen, isAsked, enrolled.contains("root") else { return nil }
    return .warning(
      "ssh-root", area,
      "root is enrolled but cannot log in over ssh: PermitRootLogin \(permission) "
        + "forbids prompts", location: ssh.configuration.location(of: "PermitRootLogin"),
      fixes: [
        .line("PermitRootLogin no"),
        .advice("or, to let root in by a code: PermitRootLogin yes"),
      ]
    ).added(to: ssh.configuration.file)
  }

  // MARK: Match blocks

  private func findings(of variant: SSHVariant, besides base: Set<String>) -> [Finding] {
    let block = ssh.configuration.blocks[variant.block]
    switch variant.settings {
    case .absent: return []
    case .unseen(let reason):
      return [.unseen("ssh-match", area, "Match \(block.text): \(reason)")]
    case .seen(let settings):
      let ways = SSHWays(settings, lines, ssh.configuration, block: variant.block)
      return ways.findings.filter { $0.severity != .ok && !base.contains($0.id) }.map { found in
        narrowed(found, to: block, variant.users)
      }
    }
  }

  /// An exception for unenrolled users was made on purpose, as for programs, which have no phone.
  private func narrowed(_ found: Finding, to block: SSHConfiguration.Block, _ users: [String])
    -> Finding
  {
    let isNamed = !users.isEmpty && users.allSatisfy { !$0.contains("*") && !$0.contains("?") }
    let isOnPurpose = isNamed && !users.contains(where: enrolled.contains)
    let who = isNamed ? users.joined(separator: ", ") : "users who match \(block.text)"
    return Finding(
      found.id, area, "Match \(block.text): \(found.text)",
      severity: isOnPurpose ? .warning : found.severity, location: found.location ?? block.location,
      fixes: found.fixes,
      effect: found.effect.map { Effect(kind: $0.kind, who: "\(who) over ssh") })
  }

  /// Parses `/etc/ssh/sshd_config: line 12: …`.
  private func locationIn(_ complaint: String) -> FileLocation? {
    let words = complaint.split(separator: " ")
    guard let index = words.firstIndex(of: "line"), index > 0, index + 1 < words.count else {
      return nil
    }
    let file = words[index - 1].filter { $0 != ":" }
    return Int(words[index + 1].filter(\.isNumber)).map {
      FileLocation(file: String(file), line: $0)
    }
  }
}

extension SSHSettings {
  /// In seconds: an app is installed, a QR code scanned, backup codes are written down.
  private static let enoughToEnroll = 300

  /// For lines that enroll. `file`: where a line of sshd's configuration is added.
  fileprivate func shortGrace(in file: String) -> Finding? {
    guard let seconds = Int(self["logingracetime"]), seconds > 0,
      seconds < SSHSettings.enoughToEnroll
    else { return nil }
    return .ok(
      "ssh-grace", .service("sshd"),
      "sshd ends a login \(seconds) s after it began, also one that enrolls: install the app first",
      fixes: [.line("LoginGraceTime 5m")]
    ).added(to: file)
  }
}

extension Machine {
  /// What doctor says of an sshd that leaves people little time to enroll; nil if there is enough,
  /// or if sshd does not tell.
  package var shortGrace: Finding? {
    SSHFacts.settings(of: self).value?.shortGrace(in: SSHConfiguration(of: self).file)
  }
}
