internal import CSystem
package import OneTimePassword
package import SallyportCore

// Changes of enrollments that a login makes: somebody enrolls himself, or changes what he has.

extension Store {
  /// Enrolls a user who is not enrolled; the directory appears complete or not at all. Throws
  /// `exists` if the name is taken, perhaps by another login a moment before.
  package func create(_ enrollment: Enrollment, _ state: LoginState) throws(StoreTrouble) {
    try alone { parent throws(StoreTrouble) in
      let location = try location(of: enrollment.user)
      if try isThere(location, on: parent) { throw .exists(path: location.path.text) }
      let made = try Unfinished(alone: true)
      try made.make(
        in: parent, users, enrollment: try text(enrollment), state: try pages(state))
      try finishing(made, on: parent) { () throws(StoreTrouble) in
        try rename(made.name, to: location.name, in: parent, users)
        try check(sys_sync(parent.number), "fsync", users)
      }
    }
  }

  /// Makes the files of an enrollment, empty of anything, and removes them: what stands in the way
  /// of one is found before its secret is shown.
  package func rehearse() throws(StoreTrouble) {
    try alone { parent throws(StoreTrouble) in
      let size = StateRecord.fileSize + StateRecord.slotSize
      guard let zeros = Secret(count: size) else { throw .outOfMemory }
      wipe(try make(zeros, on: parent).name, in: parent)
    }
  }

  /// Replaces the loaded enrollment by another one with the same id, then saves the state that
  /// `change` makes of the present one. Returns `changed` if the enrollment is not the loaded one
  /// any more. Needs only the user's lock.
  ///
  /// If saving the state fails after the enrollment was written, the new enrollment stays: a state
  /// is reconciled with its enrollment whenever it is read.
  package func rewrite(
    _ record: Record, _ enrollment: Enrollment, _ change: (LoginState) -> LoginState
  ) throws(StoreTrouble) -> Transaction<Void> {
    try rewrite(record, try text(enrollment), change)
  }

  /// As above, with the text of the file.
  package func rewrite(
    _ record: Record, _ text: Secret, _ change: (LoginState) -> LoginState
  ) throws(StoreTrouble) -> Transaction<Void> {
    try alone { parent throws(StoreTrouble) in
      guard let locked = try lock(record, on: parent, asKnown: true) else { return .changed }
      try put(text, in: locked, parent)
      try locked.save(change(locked.current.state))
      return .committed(())
    }
  }

  /// As `rewrite`, for the login with this random, if it was the last one to claim a pass. The
  /// record is kept in the files of the last suspension that the new enrollment names.
  ///
  /// It is on disk before the new enrollment has its name, and before that no place is known any
  /// more. Files that no enrollment names, as a crash leaves them, are root's to remove.
  package func suspend(
    _ record: Record, for enrollment: Enrollment, claim: UInt64, at now: UnixTime
  ) throws(StoreTrouble) -> Transaction<Void> {
    let new = try text(enrollment)
    return try alone { parent throws(StoreTrouble) in
      guard let locked = try lock(record, on: parent, asKnown: true),
        let suspension = enrollment.suspended.last
      else { return .changed }
      var state = locked.current.state
      // A block that came since the login was accepted revokes the pass by the same lock.
      let account = Account(name: enrollment.user, uid: enrollment.uid)
      guard record.enrollment.isClaimed(by: claim, state, at: now),
        try !isBlocked(account, at: { () throws(StoreTrouble) in now })
      else { return .changed }
      state.forgetOrigins()
      try locked.save(state)
      let (directory, path) = (locked.directory.descriptor.number, record.location.path)
      try write(
        try text(record.enrollment), as: suspension.file(), in: locked.directory.descriptor, path)
      try write(
        locked.current.bytes, as: suspension.file(".state"), in: locked.directory.descriptor, path)
      try check(sys_sync(directory), "fsync", path)
      try put(new, in: locked, parent)
      return .committed(())
    }
  }

  /// Puts a new enrollment in its place.
  @inline(never)
  private func put(
    _ text: Secret, in locked: borrowing LockedRecord, _ parent: borrowing Descriptor
  ) throws(StoreTrouble) {
    let made = try make(text, on: parent)
    try finishing(made, on: parent) { () throws(StoreTrouble) in
      let source = try openDirectory(made.name, in: parent, users / made.name)
      try move(StoredFile.enrollment, from: source, to: locked.directory)
    }
    wipe(made.name, in: parent)
  }
}

extension Suspension {
  /// In the directory of the user, what was enrolled; with `.state`, its state.
  package func file(_ ending: StaticString = "") -> Path {
    Path(bytes(of: Suspension.prefix) + hexadecimal(id) + bytes(of: ending))
  }

  package static var prefix: StaticString { "suspended-" }
}

// MARK: steps

extension Store {
  /// Calls `body` with the users' directory open, but not locked.
  private func alone<Value>(_ body: (borrowing Descriptor) throws(StoreTrouble) -> Value)
    throws(StoreTrouble) -> Value
  {
    try checks.walk(to: root)
    return try CriticalSection.during { () throws(StoreTrouble) -> Value in
      try body(try openParent(users))
    }
  }

  private func isThere(_ location: UserDirectory, on parent: borrowing Descriptor)
    throws(StoreTrouble) -> Bool
  {
    try found(location.name, in: parent.number, location.path) != nil
  }

  /// Without a state.
  @inline(never)
  private func make(_ text: Secret, on parent: borrowing Descriptor) throws(StoreTrouble)
    -> Unfinished
  {
    let made = try Unfinished(alone: true)
    try made.make(in: parent, users, enrollment: text, state: nil)
    return made
  }

  /// The text of its file.
  package func text(_ enrollment: Enrollment) throws(StoreTrouble) -> Secret {
    guard let text = format.written(enrollment) else { throw .outOfMemory }
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
  private func finishing(
    _ made: Unfinished, on parent: borrowing Descriptor, _ step: () throws(StoreTrouble) -> Void
  ) throws(StoreTrouble) {
    do throws(StoreTrouble) {
      try step()
    } catch {
      wipe(made.name, in: parent)
      throw error
    }
  }

  /// Gives a new directory its name. Throws `exists` if the name is taken.
  func rename(_ made: Path, to name: Path, in parent: borrowing Descriptor, _ path: Path)
    throws(StoreTrouble)
  {
    // SAFETY: the C strings live for the calls.
    var result = unsafe sys_rename_new(parent.number, made.cString, name.cString)
    if result == -EINVAL || result == -ENOSYS {
      // Not supported here: a rename never replaces a directory with files in it.
      result = unsafe sys_rename(parent.number, made.cString, parent.number, name.cString)
    }
    if result == -EEXIST || result == -ENOTEMPTY {
      throw .exists(path: (path / name).text)
    }
    try check(result, "rename", path / name)
  }
}
