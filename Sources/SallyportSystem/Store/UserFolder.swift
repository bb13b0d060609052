internal import CSystem

/// Where an enrollment's folder is: a name in a folder.
final class Place: Sendable {
  /// The path of the folder that holds this one and others.
  let shelf: Path
  let name: Path
  /// The decoy: for which name it is worked on.
  let decoyName: [UInt8]?

  var isDecoy: Bool { decoyName != nil }

  @inline(never) var path: Path { shelf / name }

  init(shelf: Path, name: Path, decoyName: [UInt8]? = nil) {
    self.shelf = shelf
    self.name = name
    self.decoyName = decoyName
  }
}

/// The folder of one enrollment, open. Both files are opened in it, so that they belong to each
/// other also while `enroll --force` exchanges folders.
struct UserFolder: ~Copyable {
  let descriptor: Descriptor
  let place: Place

  var identity: Identity { Identity(descriptor.facts) }

  /// nil where the shelf has nothing of that name.
  @inline(never)
  static func open(_ place: Place, on shelf: borrowing Descriptor, _ checks: Checks)
    throws(StoreTrouble) -> UserFolder?
  {
    let descriptor: Descriptor
    do throws(Errno) {
      descriptor = try Descriptor(place.name, sys_as_folder, in: shelf.number)
    } catch {
      if error.code == sys_ENOENT { return nil }
      throw folderTrouble(error, place.name, in: shelf.number, place.path)
    }
    if let flaw = checks.flaw(ofUserFolder: descriptor.facts) {
      throw .unsafe(path: place.path.text, flaw)
    }
    return UserFolder(descriptor: descriptor, place: place)
  }

  /// Whether the name still leads to this folder.
  func isStill(on shelf: borrowing Descriptor) throws(StoreTrouble) -> Bool {
    try identity(of: place.name, in: shelf.number) == identity
  }

  /// Whether the name still leads to this file.
  func holds(_ file: borrowing StoredFile) throws(StoreTrouble) -> Bool {
    try identity(of: file.name, in: descriptor.number) == Identity(file.facts)
  }

  /// The version of the enrollment now; nil where there is none.
  func enrollmentVersion() throws(StoreTrouble) -> Version? {
    try found(StoredFile.enrollment, in: descriptor.number).map { Version($0) }
  }

  private func identity(of name: Path, in folder: Int32) throws(StoreTrouble) -> Identity? {
    try found(name, in: folder).map { Identity($0) }
  }

  private func found(_ name: Path, in folder: Int32) throws(StoreTrouble) -> sys_facts? {
    do throws(Errno) {
      return try facts(at: name, in: folder)
    } catch {
      if error.code == sys_ENOENT { return nil }
      throw place.path.trouble("lstat", error.code)
    }
  }
}

/// Why a folder cannot be opened: what is no folder at all says more than the system's error.
func folderTrouble(_ error: Errno, _ name: Path, in folder: Int32, _ path: Path) -> StoreTrouble {
  openingTrouble(error, name, in: folder, path, wanted: sys_folder, else: .notAFolder)
}

/// Why a file cannot be opened, likewise.
func fileTrouble(_ error: Errno, _ name: Path, in folder: Int32, _ path: Path) -> StoreTrouble {
  openingTrouble(error, name, in: folder, path, wanted: sys_regular, else: .notRegular)
}

@inline(never) private func openingTrouble(
  _ error: Errno, _ name: Path, in folder: Int32, _ path: Path, wanted: sys_kind,
  else flaw: StoreTrouble.Flaw
) -> StoreTrouble {
  do throws(Errno) {
    let found = try facts(at: name, in: folder)
    if found.kind == sys_link { return .unsafe(path: path.text, .symbolicLink) }
    if found.kind != wanted { return .unsafe(path: path.text, flaw) }
  } catch {
    // Gone by now: the first error counts.
  }
  return path.trouble("open", error.code)
}
