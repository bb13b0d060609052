internal import CSystem
internal import OneTimePassword

/// Who must own the files of a store and the directories above it, and who may write to them.
struct Checks: Sendable {
  /// In bytes: the longest file of the store.
  static let longestFile: UInt64 = 65536

  private let owner: Store.Owner

  init(_ owner: Store.Owner) { self.owner = owner }

  /// Walks from `/` to the directory `path`. Each component must be a real directory with the right
  /// owner, in which no other user can replace anything that is not theirs.
  ///
  /// From the top down, since then only the right owner can change what was checked. Throws
  /// `noStore` if a directory is missing.
  func walk(to path: Path) throws(StoreTrouble) {
    let bytes = path.cString
    guard bytes.first == UInt8(ascii: "/") else { throw path.trouble("lstat", EINVAL) }
    try ancestor(.top, of: path)
    var start = 0
    for end in bytes.indices where bytes[end] == UInt8(ascii: "/") || bytes[end] == 0 {
      let component = bytes[start..<end]
      // `..` would leave the directories that were checked.
      if component.count == 2, component.allSatisfy({ $0 == UInt8(ascii: ".") }) {
        throw path.trouble("lstat", EINVAL)
      }
      if !component.isEmpty { try ancestor(path.prefix(end), of: path) }
      start = end + 1
    }
  }

  @inline(never) private func ancestor(_ directory: Path, of path: Path) throws(StoreTrouble) {
    let found: sys_facts
    do throws(Errno) {
      found = try facts(at: directory)
    } catch {
      if error.code == ENOENT { throw .noStore(path: path.text) }
      throw directory.trouble("lstat", error.code)
    }
    if let flaw = flaw(ofAncestor: found) { throw .unsafe(path: directory.text, flaw) }
  }

  /// A directory above the store: others may write to it only if it is sticky, so that they cannot
  /// rename files that are not theirs.
  func flaw(ofAncestor directory: sys_facts) -> StoreTrouble.Flaw? {
    let isSticky = directory.mode & 0o1000 != 0
    return flaw(ofDirectory: directory, forbidden: isSticky ? 0 : 0o022)
  }

  /// The directory of all users: nobody else may write to it, sticky or not.
  func flaw(ofParent directory: sys_facts) -> StoreTrouble.Flaw? {
    flaw(ofDirectory: directory, forbidden: 0o022)
  }

  /// A user's directory: nobody else may read it.
  func flaw(ofUserDirectory directory: sys_facts) -> StoreTrouble.Flaw? {
    flaw(ofDirectory: directory, forbidden: 0o077)
  }

  /// An enrollment or state file.
  func flaw(ofFile file: sys_facts) -> StoreTrouble.Flaw? {
    if file.kind == sys_link { return .symbolicLink }
    if file.kind != sys_regular { return .notRegular }
    if let flaw = flaw(ofOwner: file.owner) { return flaw }
    if file.mode & 0o077 != 0 { return .mode(file.mode) }
    if file.links != 1 { return .links(file.links) }
    return file.size > Checks.longestFile ? .tooLong : nil
  }

  /// A policy file: everybody may read it, and it may have several names.
  func flaw(ofPolicy file: sys_facts) -> StoreTrouble.Flaw? {
    if file.kind != sys_regular { return .notRegular }
    if let flaw = flaw(ofOwner: file.owner) { return flaw }
    if file.mode & 0o022 != 0 { return .mode(file.mode) }
    return file.size > Checks.longestFile ? .tooLong : nil
  }

  @inline(never) private func flaw(ofDirectory directory: sys_facts, forbidden: UInt32)
    -> StoreTrouble
    .Flaw?
  {
    if directory.kind == sys_link { return .symbolicLink }
    if directory.kind != sys_directory { return .notADirectory }
    if let flaw = flaw(ofOwner: directory.owner) { return flaw }
    return directory.mode & forbidden != 0 ? .mode(directory.mode) : nil
  }

  private func flaw(ofOwner found: UInt32) -> StoreTrouble.Flaw? {
    if found == 0 { return nil }
    switch owner {
    case .root: return .owner(found, wanted: 0)
    case .effectiveUser:
      let wanted = geteuid()
      return found == wanted ? nil : .owner(found, wanted: wanted)
    }
  }
}
