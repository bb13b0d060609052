internal import CSystem

/// Where an enrollment's directory is: a name in a directory.
final class UserDirectory: Sendable {
  /// The path of the directory that holds this one and others.
  let parent: Path
  let name: Path
  /// The decoy: for which name it is worked on.
  let decoyName: [UInt8]?

  var isDecoy: Bool { decoyName != nil }

  @inline(never) var path: Path { parent / name }

  init(parent: Path, name: Path, decoyName: [UInt8]? = nil) {
    self.parent = parent
    self.name = name
    self.decoyName = decoyName
  }
}

/// The directory of one enrollment, open. Both files are opened in it, so that they belong to each
/// other also while `enroll --force` exchanges directories.
struct OpenUserDirectory: ~Copyable {
  let descriptor: Descriptor
  let location: UserDirectory

  var identity: Identity { Identity(descriptor.facts) }

  /// nil where the parent has nothing of that name.
  @inline(never)
  static func open(_ location: UserDirectory, on parent: borrowing Descriptor, _ checks: Checks)
    throws(StoreTrouble) -> OpenUserDirectory?
  {
    let descriptor: Descriptor
    do throws(Errno) {
      descriptor = try Descriptor(location.name, sys_as_directory, in: parent.number)
    } catch {
      if error.code == sys_ENOENT { return nil }
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

  /// The version of the enrollment now; nil where there is none.
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

/// Why a directory cannot be opened: what is no directory at all says more than the system's error.
func directoryTrouble(_ error: Errno, _ name: Path, in directory: Int32, _ path: Path)
  -> StoreTrouble
{
  openingTrouble(error, name, in: directory, path, wanted: sys_directory, else: .notADirectory)
}

/// Why a file cannot be opened, likewise.
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
    // Gone by now: the first error counts.
  }
  return path.trouble("open", error.code)
}
