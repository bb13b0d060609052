import SallyportCore
import SallyportSupport

/// Problems of a machine whose logins a fleet verifies. Pure.
struct FleetFindings {
  static let file = "/etc/security/sallyport-fleet.conf"
  static let key = "/etc/security/sallyport-fleet.key"
  private static let rejoining = "sallyport fleet leave --force, then sallyport fleet join"

  let daemon: DaemonFacts
  /// What starts sallyportd here.
  let start: Fix
  private let area = Area.daemon

  var all: [Finding] {
    let isMember = daemon.fleetFile.value != nil
    guard daemon.isFleet || isMember else { return [] }
    guard daemon.isBuiltWithFleet else {
      return [notBuilt, notAsked, isMember ? keyRights : nil].compactMap { $0 }
    }
    return [notJoined, notAsked, unserved, rights, isMember ? keyRights : nil].compactMap { $0 }
      + (daemon.isFleet ? daemon.fleet.map { findings($0) } ?? [] : [])
  }

  /// Seconds: what a code may be off without being refused, and less.
  private static let clockLimit: UInt64 = 5

  private func findings(_ fleet: FleetFacts) -> [Finding] {
    let canVerify = fleet.verifiers.contains { $0.answer == .verifies }
    return fleet.verifiers.compactMap { finding($0, canVerify: canVerify) }
      + [
        clock(fleet), fleet.breakGlass.isEmpty ? noBreakGlass : nil, unasked(fleet.unasked),
        rights(fleet.rights), fleet.closing.map { closed($0) },
      ].compactMap { $0 }
  }

  private func rights(_ rights: [String]) -> Finding? {
    guard !rights.isEmpty else { return nil }
    return .ok(
      "fleet-rights", area, "what this host may do in the fleet: " + rights.joined(separator: "; "))
  }

  private func finding(_ verifier: FleetFacts.Verifier, canVerify: Bool) -> Finding? {
    switch verifier.answer {
    case .verifies: nil
    case .foreign:
      unverified(
        "fleet-foreign", verifier, canVerify,
        fix: "if the verifiers have new keys: \(Self.rejoining)")
    case .stranger:
      unverified(
        "fleet-unknown", verifier, canVerify,
        fix: "on that verifier: sallyport-verifier hosts; sallyport-verifier status")
    case .revoked:
      unverified(
        "fleet-revoked", verifier, canVerify,
        fix: Self.rejoining)
    case .away:
      unverified(
        "fleet-verifier", verifier, canVerify, fix: "on that verifier: sallyport-verifier status")
    }
  }

  private func unverified(
    _ id: String, _ verifier: FleetFacts.Verifier, _ canVerify: Bool, fix: String
  ) -> Finding {
    Finding(
      id, area,
      "the verifier at \(verifier.address): \(verifier.text)"
        + (canVerify ? "" : "; no verifier answers: only backup codes work"),
      severity: canVerify ? .warning : .error, fixes: [.advice(fix)],
      effect: canVerify ? nil : .locksOut(whom))
  }

  private func clock(_ fleet: FleetFacts) -> Finding? {
    let offsets = fleet.verifiers.compactMap(\.clockOffset)
    guard let least = offsets.min(by: { $0.magnitude < $1.magnitude }),
      least.magnitude > Self.clockLimit
    else { return nil }
    return .warning(
      "fleet-clock", area,
      "this machine's clock is \(least.magnitude) s \(least > 0 ? "behind" : "ahead of") the "
        + "verifiers', which verify the codes",
      fixes: [.advice("timedatectl status, here and on the verifiers")])
  }

  private func closed(_ text: String) -> Finding {
    .warning(
      "fleet-closed", area, text, fixes: [.advice("sallyport log --logins: who typed them")])
  }

  private var noBreakGlass: Finding {
    Finding.warning(
      "fleet-no-break-glass", area,
      "nobody can become root here while no verifier answers: no account that may become root is "
        + "enrolled on this machine and has a rule with verification = local",
      fixes: [
        .advice("sallyport enroll NAME"),
        .advice(parts: [
          "sallyport config edit:", "[rule break-glass]", "match_user = NAME,",
          "verification = local",
        ]),
      ])
  }

  private func unasked(_ names: [String]) -> Finding? {
    guard !names.isEmpty else { return nil }
    let shown = listed(names.map { printable($0.utf8, limit: 64) }, 1)
    return .warning(
      "fleet-unasked", area,
      "the policy says verification = fleet, so logins do not use the enrollments on this machine "
        + "of: \(shown); who is not enrolled in the fleet too is refused",
      fixes: [
        .command("sallyport fleet push --all"),
        .advice("or sallyport config edit: a rule with verification = local"),
      ])
  }

  private let whom = "all users of the fleet (verification = fleet)"

  /// This sallyport refuses users whose codes a fleet verifies, joined or not.
  private var notBuilt: Finding? {
    guard daemon.isFleet else { return nil }
    return .error(
      "fleet-not-built", area,
      "the policy says verification = fleet, but this sallyport is built without the fleet",
      fixes: [.advice("sallyport config edit: verification = local, in [default] or in a rule")],
      effect: .locksOut(whom))
  }

  private var notJoined: Finding? {
    guard daemon.isFleet, case .absent = daemon.fleetFile else { return nil }
    return .error(
      "fleet-not-joined", area,
      "the policy says verification = fleet, but this machine is in no fleet: \(Self.file) "
        + "does not exist", fixes: [.command("sallyport fleet join")], effect: .locksOut(whom))
  }

  private var notAsked: Finding? {
    guard !daemon.isFleet, daemon.fleetFile.value != nil else { return nil }
    return .warning(
      "fleet-not-asked", area,
      "this machine is in a fleet, but the policy nowhere says verification = fleet: "
        + "this machine verifies all logins by its own enrollments",
      fixes: daemon.isBuiltWithFleet
        ? [.command("sallyport config edit"), .advice("sallyport fleet leave")]
        : [.advice("a sallyport that is built with the fleet can leave it")])
  }

  /// Who is asked by a login that the fleet verifies, root's own too.
  private var unserved: Finding? {
    guard daemon.isFleet, daemon.root.isAbsent else { return nil }
    return .error(
      "fleet-unserved", area,
      "the policy says verification = fleet, but sallyportd, which asks the fleet, does not "
        + "listen on \(daemon.root.path)", fixes: [start], effect: .locksOut(whom))
  }

  private var rights: Finding? {
    guard let facts = daemon.fleetFile.value, facts.owner != 0 || facts.isOthersToWrite else {
      return nil
    }
    return .error(
      "fleet-file", area,
      "users other than root can change \(Self.file), which names the verifiers",
      fixes: [.command("chown root:root \(Self.file) && chmod 0644 \(Self.file)")],
      effect: daemon.isFleet ? .locksOut(whom) : nil)
  }

  /// What takes its use from a key.
  private var renewal: String {
    daemon.isBuiltWithFleet
      ? "\(Self.rejoining), makes another"
      : "on a verifier, sallyport-verifier revoke NAME"
  }

  private var keyRights: Finding? {
    let text: String
    let fixes: [Fix]
    switch daemon.fleetKey {
    case .unseen: return nil
    case .absent:
      guard daemon.isBuiltWithFleet else { return nil }
      text = "\(Self.key) does not exist: the fleet does not know this machine without it"
      fixes = [.advice(Self.rejoining)]
    case .seen(let facts):
      guard facts.owner != 0 || facts.mode & 0o077 != 0 else { return nil }
      text = "users other than root can read \(Self.key), and ask the fleet in this machine's name"
      fixes = [
        .command("chown root:root \(Self.key) && chmod 0600 \(Self.key)"),
        .advice(parts: ["if somebody may have read it:", renewal]),
      ]
    }
    return .error(
      "fleet-key", area, text, fixes: fixes, effect: daemon.isFleet ? .locksOut(whom) : nil)
  }
}
