import SallyportCore

/// All findings that follow from the facts, in the order of the report. Pure.
struct Diagnosis {
  var findings: [Finding]

  /// `option`: `--store`, for the commands that mend.
  init(_ facts: Facts, option: String? = nil, version: String) {
    var found: [Finding] = []
    for service in facts.services { found += Diagnosis.findings(of: service, facts) }
    if facts.services.isEmpty { found.append(Diagnosis.nobody) }
    // Several services have one policy file.
    for finding in facts.services.flatMap({ PolicyFindings($0).file })
    where !found.contains(finding) {
      found.append(finding)
    }
    if facts.hasDirectory {
      found.append(
        .unseen(
          "people-directory", .people, "people of a directory (nsswitch.conf) were not looked at"))
    }
    found += StoreFindings(facts.store, option: option, now: facts.now).all
    found += ClockFindings(facts.clock).all
    found += ModuleFindings(facts.modules, qrRefusal: facts.qrRefusal, version: version).all
    found += DenialFindings(facts.denials).all
    findings = found
  }

  private static func findings(of service: ServiceFacts, _ facts: Facts) -> [Finding] {
    var found = StackFindings(service, ssh: facts.ssh?.settings.value).all
    if service.lines.lines.isEmpty { return found }
    let enrolled = facts.store.enrolled
    if service.name == "sshd", let ssh = facts.ssh {
      found += SSHFindings(ssh, service.lines, enrolled: enrolled).all
    }
    if ["sudo", "sudo-i"].contains(service.name), let sudoers = facts.sudoers {
      found += SudoFindings(sudoers, service.lines, enrolled: enrolled).all
    }
    return found + PolicyFindings(service).people
  }

  private static let nobody = Finding(
    id: "no-service", area: .machine, severity: .warning,
    text: "no service asks for a code: no stack names \(ModuleFacts.name)",
    mends: [.command("sallyport pam enable sshd")],
    effect: .letsIn("whoever has a password or a key"))

  var worst: Severity { findings.map(\.severity).max() ?? .ok }

  /// 0 where nothing was found, 1 with warnings or with what could not be looked at, 2 where
  /// somebody is kept out or gets in.
  var status: Int32 {
    switch worst {
    case .ok: 0
    case .unseen, .warning: 1
    case .error: 2
    }
  }

  /// Who cannot log in, each once.
  var lockedOut: [String] {
    unique(
      findings.compactMap { found in
        switch found.effect {
        case .locksOut(let who): who
        case .letsIn, nil: nil
        }
      })
  }

  /// Who gets in without a code, each once.
  var letIn: [String] {
    unique(
      findings.compactMap { found in
        switch found.effect {
        case .letsIn(let who): who
        case .locksOut, nil: nil
        }
      })
  }

  func count(_ severity: Severity) -> Int { findings.count { $0.severity == severity } }

  private func unique(_ names: [String]) -> [String] {
    names.reduce(into: []) { list, name in if !list.contains(name) { list.append(name) } }
  }
}
