internal import CSystem
internal import OneTimePassword
package import SallyportCore

// Changes of enrollments. Locks are always taken in this order: the users directory, then the
// user's state. The first is only for commands: a login, which its user can stop for any time,
// holds no lock that others wait for.

extension Store {
  /// Enrolls a user who is not enrolled; the directory appears complete or not at all. Throws
  /// `exists` if the name is taken, perhaps by another login a moment before.
  package func create(_ enrollment: Enrollment, _ state: LoginState) throws(StoreTrouble) {
    try alone { parent throws(StoreTrouble) in
      let location = try location(of: enrollment.user)
      if try isThere(location, on: parent) { throw .exists(path: location.path.text) }
      let made = try make(enrollment, state, on: parent, alone: true)
      try finishing(made, on: parent) { () throws(StoreTrouble) in
        try appear(made, as: location, on: parent)
      }
    }
  }

  /// Makes the files of an enrollment, empty of anything, and removes them: what stands in the way
  /// of one is found before its secret is shown. For logins too.
  package func rehearse() throws(StoreTrouble) {
    try alone { parent throws(StoreTrouble) in
      let size = StateRecord.fileSize + StateRecord.slotSize
      guard let zeros = Secret(count: size) else { throw .outOfMemory }
      wipe(try make(zeros, on: parent).name, in: parent)
    }
  }

  /// Enrolls a user, replacing any enrollment, even one that cannot be read. At no moment is the
  /// user not enrolled. The old secret is wiped.
  package func replace(_ enrollment: Enrollment, _ state: LoginState) throws(StoreTrouble) {
    try changing { parent throws(StoreTrouble) in
      let location = try location(of: enrollment.user)
      let made = try make(enrollment, state, on: parent)
      try finishing(made, on: parent) { () throws(StoreTrouble) in
        try put(made, at: location, on: parent)
      }
      // The new one must be on the disk before the old one is wiped.
      try check(sys_sync(parent.number), "fsync", users)
      wipe(made.name, in: parent)
    }
  }

  /// Replaces the loaded enrollment by another one with the same id, then saves the state that
  /// `change` makes of the present one. Returns `changed` if the enrollment is not the loaded one
  /// any more. Logins may call it too, as it needs only the user's lock.
  ///
  /// If saving the state fails after the enrollment was written, the new enrollment stays: a state
  /// is reconciled with its enrollment whenever it is read.
  package func rewrite(
    _ record: Record, _ enrollment: Enrollment, _ change: (LoginState) -> LoginState
  ) throws(StoreTrouble) -> Transaction<Void> {
    try alone { parent throws(StoreTrouble) in
      guard let locked = try lock(record, on: parent, asKnown: true) else { return .changed }
      let made = try make(try text(enrollment), on: parent)
      try finishing(made, on: parent) { () throws(StoreTrouble) in
        let source = try openDirectory(made.name, in: parent, users / made.name)
        try move(StoredFile.enrollment, from: source, to: locked.directory)
      }
      wipe(made.name, in: parent)
      try locked.save(change(locked.current.state))
      return .committed(())
    }
  }

  /// Removes an enrollment and wipes it. `changed` if it is no longer the loaded one.
  package func remove(_ record: Record) throws(StoreTrouble) -> Transaction<Void> {
    try changing { parent throws(StoreTrouble) in
      guard let locked = try lock(record, on: parent, asKnown: true) else { return .changed }
      try takeAway(locked.directory.location, on: parent)
      return .committed(())
    }
  }

  /// Removes an enrollment that cannot be read. Returns false if there is none with this name.
  package func remove(stored name: StoredName) throws(StoreTrouble) -> Bool {
    try changing { parent throws(StoreTrouble) in
      let location = UserDirectory(parent: users, name: Path(name.directory))
      guard try isThere(location, on: parent) else { return false }
      try holdingState(of: location, on: parent) { () throws(StoreTrouble) in
        try takeAway(location, on: parent)
      }
      return true
    }
  }
}

// MARK: steps

extension Store {
  /// Calls `body` with the users directory open, and locked against other commands.
  func changing<Value>(_ body: (borrowing Descriptor) throws(StoreTrouble) -> Value)
    throws(StoreTrouble) -> Value
  {
    try alone { parent throws(StoreTrouble) -> Value in
      let number = parent.number
      var start: UInt64 = 0
      try timeout.acquire("flock", users, since: &start) { sys_lock_directory(number) }
      defer { sys_unlock_directory(number) }
      return try body(parent)
    }
  }

  /// Calls `body` with the users directory open, but not locked.
  private func alone<Value>(_ body: (borrowing Descriptor) throws(StoreTrouble) -> Value)
    throws(StoreTrouble) -> Value
  {
    try checks.walk(to: root)
    return try CriticalSection.during { () throws(StoreTrouble) -> Value in
      try body(try openParent(users))
    }
  }

  /// Gives a new directory its name, or puts it in place of the one that has the name, perhaps by a
  /// login that was faster.
  private func put(_ made: Unfinished, at location: UserDirectory, on parent: borrowing Descriptor)
    throws(StoreTrouble)
  {
    do throws(StoreTrouble) {
      return try appear(made, as: location, on: parent)
    } catch {
      guard case .exists = error else { throw error }
    }
    try holdingState(of: location, on: parent) { () throws(StoreTrouble) in
      try exchange(made, with: location, on: parent)
    }
  }

  /// Calls `body` while no login of the user can save. If there is no state to lock, no login can
  /// save anyway.
  private func holdingState(
    of location: UserDirectory, on parent: borrowing Descriptor,
    _ body: () throws(StoreTrouble) -> Void
  ) throws(StoreTrouble) {
    let file: Descriptor
    let path = location.path / StoredFile.state
    do throws(Errno) {
      let directory = try Descriptor(location.name, sys_as_directory, in: parent.number)
      file = try Descriptor(StoredFile.state, sys_for_updating, in: directory.number)
    } catch {
      switch error.code {
      // There is nothing, or not a regular file.
      case sys_ENOENT, sys_ENOTDIR, sys_ELOOP, sys_EISDIR, sys_ENXIO: return try body()
      case _: throw path.trouble("open", error.code)
      }
    }
    guard file.facts.kind == sys_regular else { return try body() }
    let number = file.number
    try LockBytes.own.acquire(number, asKnown: true, timeout, path)
    defer { sys_unlock(number) }
    try body()
  }

  func isThere(_ location: UserDirectory, on parent: borrowing Descriptor) throws(StoreTrouble)
    -> Bool
  {
    try found(location.name, in: parent.number, location.path) != nil
  }

  func make(
    _ enrollment: Enrollment, _ state: LoginState, on parent: borrowing Descriptor,
    alone: Bool = false
  ) throws(StoreTrouble) -> Unfinished {
    let made = try Unfinished(alone: alone)
    try made.make(
      in: parent, users, enrollment: try text(enrollment), state: try pages(state))
    return made
  }

  /// Without a state.
  @inline(never)
  func make(_ text: Secret, on parent: borrowing Descriptor) throws(StoreTrouble)
    -> Unfinished
  {
    let made = try Unfinished(alone: true)
    try made.make(in: parent, users, enrollment: text, state: nil)
    return made
  }

  func text(_ enrollment: Enrollment) throws(StoreTrouble) -> Secret {
    guard let text = written(enrollment) else { throw .outOfMemory }
    return text
  }

  func pages(_ state: LoginState) throws(StoreTrouble) -> [UInt8] {
    do throws(StateRecord.Problem) {
      return try StateRecord.fresh(state)
    } catch {
      throw .state(path: users.text, error)
    }
  }

  /// Runs the last step with a new directory, which is wiped if that fails.
  func finishing(
    _ made: Unfinished, on parent: borrowing Descriptor, _ step: () throws(StoreTrouble) -> Void
  ) throws(StoreTrouble) {
    do throws(StoreTrouble) {
      try step()
    } catch {
      wipe(made.name, in: parent)
      throw error
    }
  }

  /// Gives a new directory its name and syncs that. Throws `exists` if the name is taken.
  func appear(_ made: Unfinished, as location: UserDirectory, on parent: borrowing Descriptor)
    throws(StoreTrouble)
  {
    try rename(made, to: location, on: parent)
    try check(sys_sync(parent.number), "fsync", location.parent)
  }

  func rename(_ made: Unfinished, to location: UserDirectory, on parent: borrowing Descriptor)
    throws(StoreTrouble)
  {
    // SAFETY: the C strings live for the calls.
    var result = unsafe sys_rename_new(parent.number, made.name.cString, location.name.cString)
    if result == -sys_EINVAL || result == -sys_ENOSYS {
      // Not supported here: a rename never replaces a directory with files in it.
      result = unsafe sys_rename(
        parent.number, made.name.cString, parent.number, location.name.cString)
    }
    if result == -sys_EEXIST || result == -sys_ENOTEMPTY { throw .exists(path: location.path.text) }
    try check(result, "rename", location.path)
  }

  /// Renames it to a name that belongs to no user, syncs that, and wipes it.
  func takeAway(_ location: UserDirectory, on parent: borrowing Descriptor) throws(StoreTrouble) {
    let gone = Leftover.named(Leftover.removed, hexadecimal(try Random.identifier()))
    // SAFETY: the C strings live for the call.
    let result = unsafe sys_rename(
      parent.number, location.name.cString, parent.number, gone.cString)
    try check(result, "rename", location.path)
    try check(sys_sync(parent.number), "fsync", location.parent)
    wipe(gone, in: parent)
  }
}
