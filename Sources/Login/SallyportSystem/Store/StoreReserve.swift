internal import CSystem
internal import OneTimePassword
package import SallyportCore

// The reserve of a host of a fleet: an ordinary store, whose entries have backup codes alone.
// Beside the store's own directories it has `pending`, with an empty file for each entry of which a
// code was used while no verifier could be asked, and `confirmed`, which says when the fleet
// confirmed it (docs/enrollment-format.md).

extension Store {
  /// Where the reserve of a host is.
  package static let usualReserve = "/var/lib/sallyport/reserve"

  // MARK: the form of its entries

  func parsed(_ text: Secret) throws(SettingsError) -> Enrollment {
    #if hasFeature(Embedded)
      return try Enrollment.read(text)
    #else
      return isReserve ? try Enrollment.readReserve(text) : try Enrollment.read(text)
    #endif
  }

  /// nil if memory is short, or for what has no place in this store.
  func written(_ enrollment: Enrollment) -> Secret? {
    #if hasFeature(Embedded)
      return enrollment.written()
    #else
      if isReserve { return enrollment.writtenAsReserve() }
      return enrollment.receipt == nil ? enrollment.written() : nil
    #endif
  }

  /// One whose secrets nobody has seen, as the entries of this store are.
  func freshDecoy() throws(StoreTrouble) -> Enrollment {
    let decoy = try Store.makeDecoy()
    #if hasFeature(Embedded)
      return decoy
    #else
      guard isReserve else { return decoy }
      var reserve = Enrollment(
        id: decoy.id, user: decoy.user, uid: nil, created: decoy.created, authenticators: [],
        backupCodes: decoy.backupCodes)
      reserve.receipt = try Store.randomBytes(Enrollment.receiptLength)
      return reserve
    #endif
  }

  /// As `prepare`, where the directory above may be missing too.
  package func prepareWithParent() throws(StoreTrouble) {
    let bytes = root.bytes
    if let end = bytes.lastIndex(of: UInt8(ascii: "/")), end > 0 {
      try makeDirectory(Path([UInt8](bytes[..<end])))
    }
    try prepare()
  }

  // MARK: what has to go up

  private var pending: UserDirectory { UserDirectory(parent: root, name: "pending") }

  /// On disk before it returns.
  package func markPending(_ name: UserName) throws(StoreTrouble) {
    let file = try location(of: name).name
    try CriticalSection.during { () throws(StoreTrouble) in
      try makeDirectory(pending.path)
      let directory = try openDirectory(pending.path, in: try openParent(root), pending.path)
      do throws(StoreTrouble) {
        _ = try newFile(file, in: directory, pending.path / file)
      } catch {
        guard case .system(_, _, sys_EEXIST) = error else { throw error }
      }
      try check(sys_sync(directory.number), "fsync", pending.path)
    }
  }

  /// Nothing has to go up of it any more; what a power cut brings back goes up once more.
  package func unmarkPending(_ name: StoredName) throws(StoreTrouble) {
    guard let directory = try openPending() else { return }
    let file = Path(name.directory)
    // SAFETY: the C string lives for the call.
    let result = unsafe sys_remove_file(directory.descriptor.number, file.cString)
    if result != -sys_ENOENT { try check(result, "unlink", pending.path / file) }
  }

  /// The entries that are marked.
  package func pendingNames() throws(StoreTrouble) -> [StoredName] {
    guard let directory = try openPending() else { return [] }
    return try entries(of: directory.descriptor.number, pending.path)
      .sorted { $0.lexicographicallyPrecedes($1) }.map { StoredName(directory: $0) }
  }

  private func openPending() throws(StoreTrouble) -> OpenUserDirectory? {
    try checks.walk(to: root)
    return try OpenUserDirectory.open(pending, on: try openParent(root), checks)
  }

  /// The name of this user's directory.
  package func storedName(of name: UserName) throws(StoreTrouble) -> StoredName {
    StoredName(directory: try location(of: name).name.bytes)
  }

  // MARK: when it was confirmed

  private var confirmed: Path { "confirmed" }

  /// The text of `confirmed`; nil if there is none.
  package func confirmation() throws(StoreTrouble) -> [UInt8]? {
    try checks.walk(to: root)
    let directory = try openParent(root)
    let path = root / confirmed
    guard try found(confirmed, in: directory.number, path) != nil else { return nil }
    return try read(confirmed, in: directory, path)
  }

  private func read(_ name: Path, in directory: borrowing Descriptor, _ path: Path)
    throws(StoreTrouble) -> [UInt8]
  {
    let file: Descriptor
    do throws(Errno) {
      file = try Descriptor(name, sys_for_reading, in: directory.number)
    } catch {
      throw fileTrouble(error, name, in: directory.number, path)
    }
    if let flaw = checks.flaw(ofFile: file.facts) { throw .unsafe(path: path.text, flaw) }
    var bytes = [UInt8](repeating: 0, count: Int(file.facts.size))
    let number = file.number
    // SAFETY: the buffer lives for the call.
    let done = unsafe bytes.withUnsafeMutableBytes { unsafe StoredFile.read(number, $0) }
    try check(Int64(done), "read", path)
    return [UInt8](bytes.prefix(done))
  }

  /// Writes it: on disk, as a whole, before it returns.
  package func confirm(_ text: [UInt8]) throws(StoreTrouble) {
    guard let text = Secret(text) else { throw .outOfMemory }
    try checks.walk(to: root)
    try CriticalSection.during { () throws(StoreTrouble) in
      let directory = try openParent(root)
      let made = Leftover.named(Leftover.unfinished, hexadecimal(try Random.identifier()))
      // SAFETY: the C strings live for the calls. After a success there is no such file.
      defer { _ = unsafe sys_remove_file(directory.number, made.cString) }
      try SallyportSystem.write(text, as: made, in: directory, root)
      let result = unsafe sys_rename(
        directory.number, made.cString, directory.number, confirmed.cString)
      try check(result, "rename", root / confirmed)
      try check(sys_sync(directory.number), "fsync", root)
    }
  }

  // MARK: its end

  /// Removes and wipes all of it, itself included; nothing is done where there is none. What a
  /// crash leaves, the next call removes.
  package func dismantle() throws(StoreTrouble) {
    do throws(StoreTrouble) {
      try checks.walk(to: users)
    } catch {
      guard case .noStore = error else { throw error }
      return try removeDirectory(root)
    }
    try changing { parent throws(StoreTrouble) in
      for name in try entries(of: parent.number, users) { wipe(Path(name), in: parent) }
      let store = try openParent(root)
      for name in try entries(of: store.number, root) where !same("users", name) {
        wipe(Path(name), in: store)
      }
    }
    try removeDirectory(users)
    try removeDirectory(root)
  }

  private func removeDirectory(_ path: Path) throws(StoreTrouble) {
    // SAFETY: the C string lives for the call.
    let result = unsafe sys_remove_directory(sys_here, path.cString)
    if result != -sys_ENOENT { try check(result, "rmdir", path) }
  }
}
