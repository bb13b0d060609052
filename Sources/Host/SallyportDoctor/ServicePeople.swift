extension AccountFacts {
  /// The people whom a service would ask for a code.
  func people(of service: String, _ sudoers: Sudoers?, _ ssh: SSHFacts?) -> [Account] {
    switch service {
    case "sshd":
      let isRootIn = ssh?.settings.value?["permitrootlogin"] == "yes"
      return people.filter { $0.uid != 0 || isRootIn }
    case _ where ["sudo", "sudo-i"].contains(service) || sudoers?.runs(service) == true:
      return people.filter { $0.uid != 0 && mayCall($0, sudoers) }
    case _: return people.filter { $0.password != .none }
    }
  }
}
