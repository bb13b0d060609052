internal import CSystem
internal import OneTimePassword
package import SallyportCore

extension Store {
  /// Decides and saves under the user's lock: calls `body` with the enrollment and the state in
  /// effect, and writes the state that `body` returns before it returns itself.
  ///
  /// Returns `changed`, and writes nothing, if the enrollment is not the loaded one any more. If
  /// `body` throws, nothing is written. A failed save is an error, whatever was decided. The
  /// directories above are not checked again: since the last check only the right owner could
  /// change them. `asKnown`: from a known place, which others let go first.
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

  /// The files of the record with the state locked; nil if they are not the loaded ones any more.
  /// If a later state may have been lost, everything that it may have accepted counts as used,
  /// since the next save makes both slots valid and so hides the loss.
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
      // The decoy's slots are written by several processes at once, and nothing depends on them. It
      // takes the time of a complete record.
      if current.record?.mayLackTheLatest == true, !record.isDecoy {
        var state = current.state
        state.distrustLoss(of: record.enrollment, at: try Clock.now())
        current = CurrentState(bytes: current.bytes, state: state, record: current.record)
      }
      return LockedRecord(directory: directory, state: state, current: current)
    }
    throw .unsettled(path: record.path)
  }

  /// For the decoy, a digest of the name with the decoy's own salt. It is computed for enrolled
  /// users as well, or the time would show who is enrolled. SHA-256 instead of HMAC takes a quarter
  /// of the time: nobody sees the digest, so length extension does not matter.
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

/// A user's state file, locked against all other logins and commands.
struct LockedState: ~Copyable {
  let file: StoredFile

  /// Returns nil if there is no such file any more.
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

  /// Writes the older slot; for the decoy, which other processes write too, the page of this
  /// process.
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
    let offset = isDecoy ? Int(getpid() & 1) * StateRecord.slotSize : following
    try state.file.save(page, at: offset)
  }
}
