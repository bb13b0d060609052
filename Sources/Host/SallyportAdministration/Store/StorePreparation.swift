import CSystem
import OneTimePassword
package import SallyportCore
package import SallyportSystem

extension Store {
  /// Makes what is missing of the store: its directories (0700) and the decoy, each appearing
  /// whole; ends what a crash left half-way and wipes what it left over. Every verb that changes
  /// calls this first. The directory above the store must exist.
  package func prepare() throws(StoreTrouble) {
    try prepare { () throws(StoreTrouble) in
      let decoy = try Store.makeDecoy()
      return (try text(decoy), LoginState(initialFor: decoy))
    }
  }

  /// As above. `decoy`: one whose secrets nobody has seen, in the text of this store's files.
  func prepare(_ decoy: () throws(StoreTrouble) -> (Secret, LoginState)) throws(StoreTrouble) {
    try makeDirectory(root)
    try makeDirectory(users)
    try changing { users throws(StoreTrouble) in
      let top = try topFolder()
      try completeMoves(in: users)
      try wipeLeftovers(in: users)
      try wipeLeftovers(in: top)
      try prepareDecoy(decoy, in: top)
    }
  }

  private func wipeLeftovers(in folder: borrowing StoreFolder) throws(StoreTrouble) {
    for name in try folder.names() {
      let isLeftover =
        rest(of: name.bytes, after: Leftover.unfinished) != nil
        || rest(of: name.bytes, after: Leftover.removed) != nil
      let isAlone = rest(of: name.bytes, after: Leftover.unfinishedAlone) != nil
      if isAlone, try !isAbandoned(name, in: folder) { continue }
      if isLeftover || isAlone { folder.wipe(name) }
    }
  }

  /// Whether nobody works any more on what was being made without the lock of all commands: it is
  /// so old that its maker is past the moment in which it was not locked yet, and it can be
  /// locked. In this order: in that moment a lock of ours would make him fail.
  private func isAbandoned(_ name: Path, in folder: borrowing StoreFolder) throws(StoreTrouble)
    -> Bool
  {
    let oldest = try Clock.now().seconds - 600
    // SAFETY: the C string lives for the call.
    let directory = unsafe sys_open(folder.number, name.cString, sys_as_directory)
    guard directory >= 0 else { return directory == -ENOTDIR || directory == -ELOOP }
    defer { sys_close(directory) }
    var facts = sys_facts()
    // SAFETY: filled within the call.
    guard unsafe sys_facts_of(directory, &facts) == 0 else { return false }
    return facts.modified < oldest && sys_lock_directory(directory) == 0
  }

  /// A decoy that cannot be read is created again: nothing depends on it.
  private func prepareDecoy(
    _ fresh: () throws(StoreTrouble) -> (Secret, LoginState), in top: borrowing StoreFolder
  ) throws(StoreTrouble) {
    do throws(StoreTrouble) {
      _ = try loadDecoy(for: [])
      return
    } catch {
      switch error {
      case .noStore: break
      case .incomplete, .malformed, .state, .foreignState, .unsettled:
        try top.takeAway("decoy")
      case .system, .unsafe, .otherUser, .otherUID, .busy, .exists, .service, .crypto,
        .outOfMemory:
        throw error
      }
    }
    let (text, state) = try fresh()
    let made = try top.make(text, state)
    try top.rename(made, to: "decoy")
    try top.sync()
  }

  /// An authenticator and backup codes like everybody's, whose secrets nobody has seen.
  package static func makeDecoy() throws(StoreTrouble) -> Enrollment {
    let name = bytes(of: "decoy")
    guard let user = UserName(name), let label = Label(name) else { throw .outOfMemory }
    let now = try Clock.now()
    let parameters = CodeParameters.standard
    let authenticator = Authenticator(
      id: try Random.identifier(), name: label, parameters: parameters,
      secret: try Random.secret(count: parameters.algorithm.secretLength),
      initialLastAccepted: nil, created: now)
    return Enrollment(
      id: try Random.identifier(), user: user, uid: nil, created: now,
      authenticators: [authenticator], backupCodes: try makeDecoyCodes())
  }

  private static func makeDecoyCodes() throws(StoreTrouble) -> BackupCodeSet {
    var digests: [[UInt8]] = []
    for _ in 0..<BackupCodeSet.usualCodes { digests.append(try randomBytes(32)) }
    return BackupCodeSet(
      id: try Random.identifier(), salt: try randomBytes(BackupCodeSet.saltLength),
      digests: digests)
  }

  static func randomBytes(_ count: Int) throws(StoreTrouble) -> [UInt8] {
    let secret = try Random.secret(count: count)
    return (0..<count).map { secret[$0] }
  }
}
