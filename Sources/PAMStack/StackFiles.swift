/// Where libpam looks for the file of a service and for what it includes.
package struct StackFiles {
  /// For the file of a service, the first one that has it counts.
  let directories: [String]
  /// Debian's libpam takes what is included from one directory only; others look in `directories`.
  let includes: String?
  /// Debian's libpam knows the line `@include NAME`; to others it is a line of an unknown type.
  let knowsAtInclude: Bool
  /// The content of a file by its absolute path; nil where it cannot be opened. A directory opens,
  /// and is empty.
  let read: (String) -> [UInt8]?

  /// Debian, Ubuntu and what is made of them.
  package static func debian(_ read: @escaping (String) -> [UInt8]?) -> StackFiles {
    StackFiles(
      directories: ["/etc/pam.d", "/usr/lib/pam.d"], includes: "/etc/pam.d", knowsAtInclude: true,
      read: read)
  }

  /// Linux-PAM as it is published: Fedora, Arch, openSUSE, whose vendor files are in /usr/etc.
  package static func upstream(_ read: @escaping (String) -> [UInt8]?) -> StackFiles {
    StackFiles(
      directories: ["/etc/pam.d", "/usr/lib/pam.d", "/usr/etc/pam.d"], includes: nil,
      knowsAtInclude: false, read: read)
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
