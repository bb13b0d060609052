internal import CSystem

/// Where an enrollment's folder is: a name in a folder.
struct Place: Sendable {
  /// The path of the folder that holds this one and others.
  let shelf: String
  let name: String
  let isDecoy: Bool

  var path: String { shelf + "/" + name }
}

/// The folder of one enrollment, open. Both files are opened in it, so that they belong to each
/// other also while `enroll --force` exchanges folders.
struct UserFolder: ~Copyable {
  let descriptor: Descriptor
  let path: String

  var identity: Identity { Identity(descriptor.facts) }

  /// nil where the shelf has nothing of that name.
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
    if let flaw = checks.flaw(ofUserFolder: descriptor.facts) { throw .unsafe(path: place.path, flaw) }
    return UserFolder(descriptor: descriptor, path: place.path)
  }

  /// Whether the name still leads to this folder.
  func isStill(_ place: Place, on shelf: borrowing Descriptor) throws(StoreTrouble) -> Bool {
    try identity(of: place.name, in: shelf.number) == identity
  }

  /// Whether the name still leads to this file.
  func holds(_ file: borrowing StoredFile, as name: String) throws(StoreTrouble) -> Bool {
    try identity(of: name, in: descriptor.number) == Identity(file.facts)
  }

  /// The version of the enrollment now; nil where there is none.
  func enrollmentVersion() throws(StoreTrouble) -> Version? {
    try found(StoredFile.enrollment, in: descriptor.number).map { Version($0) }
  }

  private func identity(of name: String, in folder: Int32) throws(StoreTrouble) -> Identity? {
    try found(name, in: folder).map { Identity($0) }
  }

  private func found(_ name: String, in folder: Int32) throws(StoreTrouble) -> sys_facts? {
    do throws(Errno) {
      return try facts(at: name, in: folder)
    } catch {
      if error.code == sys_ENOENT { return nil }
      throw error.trouble("lstat", path)
    }
  }
}

/// Why a folder cannot be opened: what is no folder at all says more than the system's error.
func folderTrouble(_ error: Errno, _ name: String, in folder: Int32, _ path: String)
  -> StoreTrouble
{
  do throws(Errno) {
    let found = try facts(at: name, in: folder)
    if found.kind == sys_link { return .unsafe(path: path, .symbolicLink) }
    if found.kind != sys_folder { return .unsafe(path: path, .notAFolder) }
    return error.trouble("open", path)
  } catch {
    return error.trouble("open", path)
  }
}
