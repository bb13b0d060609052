/// What installs packages on this machine.
enum PackageTool: Equatable {
  case apt, dnf, zypper

  /// By ID and ID_LIKE of os-release(5). nil where that names none of these families.
  init?(of machine: Machine) {
    let text = machine.text("/etc/os-release").value ?? machine.text("/usr/lib/os-release").value
    let families = ["ID=", "ID_LIKE="].flatMap { PackageTool.words(of: $0, in: text ?? "") }
    let found = families.lazy.compactMap(PackageTool.init(family:)).first
    guard let found else { return nil }
    self = found
  }

  private init?(family: String) {
    switch family {
    case "debian", "ubuntu": self = .apt
    case "fedora", "rhel", "centos": self = .dnf
    case "suse", "opensuse", "sles": self = .zypper
    case _: return nil
    }
  }

  private static func words(of key: String, in text: String) -> [String] {
    let value = linesOf(text).first { $0.hasPrefix(key) }?.dropFirst(key.count) ?? ""
    return value.filter { $0 != "\"" && $0 != "'" }.split(separator: " ").map(String.init)
  }

  /// The package of the module.
  private var module: String { self == .apt ? "libpam-sallyport" : "pam-sallyport" }

  private var verbs: (install: String, upgrade: String, reinstall: String) {
    switch self {
    case .apt: ("apt-get install", "apt-get install", "apt-get install --reinstall")
    case .dnf: ("dnf install", "dnf upgrade", "dnf reinstall")
    case .zypper: ("zypper install", "zypper update", "zypper install --force")
    }
  }

  /// The command that installs a package which has the same name everywhere.
  func install(_ package: String) -> String { "\(verbs.install) \(package)" }

  /// The command that brings module and command to one version.
  var upgradeOurs: String { "\(verbs.upgrade) \(module) sallyport" }

  /// The command that puts the files of the module's package back.
  var reinstallModule: String { "\(verbs.reinstall) \(module)" }

  /// The command that prints the version of the module's package.
  var versionOfModule: [String] {
    switch self {
    case .apt: ["dpkg-query", "-W", "-f", "${Version}", module]
    case .dnf, .zypper: ["rpm", "-q", "--queryformat", "%{VERSION}", module]
    }
  }
}
