import PAMStack
import SallyportSupport

/// A service that lets in without a code, of a program that asks for one in another service.
struct OpenWay: Equatable {
  let service: String
  /// The command that comes to it, such as `sudo -i`.
  let way: String
  /// It has no file, so that `other` lets in.
  let isByOther: Bool
  /// The file of the service that asks.
  let asking: String?
}

extension OpenWay {
  /// All of the machine, each once. `sudoers`: nil if none of sudo's services is examined.
  static func all(
    of machine: Machine, _ services: [ServiceFacts], _ sudoers: Sudoers?, _ ssh: SSHFacts?
  ) -> [OpenWay] {
    var found: [OpenWay] = []
    for service in services where service.lines.isInAuth || service.lines.demands {
      var families = [ServiceFamily(of: service.name, sudo: sudoers?.services ?? [])]
      if sudoers?.runs(service.name) == true, OpenWay.hasDoas(machine) {
        families.append(ServiceFamily(of: "doas"))
      }
      if service.name == "sshd", let name = ssh?.settings.value?["pamservicename"],
        !name.isEmpty
      {
        families.append(ServiceFamily(of: name, way: "ssh"))
      }
      for (member, isByOther) in families.flatMap({ $0.open(in: machine.stacks) })
      where sudoers?.tells(of: member.service, machine, isByOther) != true
        && !found.contains(where: { $0.service == member.service })
      {
        found.append(
          OpenWay(
            service: member.service, way: member.way, isByOther: isByOther, asking: service.file))
      }
    }
    return found
  }

  /// Whether doas lets anybody run anything.
  private static func hasDoas(_ machine: Machine) -> Bool {
    let rules = (machine.text("/etc/doas.conf").value ?? "").split(separator: "\n")
    let isAllowed = rules.contains { trimmed(String($0)).hasPrefix("permit") }
    return isAllowed && ["/usr/bin/doas", "/bin/doas"].contains { machine.file($0).value != nil }
  }

  var finding: Finding {
    let copied = asking.map { Fix.command("cp \($0) /etc/pam.d/\(shellQuoted(service))") }
    return .error(
      "family-open", .service(service),
      isByOther
        ? "\(way) runs the service \(service), which has no file: \"other\" asks for no code"
        : "\(way) runs the service \(service), which asks for no code",
      fixes: isByOther
        ? [copied].compactMap { $0 } : [.command(sallyportCommand("pam enable", on: [service]))],
      effect: .letsIn("anyone with the password through \(way)"))
  }
}

extension Sudoers {
  /// Whether a finding about a line of sudoers tells of the service already, or sudo does not run
  /// it here.
  fileprivate func tells(of service: String, _ machine: Machine, _ isByOther: Bool) -> Bool {
    if services.contains(where: { $0.service == service }) { return true }
    guard machine.paths("/usr/bin/sudo-rs").isEmpty else { return false }
    let option = ["sudo": "pam_service", "sudo-i": "pam_login_service"][service]
    let isReplaced = entries.contains { entry in
      if case .otherService(let name, _) = entry.exception, entry.elsewhere.isEmpty {
        return entry.isForAll && name == option
      }
      return false
    }
    // A sudo that was built without a service for login shells.
    let built = machine.answer(["sudo", "-V"]) ?? ""
    let isUnused =
      service == "sudo-i" && isByOther
      && built.contains("PAM service name to use for login shells: sudo\n")
    return isReplaced || isUnused
  }
}
