/// The programs that are called sudo. Each reads sudoers in its own way.
package enum SudoProgram: Equatable, Sendable {
  case sudo
  /// sudo-rs, which asks everybody but for NOPASSWD, and has no services of its own choice.
  case rust

  /// Those that are set-uid here, by the names under which they can be called. They are not run:
  /// whatever is asked of it, sudo first asks for the groups of its caller, of a directory too.
  static func installed(on machine: Machine) -> [(name: String, program: SudoProgram)] {
    ["sudo", "sudo-rs", "sudo.ws"].compactMap { name in
      let path = "/usr/bin/\(name)"
      guard let file = machine.file(path).value, file.mode & 0o4000 != 0 else { return nil }
      let content = machine.bytes(path, limit: longestProgram).value ?? []
      return (name, content.holds("sudo-rs") ? .rust : .sudo)
    }
  }

  /// In bytes: sixteen times sudo-rs.
  private static let longestProgram = 16 << 20

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

extension [UInt8] {
  fileprivate func holds(_ text: String) -> Bool {
    let (first, wanted) = (text.utf8.first, Array(text.utf8))
    return indices.contains { self[$0] == first && self[$0...].starts(with: wanted) }
  }
}
