internal import CSystem
internal import OneTimePassword

extension Store {
  /// Puts a new directory in place of the present one. If they can be exchanged at once, the old
  /// one then has the name of the new one, and the caller wipes it after a sync.
  func exchange(_ made: Unfinished, with location: UserDirectory, on parent: borrowing Descriptor)
    throws(StoreTrouble)
  {
    // SAFETY: the C strings live for the call.
    let result =
      exchanges
      ? unsafe sys_exchange(parent.number, made.name.cString, location.name.cString) : -sys_EINVAL
    if result == -sys_EINVAL || result == -sys_ENOSYS {
      return try moveIn(made, location, on: parent)
    }
    try check(result, "rename", location.path)
  }

  /// For file systems that cannot exchange: moves file by file, under a name that says so.
  ///
  /// A login meanwhile finds the new enrollment with the state of the old one, which is an error;
  /// at no moment is the user not enrolled. `completeMoves` completes what a crash interrupted.
  private func moveIn(
    _ made: Unfinished, _ location: UserDirectory, on parent: borrowing Descriptor
  ) throws(StoreTrouble) {
    let marker = Leftover.moving(location.name)
    guard let directory = try OpenUserDirectory.open(location, on: parent, checks) else {
      throw .unsettled(path: location.path.text)
    }
    // SAFETY: the C strings live for the call.
    let result = unsafe sys_rename(
      parent.number, made.name.cString, parent.number, marker.cString)
    try check(result, "rename", location.path)
    try check(sys_sync(parent.number), "fsync", location.parent)
    let source = try openDirectory(marker, in: parent, location.parent / marker)
    do throws(StoreTrouble) {
      try move(StoredFile.enrollment, from: source, to: directory)
    } catch {
      wipe(marker, in: parent)
      throw error
    }
    try move(StoredFile.state, from: source, to: directory)
    wipe(marker, in: parent)
  }

  /// Completes the moves that a crash interrupted; one that had not begun is dropped. Needs the
  /// lock of the users directory.
  func completeMoves(_ names: [[UInt8]], on parent: borrowing Descriptor) throws(StoreTrouble) {
    for name in names {
      guard let user = rest(of: name, after: Leftover.moving) else { continue }
      let location = UserDirectory(parent: users, name: Path(user))
      try completeMove(Path(name), location, on: parent)
      wipe(Path(name), in: parent)
    }
  }

  private func completeMove(
    _ marker: Path, _ location: UserDirectory, on parent: borrowing Descriptor
  ) throws(StoreTrouble) {
    let source = try openDirectory(marker, in: parent, location.parent / marker)
    let left = try entries(of: source.number, location.parent / marker)
    let hasBegun = !left.contains(StoredFile.enrollment.bytes)
    guard hasBegun, left.contains(StoredFile.state.bytes) else { return }
    guard let directory = try OpenUserDirectory.open(location, on: parent, checks) else { return }
    try move(StoredFile.state, from: source, to: directory)
  }

  /// Replaces the user's file by a synced one, and wipes the old one.
  func move(
    _ file: Path, from source: borrowing Descriptor, to directory: borrowing OpenUserDirectory
  ) throws(StoreTrouble) {
    let target = directory.descriptor.number
    let old = try oldFile(file, in: directory)
    // SAFETY: the C strings live for the call.
    let result = unsafe sys_rename(source.number, file.cString, target, file.cString)
    try check(result, "rename", directory.location.path)
    try check(sys_sync(target), "fsync", directory.location.path)
    if let old { zero(old) }
  }

  /// Returns nil if there is no file that could be wiped.
  private func oldFile(_ name: Path, in directory: borrowing OpenUserDirectory)
    throws(StoreTrouble) -> Descriptor?
  {
    do throws(Errno) {
      let file = try Descriptor(name, sys_for_updating, in: directory.descriptor.number)
      guard file.facts.kind == sys_regular, file.facts.links == 1 else { return nil }
      return consume file
    } catch {
      return nil
    }
  }
}
