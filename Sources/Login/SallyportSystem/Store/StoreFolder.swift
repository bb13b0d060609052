internal import CSystem
package import OneTimePassword
package import SallyportCore

/// An open directory of a store: the users' directory, a user's, the store itself, or another one
/// in it. It was checked, as those above it, so that only the right owner changes what is in it.
///
/// Sources/Host does by it what no login does to the store's files: managing, importing, notes, the
/// reserve and moves. A lock, a rename or a wipe is the one of logins.
package struct StoreFolder: ~Copyable {
  let directory: OpenUserDirectory
  let store: Store

  package var path: Path { directory.location.path }
  /// Its file descriptor.
  package var number: Int32 { directory.descriptor.number }

  /// All names in it, in the order of the file system.
  package func names() throws(StoreTrouble) -> [Path] {
    try entries(of: number, path).map { Path($0) }
  }

  /// What is in the directory of this name, read by `reading`; nil if there is none. Needs no lock.
  package func record(_ name: Path, _ reading: Store.Reading) throws(StoreTrouble) -> Record? {
    try store.read(UserDirectory(parent: path, name: name), on: directory.descriptor, reading)
  }

  /// The directory of this name in it, of a user; nil if there is none.
  package func folder(_ name: Path) throws(StoreTrouble) -> StoreFolder? {
    let place = UserDirectory(parent: path, name: name)
    guard let found = try OpenUserDirectory.open(place, on: directory.descriptor, store.checks)
    else { return nil }
    return StoreFolder(directory: found, store: store)
  }

  /// Overwrites and removes a file. Best effort.
  package func erase(_ name: Path) { SallyportSystem.wipe(file: name, in: directory.descriptor) }

  /// The text of a file in it, which was checked; nil if there is none.
  package func text(of name: Path) throws(StoreTrouble) -> Secret? {
    try directory.text(of: name, store.checks)
  }

  /// Makes a directory that belongs to no user, with an enrollment of this text and, if there is
  /// one, a state; returns its name. It is on disk before this returns unless the caller syncs many
  /// at once. If this throws, nothing remains.
  package func make(_ text: Secret, _ state: LoginState?, synced: Bool = true)
    throws(StoreTrouble) -> Path
  {
    let made = try Unfinished()
    let pages: [UInt8]? = if let state { try store.pages(state) } else { nil }
    try made.make(in: directory.descriptor, path, enrollment: text, state: pages, synced: synced)
    return made.name
  }

  /// Writes a new file, and syncs it unless the caller syncs many at once. If this throws, some of
  /// it may be there.
  package func write(_ text: Secret, as name: Path, synced: Bool = true) throws(StoreTrouble) {
    try SallyportSystem.write(text, as: name, in: directory.descriptor, path, synced)
  }

  /// Calls `body` while this directory is locked against others who do the same.
  package func locked<Value>(_ body: () -> Value) throws(StoreTrouble) -> Value {
    let number = number
    var start: UInt64 = 0
    try store.timeout.acquire("flock", path, since: &start) { sys_lock_directory(number) }
    defer { sys_unlock_directory(number) }
    return body()
  }

  /// Gives what was made another name. Throws `exists` if that is taken.
  package func rename(_ made: Path, to name: Path) throws(StoreTrouble) {
    try store.rename(made, to: name, in: directory.descriptor, path)
  }

  /// Puts a file of the directory `made` in the place of the one in the directory `name`, which is
  /// wiped; on disk before it returns.
  package func move(_ file: Path, from made: Path, to name: Path) throws(StoreTrouble) {
    let source = try openDirectory(made, in: directory.descriptor, path / made)
    let location = UserDirectory(parent: path, name: name)
    guard let target = try OpenUserDirectory.open(location, on: directory.descriptor, store.checks)
    else {
      throw .unsettled(path: location.path.text)
    }
    try SallyportSystem.move(file, from: source, to: target)
  }

  /// Overwrites and removes it, whether it is a directory with files or a file. Best effort: what
  /// remains, the next command removes.
  package func wipe(_ name: Path) { SallyportSystem.wipe(name, in: directory.descriptor) }

  /// Calls `body` while no login of the user with this directory can save. If there is no state to
  /// lock, no login can save anyway. The directory must be there: one that a login makes from now
  /// on is not locked.
  package func holding<Value>(_ name: Path, _ body: () throws(StoreTrouble) -> Value)
    throws(StoreTrouble) -> Value
  {
    let file: Descriptor
    let state = path / name / StoredFile.state
    do throws(Errno) {
      let directory = try Descriptor(name, sys_as_directory, in: number)
      file = try Descriptor(StoredFile.state, sys_for_updating, in: directory.number)
    } catch {
      switch error.code {
      // There is nothing, or not a regular file.
      case ENOENT, ENOTDIR, ELOOP, EISDIR, ENXIO: return try body()
      case _: throw state.trouble("open", error.code)
      }
    }
    guard file.facts.kind == sys_regular else { return try body() }
    let number = file.number
    try LockBytes.own.acquire(number, asKnown: true, store.timeout, state)
    defer { sys_unlock(number) }
    return try body()
  }

  /// As above, for a loaded enrollment; `changed` if it is not the loaded one any more.
  package func holding<Value>(_ record: Record, _ body: () throws(StoreTrouble) -> Value)
    throws(StoreTrouble) -> Transaction<Value>
  {
    guard let locked = try store.lock(record, on: directory.descriptor, asKnown: true) else {
      return .changed
    }
    let value = try body()
    _ = locked.current
    return .committed(value)
  }
}

extension Store {
  /// Calls `body` with the users' directory, locked against other commands. Locks are always taken
  /// in this order: the users' directory, then a user's state. No login takes the first: its user
  /// can stop it for any time, so that it holds no lock for which others wait.
  package func changing<Value>(_ body: (borrowing StoreFolder) throws(StoreTrouble) -> Value)
    throws(StoreTrouble) -> Value
  {
    try checks.walk(to: root)
    return try CriticalSection.during { () throws(StoreTrouble) -> Value in
      let folder = try openUsers()
      let number = folder.number
      var start: UInt64 = 0
      try timeout.acquire("flock", users, since: &start) { sys_lock_directory(number) }
      defer { sys_unlock_directory(number) }
      return try body(folder)
    }
  }

  private func openUsers() throws(StoreTrouble) -> StoreFolder {
    StoreFolder(
      directory: OpenUserDirectory(
        descriptor: try openParent(users), location: UserDirectory(parent: root, name: "users")),
      store: self)
  }

  /// The users' directory, which is not locked.
  package func userFolder() throws(StoreTrouble) -> StoreFolder {
    try checks.walk(to: root)
    return try openUsers()
  }

  /// The directory with this name in the store; nil if there is none.
  package func folder(_ name: Path) throws(StoreTrouble) -> StoreFolder? {
    try checks.walk(to: root)
    let place = UserDirectory(parent: root, name: name)
    guard let directory = try OpenUserDirectory.open(place, on: try openParent(root), checks)
    else { return nil }
    return StoreFolder(directory: directory, store: self)
  }

  /// The store itself.
  package func topFolder() throws(StoreTrouble) -> StoreFolder {
    try checks.walk(to: root)
    let name = root.bytes.split(separator: UInt8(ascii: "/")).last ?? []
    let place = UserDirectory(parent: root.above, name: Path([UInt8](name)))
    let directory = OpenUserDirectory(descriptor: try openParent(root), location: place)
    return StoreFolder(directory: directory, store: self)
  }

  /// Makes a directory (0700) where there is none; on disk before this returns.
  package func makeDirectory(_ path: Path) throws(StoreTrouble) {
    let above = path.above
    try checks.walk(to: above)
    // SAFETY: the C string lives for the call.
    let result = unsafe sys_make_directory(AT_FDCWD, path.cString)
    if result == -EEXIST { return }
    try check(result, "mkdir", path)
    do throws(Errno) {
      let directory = try Descriptor(path, sys_as_directory)
      try Errno.check(sys_set_mode(directory.number, 0o700))
      let parent = try Descriptor(above, sys_as_directory)
      try Errno.check(sys_sync(parent.number))
    } catch {
      throw path.trouble("mkdir", error.code)
    }
  }
}
