import PAMStack
import SallyportCore
import SallyportSupport

/// All findings that follow from the facts, in the order of the report. Pure.
package struct Diagnosis {
  package var findings: [Finding]

  /// `option` is the `--store` for the commands that fix a finding.
  package init(_ facts: Facts, option: String? = nil, version: String) {
    let services = facts.services.sorted { Diagnosis.rank($0) < Diagnosis.rank($1) }
    var found = Diagnosis.merged(services.flatMap { Diagnosis.findings(of: $0, facts) })
    if let shared = SharedFindings(services: services).found { found.append(shared) }
    found += facts.openWays.map(\.finding)
    let lost = Set(facts.lost.map(\.service))
    // It is told why, instead.
    found.removeAll { $0.id == "service-unasked" && lost.isSuperset(of: $0.services) }
    found += LostFindings(lost: facts.lost, damaged: facts.damagedRecords).all
    if facts.services.isEmpty, lost.isEmpty { found.append(Diagnosis.nobody) }
    let revert = RevertFindings(pending: facts.revert, boot: facts.boot, now: facts.now)
    if let pending = revert.found { found.append(pending) }
    // Services may share one policy file.
    for finding in services.flatMap({ PolicyFindings($0).file })
    where !found.contains(finding) {
      found.append(finding)
    }
    found += facts.otherStores.map { path in
      .unseen(
        "store-other", .store, "lines name another store, which was not checked: \(path)",
        fixes: [.command("sallyport doctor --store \(shellQuoted(path))")])
    }
    found += StoreFindings(store: facts.store, option: option).all
    found += NoteFindings(store: facts.store, option: option).all
    found += ClockFindings(clock: facts.clock, packages: facts.packages).all
    found +=
      ModuleFindings(modules: facts.modules, version: version, packages: facts.packages).all
    found += DaemonFindings(facts.daemon, services).all
    findings = found
  }

  private static func findings(of service: ServiceFacts, _ facts: Facts) -> [Finding] {
    let enrolled = facts.store.enrolled
    // A stack that sshd does not run does not matter.
    if service.name == "sshd", let ssh = facts.ssh, ssh.settings.value?.usesPAM == false {
      return SSHFindings(ssh: ssh, lines: service.lines, enrolled: enrolled).all
    }
    var found = StackFindings(service, ssh: facts.ssh?.settings.value).all
    let isRun = !KnownServices.withoutAuth.contains(service.name)
    if service.lines.lines.isEmpty || !isRun { return found }
    if service.name == "sshd", let ssh = facts.ssh {
      found += SSHFindings(ssh: ssh, lines: service.lines, enrolled: enrolled).all
    }
    if let sudoers = facts.sudoers, sudoers.runs(service.name) {
      found += SudoFindings(sudoers: sudoers, lines: service.lines, enrolled: enrolled).all
    }
    return found + [PolicyFindings(service).overruled].compactMap { $0 }
  }

  /// The services that people log in by come first.
  private static func rank(_ service: ServiceFacts) -> (Int, String) {
    let first = ["sshd", "login", "sudo", "sudo-i", "su", "su-l"]
    return (first.firstIndex(of: service.name) ?? first.count, service.name)
  }

  /// Merges findings that several services have alike, mostly because of one shared file.
  private static func merged(_ all: [Finding]) -> [Finding] {
    var kept: [Finding] = []
    // sudo and sudo-i have the same rules.
    for finding in all where !kept.contains(finding) {
      if let same = kept.firstIndex(where: { $0.isAlike(finding) }) {
        kept[same].alsoIn.append(finding.area.name)
      } else {
        kept.append(finding)
      }
    }
    return kept.map(\.withAllNames)
  }

  private static let nobody = Finding.warning(
    "no-service", .machine, "no service asks for a code: no stack names \(ModuleFacts.name)",
    fixes: [.command("sallyport pam enable sshd")],
    effect: .letsIn("anybody with a password or a key"))

  /// Lets the whole table decide what lines come to that tell of people.
  package mutating func settle(by table: AccessTable) {
    findings = findings.map { table.settles($0) ? $0.settled : $0 }
    let end = findings.firstIndex { $0.area > .policy } ?? findings.endIndex
    findings.insert(contentsOf: table.idlePurposes, at: end)
  }

  var worst: Severity { findings.map(\.severity).max() ?? .ok }

  package var status: Int32 { worst.status }

  /// Who cannot log in, each once.
  package var lockedOut: [String] { who(.locksOut) }

  /// Who gets in without a code, each once.
  package var letIn: [String] { who(.letsIn) }

  private func who(_ kind: Effect.Kind) -> [String] {
    findings.compactMap(\.effect).filter { $0.kind == kind }.reduce(into: []) { list, effect in
      if !list.contains(effect.who) { list.append(effect.who) }
    }
  }
}

extension Finding {
  /// The same, where nothing is to be done.
  fileprivate var settled: Finding {
    var found = Finding(id, area, text, severity: .ok, location: location)
    found.alsoIn = alsoIn
    return found
  }

  /// Whether this is the same in another service. Where no file is at fault, it is so only if it is
  /// fixed alike.
  fileprivate func isAlike(_ other: Finding) -> Bool {
    severity != .ok && area != other.area && id == other.id && text == other.text
      && location == other.location && (location != nil || fixes == other.fixes)
  }

  /// The effect with all services that it has.
  fileprivate var withAllNames: Finding {
    if alsoIn.isEmpty { return self }
    var found = self
    found.effect = effect.map { Effect(kind: $0.kind, who: naming($0.who)) }
    return found
  }

  private func naming(_ who: String) -> String {
    var words = who.split(separator: " ").map(String.init)
    guard let last = words.lastIndex(of: area.name) else { return who }
    words[last] = listed([area.name] + alsoIn)
    return words.joined(separator: " ")
  }
}

/// Findings about our lines in a file that many services share. Pure.
struct SharedFindings {
  let services: [ServiceFacts]
  /// Services with nobody to answer a prompt, or whose programs are not root, or not everywhere.
  private static let awkward = DaemonFindings.userPrograms.union(["cups", "vlock", "xscreensaver"])

  var found: Finding? {
    let shared = services.filter { service in
      service.lines.of(.auth).contains { $0.location.file != service.file }
    }
    let names = shared.map(\.name).filter(SharedFindings.awkward.contains)
    guard let line = shared.first?.lines.of(.auth).first, !names.isEmpty else { return nil }
    return .warning(
      "stack-shared", .machine,
      "this line also asks in \(listed(names, 1)), where nobody can answer or only sallyportd "
        + "can check the code: give each service a line of its own", location: line.location,
      fixes: [.advice("pam_sallyport(8), STACKS")])
  }
}
