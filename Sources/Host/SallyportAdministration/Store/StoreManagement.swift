import CSystem
import OneTimePassword
package import SallyportCore
package import SallyportSystem

// Changes of enrollments by commands, all under the lock of the users' directory.

extension Store {
  /// Enrolls a user, replacing any enrollment, even one that cannot be read. At no moment is the
  /// user not enrolled. The old secret is wiped.
  package func replace(_ enrollment: Enrollment, _ state: LoginState) throws(StoreTrouble) {
    try replace(try text(enrollment), of: enrollment.user, state)
  }

  /// As above, with the text of the file.
  func replace(_ text: Secret, of user: UserName, _ state: LoginState) throws(StoreTrouble) {
    try changing { users throws(StoreTrouble) in
      let name = try fileName(of: user)
      let made = try users.make(text, state)
      try users.finishing(made) { () throws(StoreTrouble) in
        try put(made, as: name, in: users)
      }
      // The new one must be on the disk before the old one is wiped.
      try users.sync()
      users.wipe(made)
    }
  }

  /// Removes an enrollment and wipes it. `changed` if it is no longer the loaded one.
  package func remove(_ record: Record) throws(StoreTrouble) -> Transaction<Void> {
    try changing { users throws(StoreTrouble) in
      let name = try fileName(of: record.enrollment.user)
      return try users.holding(record) { () throws(StoreTrouble) in try users.takeAway(name) }
    }
  }

  /// Removes an enrollment that cannot be read. Returns false if there is none with this name.
  package func remove(stored name: StoredName) throws(StoreTrouble) -> Bool {
    try changing { users throws(StoreTrouble) in
      let name = name.path
      guard try users.has(name) else { return false }
      try users.holding(name) { () throws(StoreTrouble) in try users.takeAway(name) }
      return true
    }
  }

  /// As above, where `mayGo` allows it, by what is there while no login can save; `done` runs then
  /// too, when it is gone. Returns whether it went.
  @discardableResult
  package func remove(
    stored name: StoredName, if mayGo: (Record?) throws(StoreTrouble) -> Bool,
    done: () throws(StoreTrouble) -> Void
  ) throws(StoreTrouble) -> Bool {
    try changing { users throws(StoreTrouble) in
      let path = name.path
      return try users.holding(path) { () throws(StoreTrouble) in
        let record = try load(stored: name)
        guard try mayGo(record) else { return false }
        if try users.has(path) { try users.takeAway(path) }
        try done()
        return true
      }
    }
  }

  /// Gives a new directory its name, or puts it in place of the one that has the name, perhaps by a
  /// login that was faster.
  private func put(_ made: Path, as name: Path, in users: borrowing StoreFolder)
    throws(StoreTrouble)
  {
    do throws(StoreTrouble) {
      try users.rename(made, to: name)
      return try users.sync()
    } catch {
      guard case .exists = error else { throw error }
    }
    try users.holding(name) { () throws(StoreTrouble) in
      try exchange(made, with: name, in: users)
    }
  }
}

// MARK: steps

extension StoreFolder {
  func sync() throws(StoreTrouble) { try check(sys_sync(number), "fsync", path) }

  /// Whether something has this name.
  func has(_ name: Path) throws(StoreTrouble) -> Bool {
    var facts = sys_facts()
    // SAFETY: the C string lives for the call, in which the facts are filled.
    let result = unsafe sys_facts_at(number, name.cString, &facts)
    if result == -ENOENT { return false }
    try check(result, "lstat", path / name)
    return true
  }

  /// Runs the last step with what was made, which is wiped if that fails.
  func finishing(_ made: Path, _ step: () throws(StoreTrouble) -> Void) throws(StoreTrouble) {
    do throws(StoreTrouble) {
      try step()
    } catch {
      wipe(made)
      throw error
    }
  }

  /// Renames it to a name that belongs to no user, syncs that, and wipes it.
  func takeAway(_ name: Path) throws(StoreTrouble) {
    let gone = Leftover.named(Leftover.removed, hexadecimal(try Random.identifier()))
    try rename(name, over: gone)
    try sync()
    wipe(gone)
  }

  /// Gives it another name in this directory, which no directory with files has.
  func rename(_ name: Path, over other: Path) throws(StoreTrouble) {
    // SAFETY: the C strings live for the call.
    let result = unsafe sys_rename(number, name.cString, number, other.cString)
    try check(result, "rename", path / name)
  }
}

extension StoreFolder {
  /// Makes a file here, puts it in its place in another directory, and syncs that.
  ///
  /// First the name that went is synced: after a power cut btrfs else has both, and a file with two
  /// names is refused.
  func put(_ text: Secret, as file: Path, in target: borrowing StoreFolder) throws(StoreTrouble) {
    let made = Leftover.named(Leftover.unfinished, hexadecimal(try Random.identifier()))
    // SAFETY: the C strings live for the calls. After a success there is no such file.
    defer { _ = unsafe sys_remove_file(number, made.cString) }
    try write(text, as: made)
    let result = unsafe sys_rename(number, made.cString, target.number, file.cString)
    try check(result, "rename", target.path / file)
    try sync()
    try target.sync()
  }

  /// Makes an empty file, where there is none.
  func makeEmpty(_ file: Path) throws(StoreTrouble) {
    // SAFETY: the C string lives for the call.
    let made = unsafe sys_open(number, file.cString, sys_as_new_file)
    if made == -EEXIST { return }
    try check(made, "open", path / file)
    defer { sys_close(made) }
    try check(sys_set_mode(made, 0o600), "fchmod", path / file)
  }

  /// Removes a file, where there is one.
  func remove(_ file: Path) throws(StoreTrouble) {
    // SAFETY: the C string lives for the call.
    let result = unsafe sys_remove_file(number, file.cString)
    if result != -ENOENT { try check(result, "unlink", path / file) }
  }
}

extension Leftover {
  /// Being removed; what a crash leaves is wiped.
  static var removed: StaticString { ".gone-" }
}
