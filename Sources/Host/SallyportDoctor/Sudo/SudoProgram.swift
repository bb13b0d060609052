/// The programs that are called sudo. Each reads sudoers in its own way.
package enum SudoProgram: Equatable, Sendable {
  case sudo
  /// sudo-rs, which asks everybody but for NOPASSWD, and has no services of its own choice.
  case rust

  /// Those that are set-uid here, by the names under which they can be called.
  static func installed(on machine: Machine) -> [(name: String, program: SudoProgram)] {
    ["sudo", "sudo-rs", "sudo.ws"].compactMap { name in
      guard let file = machine.file("/usr/bin/\(name)").value, file.mode & 0o4000 != 0,
        let version = machine.answer([name, "--version"])
      else { return nil }
      return (name, version.hasPrefix("sudo-rs") ? .rust : .sudo)
    }
  }

  /// The first that is there counts.
  var files: [String] {
    switch self {
    // The vendor's (openSUSE) is read if the administrator has none.
    case .sudo: ["/etc/sudoers", "/usr/etc/sudoers"]
    case .rust: ["/etc/sudoers-rs", "/etc/sudoers"]
    }
  }

  /// Whether a line of Defaults can set the option.
  func knows(_ option: String) -> Bool {
    switch self {
    case .sudo: true
    case .rust: ["rootpw", "targetpw", "timestamp_timeout"].contains(option)
    }
  }
}
