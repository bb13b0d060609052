internal import CSystem
internal import OneTimePassword
package import SallyportCore

extension Store {
  /// Decides and saves under the user's lock: calls `body` with the enrollment and the state that
  /// counts, and writes the state that it returns before this returns.
  ///
  /// `changed`, with nothing written, where the enrollment is not the loaded one any more. What
  /// `body` throws is rethrown, with nothing written. A failed save is an error whatever was
  /// decided. The ancestors are not walked again: since they were, only the right owner could
  /// change them.
  /// `asKnown`: from a known place, which strangers let go ahead.
  package func transact<Verdict>(
    _ record: Record, asKnown isKnown: Bool = true,
    _ body: (Enrollment, LoginState) throws(StoreTrouble) -> (Verdict, LoginState)
  ) throws(StoreTrouble) -> Transaction<Verdict> {
    let guarded = try CriticalSection()
    defer { guarded.putBack() }
    let parent = try openParent(record.location.parent)
    guard let locked = try lock(record, on: parent, asKnown: isKnown) else { return .changed }
    let (verdict, state) = try body(record.enrollment, locked.current.state)
    try locked.save(state)
    return .committed(verdict)
  }

  /// The record's files, its state locked; nil where they are not the loaded ones any more. Where a
  /// record after this state may have been lost, what it may have accepted counts as used: the save
  /// that follows makes both slots whole and would hide the loss.
  @inline(never)
  func lock(_ record: Record, on parent: borrowing Descriptor, asKnown isKnown: Bool)
    throws(StoreTrouble) -> LockedRecord?
  {
    let bytes = try lockBytes(of: record)
    for _ in 0..<Store.attempts {
      guard let directory = try OpenUserDirectory.open(record.location, on: parent, checks),
        directory.identity == record.directory
      else { return nil }
      guard let state = try LockedState(in: directory, self, bytes, asKnown: isKnown) else {
        let missing = record.location.path / StoredFile.state
        if try directory.isStill(on: parent) { throw .incomplete(path: missing.text) }
        continue
      }
      guard try directory.isStill(on: parent), try directory.holds(state.file) else { continue }
      guard try directory.enrollmentVersion() == record.version else { return nil }
      var current = try current(
        in: state.file, of: record.enrollment, known: record.current)
      // The decoy's slots are written by several at once, and nothing hangs on them: it has the
      // work of a whole record.
      if current.record?.mayLackTheLatest == true, !record.isDecoy {
        var state = current.state
        state.distrustLoss(of: record.enrollment, at: try Clock.now())
        current = CurrentState(bytes: current.bytes, state: state, record: current.record)
      }
      return LockedRecord(directory: directory, state: state, current: current)
    }
    throw .unsettled(path: record.path)
  }

  /// Of the decoy, a digest of the name under the decoy's own salt. Worked out for the enrolled as
  /// well: else the time would tell who is. One SHA-256 and not HMAC, at a quarter of the price:
  /// nobody sees the digest, so nobody can lengthen what it was made of.
  func lockBytes(of record: Record) throws(StoreTrouble) -> LockBytes {
    let name = record.location.decoyName ?? record.enrollment.user.bytes
    do throws(CryptoError) {
      let digest = try SHA256.digest((record.enrollment.backupCodes?.salt ?? []) + name)
      return record.isDecoy ? LockBytes(decoyDigest: digest) : .own
    } catch {
      throw .crypto(error)
    }
  }
}

/// A user's state file while no other login or command can change it.
struct LockedState: ~Copyable {
  let file: StoredFile

  /// nil where there is none, or no more.
  @inline(never) init?(
    in directory: borrowing OpenUserDirectory, _ store: Store, _ bytes: LockBytes,
    asKnown isKnown: Bool
  ) throws(StoreTrouble) {
    let updating = sys_for_updating
    guard let file = try StoredFile.open(StoredFile.state, updating, in: directory, store.checks)
    else { return nil }
    let number = file.descriptor.number
    try bytes.acquire(number, asKnown: isKnown, store.timeout, file.path)
    self.file = file
  }

  @inline(never) deinit { sys_unlock(file.descriptor.number) }
}

/// The directory of a record, its locked state file and the state in it.
struct LockedRecord: ~Copyable {
  let directory: OpenUserDirectory
  let state: LockedState
  let current: CurrentState

  /// Writes the slot that does not count; of the decoy, which others write too, the page that falls
  /// to this process.
  @inline(never)
  func save(_ next: LoginState) throws(StoreTrouble) {
    let page: [UInt8]
    do throws(StateRecord.Problem) {
      page = try StateRecord.next(next, after: current.record)
    } catch {
      throw .state(path: state.file.path.text, error)
    }
    let following = current.record?.nextOffset ?? 0
    let isDecoy = directory.location.isDecoy
    let offset = isDecoy ? Int(sys_process() & 1) * StateRecord.slotSize : following
    try state.file.save(page, at: offset)
  }
}
