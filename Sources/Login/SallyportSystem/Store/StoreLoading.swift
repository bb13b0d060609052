internal import CSystem
internal import OneTimePassword
package import SallyportCore

extension Store {
  /// What is enrolled for the account; nil only where an existing, checked store has no directory
  /// of that name. Everything else throws, also a caller without the right to read.
  package func load(_ account: Account) throws(StoreTrouble) -> Record? {
    guard let record = try read(location(of: account.name)) else { return nil }
    var path: String { (record.location.path / StoredFile.enrollment).text }
    guard record.enrollment.user == account.name else {
      throw .otherUser(path: path, found: record.enrollment.user)
    }
    if let recorded = record.enrollment.uid, recorded != account.uid {
      throw .otherUID(path: path, recorded: recorded, found: account.uid)
    }
    return record
  }

  /// The enrollment of nobody, worked on for `name`, who is unknown or not enrolled. Throws
  /// `noStore` where it is missing.
  package func loadDecoy(for name: [UInt8]) throws(StoreTrouble) -> Record {
    let location = decoy(for: name)
    guard let record = try read(location) else { throw .noStore(path: location.path.text) }
    return record
  }

  /// Reads both files in a user's directory.
  ///
  /// Without a lock: a login may be saving, and a command may be exchanging and wiping. So an error
  /// counts only if the files were the same before and after it.
  func read(_ location: UserDirectory) throws(StoreTrouble) -> Record? {
    try checks.walk(to: root)
    return try read(location, on: try openParent(location.parent), format.read)
  }

  /// As above, on a parent that was opened before.
  func read(_ location: UserDirectory, on parent: borrowing Descriptor, _ reading: Reading)
    throws(StoreTrouble) -> Record?
  {
    var before: Snapshot?
    for _ in 0..<Store.readings {
      do throws(StoreTrouble) {
        guard let directory = try OpenUserDirectory.open(location, on: parent, checks) else {
          return nil
        }
        return try record(in: directory, reading)
      } catch {
        guard error.mayPass else { throw error }
        let now = Snapshot(of: location, on: parent)
        if before == now { throw settled(error, location, on: parent) }
        before = now
      }
    }
    throw .unsettled(path: location.path.text)
  }

  /// The directory of all users or the store itself, open and checked; what is above it must have
  /// been walked.
  @inline(never)
  func openParent(_ path: Path) throws(StoreTrouble) -> Descriptor {
    let parent: Descriptor
    do throws(Errno) {
      parent = try Descriptor(path, sys_as_directory)
    } catch {
      if error.code == ENOENT { throw .noStore(path: path.text) }
      throw directoryTrouble(error, path, in: AT_FDCWD, path)
    }
    if let flaw = checks.flaw(ofParent: parent.facts) { throw .unsafe(path: path.text, flaw) }
    return parent
  }

  private func record(in directory: borrowing OpenUserDirectory, _ reading: Reading)
    throws(StoreTrouble) -> Record
  {
    let how = sys_for_reading
    guard let file = try StoredFile.open(StoredFile.enrollment, how, in: directory, checks)
    else {
      throw .incomplete(path: (directory.location.path / StoredFile.enrollment).text)
    }
    guard let stateFile = try StoredFile.open(StoredFile.state, how, in: directory, checks)
    else {
      throw .incomplete(path: (directory.location.path / StoredFile.state).text)
    }
    let enrollment = try enrollment(in: file, reading)
    let current = try current(in: stateFile, of: enrollment, known: nil)
    return Record(
      enrollment: enrollment, current: current, location: directory.location,
      directory: directory.identity,
      version: Version(file.facts))
  }

  private func enrollment(in file: borrowing StoredFile, _ reading: Reading)
    throws(StoreTrouble) -> Enrollment
  {
    guard let text = try file.secret() else { throw .unsettled(path: file.path.text) }
    do throws(SettingsError) {
      return try reading(text)
    } catch {
      throw .malformed(path: file.path.text, error)
    }
  }

  /// The state that counts: `known` once more, where the file has the bytes that gave it. The
  /// decoy's is written by several at once: where its pages were torn by that, it starts afresh,
  /// because nothing hangs on it.
  func current(in file: borrowing StoredFile, of enrollment: Enrollment, known: CurrentState?)
    throws(StoreTrouble) -> CurrentState
  {
    guard file.facts.size == UInt64(StateRecord.fileSize) else {
      throw .state(path: file.path.text, .size)
    }
    let bytes = try file.bytes(StateRecord.fileSize)
    if let known, same(known.bytes, bytes) { return known }
    let current: StateRecord.Current
    do throws(StateRecord.Problem) {
      current = try StateRecord.read(bytes)
    } catch {
      if file.location.isDecoy, error == .bothSlotsBroken {
        return CurrentState(
          bytes: bytes, state: LoginState(initialFor: enrollment), record: nil)
      }
      throw .state(path: file.path.text, error)
    }
    guard current.state.enrollmentID == enrollment.id else {
      throw .foreignState(path: file.path.text)
    }
    return CurrentState(bytes: bytes, state: current.state, record: current)
  }

  /// The error that remains after the last try: a state of another enrollment is a half-way
  /// exchange where its marker stands.
  private func settled(
    _ trouble: StoreTrouble, _ location: UserDirectory, on parent: borrowing Descriptor
  )
    -> StoreTrouble
  {
    guard case .foreignState = trouble else { return trouble }
    do throws(Errno) {
      _ = try facts(at: Leftover.moving(location.name), in: parent.number)
      return .unsettled(path: location.path.text)
    } catch {
      return trouble
    }
  }
}

/// Which files a user's directory has at one moment.
private struct Snapshot: Equatable {
  private let directory: Version?
  private let enrollment: Version?
  private let state: Identity?

  init(of location: UserDirectory, on parent: borrowing Descriptor) {
    let parent = parent.number
    directory = Snapshot.facts(location.name, in: parent).map { Version($0) }
    enrollment = Snapshot.facts(location.name / StoredFile.enrollment, in: parent).map {
      Version($0)
    }
    state = Snapshot.facts(location.name / StoredFile.state, in: parent).map { Identity($0) }
  }

  private static func facts(_ path: Path, in directory: Int32) -> sys_facts? {
    do throws(Errno) {
      return try SallyportSystem.facts(at: path, in: directory)
    } catch {
      return nil
    }
  }
}

/// A state as it was read, with what a save needs to know of it (nil: start afresh).
final class CurrentState: Sendable {
  /// Of the whole file.
  let bytes: [UInt8]
  let state: LoginState
  let record: StateRecord.Current?

  init(bytes: [UInt8], state: LoginState, record: StateRecord.Current?) {
    (self.bytes, self.state, self.record) = (bytes, state, record)
  }
}

extension StoreTrouble {
  /// Whether a command that is exchanging or removing the files could look like this for a moment.
  fileprivate var mayPass: Bool {
    switch self {
    case .incomplete, .malformed, .state, .foreignState, .unsettled: true
    case .system, .noStore, .unsafe, .otherUser, .otherUID, .busy, .exists, .service, .crypto,
      .outOfMemory:
      false
    }
  }
}
