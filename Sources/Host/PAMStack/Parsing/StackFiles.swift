/// How libpam reads files of pam.d. Linux-PAM 1.6 reads lines of any length, ends a continued line
/// at a comment or a blank line, counts includes of every kind, and refuses jumps that are too far.
package enum LibpamRules: Sendable {
  case before16, since16
}

/// Where libpam looks for the file of a service and for included files, and how it reads them.
package struct StackFiles {
  /// Searched in this order for the file of a service; the first one found is read.
  let directories: [String]
  /// The only directory for included files in Debian's libpam; nil if they are searched in
  /// `directories`.
  let includes: String?
  /// Whether libpam knows the line `@include NAME`, as Debian's does; for others the type is
  /// unknown.
  let knowsAtInclude: Bool
  let rules: LibpamRules
  /// Returns the content of the file at an absolute path, nil if it cannot be opened. A directory
  /// can be opened, and is empty.
  let read: (String) -> [UInt8]?

  /// Debian, Ubuntu and their derivatives.
  package static func debian(
    _ rules: LibpamRules, _ read: @escaping (String) -> [UInt8]?
  ) -> StackFiles {
    StackFiles(
      directories: ["/etc/pam.d", "/usr/lib/pam.d"], includes: "/etc/pam.d", knowsAtInclude: true,
      rules: rules, read: read)
  }

  /// Linux-PAM as published: Fedora, Arch and openSUSE, whose vendor files are in /usr/etc.
  package static func upstream(
    _ rules: LibpamRules, _ read: @escaping (String) -> [UInt8]?
  ) -> StackFiles {
    StackFiles(
      directories: ["/etc/pam.d", "/usr/lib/pam.d", "/usr/etc/pam.d"], includes: nil,
      knowsAtInclude: false, rules: rules, read: read)
  }

  typealias File = (path: String, content: [UInt8])

  func service(_ name: String) -> File? {
    name.utf8.first == UInt8(ascii: "/") ? file(name) : first(name, in: directories)
  }

  func included(_ name: String) -> File? {
    if name.utf8.first == UInt8(ascii: "/") { return file(name) }
    return first(name, in: includes.map { [$0] } ?? directories)
  }

  private func first(_ name: String, in directories: [String]) -> File? {
    for directory in directories {
      if let found = file("\(directory)/\(name)") { return found }
    }
    return nil
  }

  private func file(_ path: String) -> File? { read(path).map { (path, $0) } }
}
