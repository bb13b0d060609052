import SallyportSupport

/// Problems of the module file. Pure.
struct ModuleFindings {
  let modules: [ModuleFacts]
  /// The version of this command.
  let version: String
  let packages: PackageTool?
  private let area = Area.module

  var all: [Finding] { modules.flatMap(findings) }

  private func findings(of module: ModuleFacts) -> [Finding] {
    let found = [
      missing(module) ?? unsafeFile(module),
      foreign(module) ?? refused(module) ?? powerless(module), old(module),
    ]
    .compactMap { $0 }
    return found.isEmpty ? [.ok("module", area, "\(module.path) can be loaded")] : found
  }

  private func missing(_ module: ModuleFacts) -> Finding? {
    switch module.file {
    case .seen(let file) where file.isRegular: return nil
    case .unseen(let reason): return .unseen("module-missing", area, reason)
    case .seen, .absent:
      return error(
        "module-missing", "\(module.path) does not exist: all who are asked for a code are refused",
        module, fixes: [install], effect: .locksOut("everybody who is asked for a code"))
    }
  }

  private func unsafeFile(_ module: ModuleFacts) -> Finding? {
    guard let file = module.file.value else { return nil }
    if file.owner != 0 {
      return error(
        "module-owner", "\(module.path) is owned by uid \(file.owner), who can change it", module,
        fixes: [.command("chown root:root \(shellQuoted(module.path))")],
        effect: .letsIn("uid \(file.owner)"))
    }
    if file.isOthersToWrite {
      return error(
        "module-mode", "users other than root can change \(module.path)", module,
        fixes: [.command("chmod go-w \(shellQuoted(module.path))")], effect: .letsIn("local users"))
    }
    guard let directory = module.openDirectories.first else { return nil }
    return error(
      "module-directory", "users other than root can change \(directory), the module's", module,
      fixes: [
        .command(
          "chown root:root \(shellQuoted(directory)) && chmod go-w \(shellQuoted(directory))")
      ],
      effect: .letsIn("local users"))
  }

  private func foreign(_ module: ModuleFacts) -> Finding? {
    let (of, own) = module.machines
    guard module.file.value?.isRegular == true, of != own, own != 0 else { return nil }
    return error(
      "module-architecture",
      of == 0
        ? "\(module.path) is not a shared library"
        : "\(module.path) was built for another architecture",
      module, fixes: [install], effect: .locksOut("everybody who is asked for a code"))
  }

  private func refused(_ module: ModuleFacts) -> Finding? {
    guard let refusal = module.refusal else { return nil }
    return error(
      "module-loading", "\(module.path) cannot be loaded: \(refusal)", module, fixes: [install],
      effect: .locksOut("everybody who is asked for a code"))
  }

  /// As where openssl.cnf wants FIPS and no provider of it is active.
  private func powerless(_ module: ModuleFacts) -> Finding? {
    guard !module.makesCodes else { return nil }
    return error(
      "module-crypto",
      "OpenSSL, as it is configured, computes no HMAC-SHA-1: "
        + "all who are asked for a code are refused",
      module,
      fixes: [
        .advice("openssl list -providers, and default_properties in openssl.cnf (config(5ssl))")
      ],
      effect: .locksOut("everybody who is asked for a code"))
  }

  private func old(_ module: ModuleFacts) -> Finding? {
    guard let found = module.version, !found.hasPrefix(version) else { return nil }
    return .warning(
      "module-version", area, "the module is version \(found), this command is version \(version)",
      fixes: packages.map { [.command($0.upgradeOurs)] } ?? [])
  }

  private var install: Fix {
    guard let packages, modules.contains(where: { $0.version != nil }) else {
      return .advice("make install, in the sources")
    }
    return .command(packages.reinstallModule)
  }

  private func error(
    _ id: String, _ text: String, _ module: ModuleFacts, fixes: [Fix], effect: Effect
  ) -> Finding {
    Finding.error(id, area, text, location: module.location, fixes: fixes, effect: effect)
  }
}
