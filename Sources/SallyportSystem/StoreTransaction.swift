internal import CSystem
package import SallyportCore

extension Store {
  /// Decides and saves under the user's lock: calls `body` with the enrollment and the state that
  /// counts, and writes the state that it returns before this returns.
  ///
  /// `changed`, with nothing written, where the enrollment is not the loaded one any more. What
  /// `body` throws is thrown on, with nothing written. A save that fails is trouble whatever was
  /// decided. The ancestors are not walked again: since they were, only the right owner could
  /// change them.
  package func transact<Verdict>(
    _ record: Record,
    _ body: (Enrollment, LoginState) throws(StoreTrouble) -> (Verdict, LoginState)
  ) throws(StoreTrouble) -> Transaction<Verdict> {
    try Guard.during { () throws(StoreTrouble) -> Transaction<Verdict> in
      let shelf = try openShelf(record.place.shelf)
      return try locked(record, on: shelf) { folder, file, current throws(StoreTrouble) in
        let (verdict, state) = try body(record.enrollment, current.state)
        try save(state, after: current, in: file, of: record)
        return verdict
      }
    }
  }

  /// Calls `body` with the record's folder, its locked state file and the state in it.
  func locked<Value>(
    _ record: Record, on shelf: borrowing Descriptor,
    _ body: (borrowing UserFolder, borrowing StoredFile, CurrentState) throws(StoreTrouble) -> Value
  ) throws(StoreTrouble) -> Transaction<Value> {
    for _ in 0..<Store.attempts {
      guard let folder = try UserFolder.open(record.place, on: shelf, checks),
        folder.identity == record.folder
      else { return .changed }
      if let done = try lockedOnce(record, on: shelf, folder, body) { return done }
    }
    throw .unsettled(path: record.path)
  }

  /// nil where the files were exchanged meanwhile.
  private func lockedOnce<Value>(
    _ record: Record, on shelf: borrowing Descriptor, _ folder: borrowing UserFolder,
    _ body: (borrowing UserFolder, borrowing StoredFile, CurrentState) throws(StoreTrouble) -> Value
  ) throws(StoreTrouble) -> Transaction<Value>? {
    let updating = sys_for_updating
    guard let file = try StoredFile.open(StoredFile.state, updating, in: folder, checks) else {
      if try folder.isStill(on: shelf) { throw .incomplete(path: record.path) }
      return nil
    }
    try lock(file)
    defer { if !record.isDecoy { sys_unlock(file.descriptor.number) } }
    guard try folder.isStill(on: shelf), try folder.holds(file)
    else { return nil }
    guard try folder.enrollmentVersion() == record.version else { return .changed }
    let current = try current(in: file, of: record.enrollment)
    return .committed(try body(folder, file, current))
  }

  /// The decoy has no lock: strangers could make each other wait for it.
  private func lock(_ file: borrowing StoredFile) throws(StoreTrouble) {
    if file.place.isDecoy { return }
    let descriptor = file.descriptor.number
    try patience.acquire("fcntl", file.path) { sys_lock(descriptor) }
  }

  /// Writes the slot that does not count; of the decoy, which has no lock, the page that falls to
  /// this process.
  func save(
    _ state: LoginState, after current: CurrentState, in file: borrowing StoredFile,
    of record: Record
  ) throws(StoreTrouble) {
    let page: [UInt8]
    do throws(StateRecord.Problem) {
      if let record = current.record {
        page = try StateRecord.next(state, after: record)
      } else {
        page = [UInt8](try StateRecord.fresh(state).prefix(StateRecord.slotSize))
      }
    } catch {
      throw .state(path: file.path.text, error)
    }
    let next = current.record?.nextOffset ?? 0
    let own = record.isDecoy ? Int(sys_process() & 1) * StateRecord.slotSize : next
    try file.save(page, at: own)
  }
}
