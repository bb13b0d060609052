import SallyportText

/// Problems of a machine whose logins a fleet judges. Pure.
struct FleetFindings {
  static let file = "/etc/security/sallyport-fleet.conf"
  static let key = "/etc/security/sallyport-fleet.key"

  private let daemon: DaemonFacts
  private let start: Fix
  private let area = Area.daemon

  /// `start`: what starts sallyportd here.
  init(_ daemon: DaemonFacts, start: Fix) { (self.daemon, self.start) = (daemon, start) }

  var all: [Finding] {
    let isMember = daemon.fleetFile.value != nil
    guard daemon.isFleet || isMember else { return [] }
    return [notJoined, notAsked, unserved, rights, isMember ? keyRights : nil].compactMap { $0 }
  }

  private let whom = "everybody whom the fleet judges (verification = fleet)"

  private var notJoined: Finding? {
    guard daemon.isFleet, case .absent = daemon.fleetFile else { return nil }
    return Finding(
      id: "fleet-not-joined", area: area, severity: .error,
      text: "the policy says verification = fleet, but this machine is in no fleet: \(Self.file) "
        + "does not exist",
      fixes: [.command("sallyport fleet join")], effect: .locksOut(whom))
  }

  private var notAsked: Finding? {
    guard !daemon.isFleet, daemon.fleetFile.value != nil else { return nil }
    return Finding(
      id: "fleet-not-asked", area: area, severity: .warning,
      text: "this machine is in a fleet, but the policy nowhere says verification = fleet: "
        + "all logins are judged by the enrollments of this machine",
      fixes: [.command("sallyport config edit"), .advice("sallyport fleet leave")])
  }

  /// Who is asked by a login that the fleet judges, root's own too.
  private var unserved: Finding? {
    guard daemon.isFleet, daemon.root.isAbsent else { return nil }
    return Finding(
      id: "fleet-unserved", area: area, severity: .error,
      text: "the policy says verification = fleet, but sallyportd, which asks the fleet, does not "
        + "listen on \(daemon.root.path)",
      fixes: [start], effect: .locksOut(whom))
  }

  private var rights: Finding? {
    guard let facts = daemon.fleetFile.value, facts.owner != 0 || facts.isOthersToWrite else {
      return nil
    }
    return Finding(
      id: "fleet-file", area: area, severity: .error,
      text: "users other than root can change \(Self.file), and so who judges",
      fixes: [.command("chown root:root \(Self.file) && chmod 0644 \(Self.file)")],
      effect: daemon.isFleet ? .locksOut(whom) : nil)
  }

  private var keyRights: Finding? {
    let text: String
    let fixes: [Fix]
    switch daemon.fleetKey {
    case .unseen: return nil
    case .absent:
      text = "\(Self.key) does not exist: the fleet does not know this machine without it"
      fixes = [.command("sallyport fleet join")]
    case .seen(let facts):
      guard facts.owner != 0 || facts.mode & 0o077 != 0 else { return nil }
      text = "users other than root can read \(Self.key), and ask the fleet in this machine's name"
      fixes = [
        .command("chown root:root \(Self.key) && chmod 0600 \(Self.key)"),
        .advice("if somebody may have read it: sallyport fleet join makes another"),
      ]
    }
    return Finding(
      id: "fleet-key", area: area, severity: .error, text: text, fixes: fixes,
      effect: daemon.isFleet ? .locksOut(whom) : nil)
  }
}
