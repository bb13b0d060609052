internal import CSystem
internal import OneTimePassword

/// The place of an enrollment's directory: its parent and its name.
final class UserDirectory: Sendable {
  /// The path of the directory that holds this one and others.
  let parent: Path
  let name: Path
  /// The name for which the decoy is used; nil for a user's directory.
  let decoyName: [UInt8]?

  var isDecoy: Bool { decoyName != nil }

  @inline(never) var path: Path { parent / name }

  init(parent: Path, name: Path, decoyName: [UInt8]? = nil) {
    self.parent = parent
    self.name = name
    self.decoyName = decoyName
  }
}

/// The open directory of one enrollment. Both files are opened through it, so that they belong
/// together even while `enroll --force` exchanges directories.
struct OpenUserDirectory: ~Copyable {
  let descriptor: Descriptor
  let location: UserDirectory

  var identity: Identity { Identity(descriptor.facts) }

  /// Returns nil if the parent has no such directory.
  @inline(never)
  static func open(_ location: UserDirectory, on parent: borrowing Descriptor, _ checks: Checks)
    throws(StoreTrouble) -> OpenUserDirectory?
  {
    let descriptor: Descriptor
    do throws(Errno) {
      descriptor = try Descriptor(location.name, sys_as_directory, in: parent.number)
    } catch {
      if error.code == ENOENT { return nil }
      throw directoryTrouble(error, location.name, in: parent.number, location.path)
    }
    if let flaw = checks.flaw(ofUserDirectory: descriptor.facts) {
      throw .unsafe(path: location.path.text, flaw)
    }
    return OpenUserDirectory(descriptor: descriptor, location: location)
  }

  /// Whether the name still leads to this directory.
  func isStill(on parent: borrowing Descriptor) throws(StoreTrouble) -> Bool {
    try identity(of: location.name, in: parent.number) == identity
  }

  /// Whether the name still leads to this file.
  func holds(_ file: borrowing StoredFile) throws(StoreTrouble) -> Bool {
    try identity(of: file.name, in: descriptor.number) == Identity(file.facts)
  }

  /// The text of a file in it; nil if there is none. A file that was replaced while it was opened
  /// has no name any more; then its successor is read.
  func text(of name: Path, _ checks: Checks) throws(StoreTrouble) -> Secret? {
    for _ in 0..<Store.readings {
      if let file = try StoredFile.open(name, sys_for_reading, in: self, checks) {
        guard let text = try file.secret() else { continue }
        return text
      }
      let place = location.path
      if try SallyportSystem.found(name, in: descriptor.number, place / name) == nil {
        return nil
      }
    }
    throw .unsettled(path: (location.path / name).text)
  }

  /// The present version of the enrollment; nil if there is none.
  func enrollmentVersion() throws(StoreTrouble) -> Version? {
    try found(StoredFile.enrollment, in: descriptor.number).map { Version($0) }
  }

  private func identity(of name: Path, in directory: Int32) throws(StoreTrouble) -> Identity? {
    try found(name, in: directory).map { Identity($0) }
  }

  private func found(_ name: Path, in directory: Int32) throws(StoreTrouble) -> sys_facts? {
    try SallyportSystem.found(name, in: directory, location.path)
  }
}

/// Why a directory cannot be opened: that it is not a directory says more than the system's error.
func directoryTrouble(_ error: Errno, _ name: Path, in directory: Int32, _ path: Path)
  -> StoreTrouble
{
  openingTrouble(error, name, in: directory, path, wanted: sys_directory, else: .notADirectory)
}

/// Why a file cannot be opened, in the same way.
func fileTrouble(_ error: Errno, _ name: Path, in directory: Int32, _ path: Path) -> StoreTrouble {
  openingTrouble(error, name, in: directory, path, wanted: sys_regular, else: .notRegular)
}

@inline(never) private func openingTrouble(
  _ error: Errno, _ name: Path, in directory: Int32, _ path: Path, wanted: sys_kind,
  else flaw: StoreTrouble.Flaw
) -> StoreTrouble {
  do throws(Errno) {
    let found = try facts(at: name, in: directory)
    if found.kind == sys_link { return .unsafe(path: path.text, .symbolicLink) }
    if found.kind != wanted { return .unsafe(path: path.text, flaw) }
  } catch {
    // It is gone now, so the first error counts.
  }
  return path.trouble("open", error.code)
}
