internal import CSystem
internal import OneTimePassword
package import SallyportCore

extension Store {
  /// Makes what is missing of the store: its directories (0700) and the decoy, each appearing
  /// whole; ends what a crash left half-way and wipes what it left over. Every verb that changes
  /// calls this first. The directory above the store must exist.
  package func prepare() throws(StoreTrouble) {
    try makeDirectory(root)
    try makeDirectory(users)
    try changing { parent throws(StoreTrouble) in
      let store = try openParent(root)
      try completeMoves(try entries(of: parent.number, users), on: parent)
      try wipeLeftovers(in: parent, users)
      try wipeLeftovers(in: store, root)
      try prepareDecoy(on: store)
    }
  }

  func makeDirectory(_ path: Path) throws(StoreTrouble) {
    let end = path.bytes.lastIndex(of: UInt8(ascii: "/")) ?? 0
    let above = end == 0 ? "/" : Path([UInt8](path.bytes[..<end]))
    try checks.walk(to: above)
    // SAFETY: the C string lives for the call.
    let result = unsafe sys_make_directory(sys_here, path.cString)
    if result == -sys_EEXIST { return }
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

  private func wipeLeftovers(in parent: borrowing Descriptor, _ path: Path)
    throws(StoreTrouble)
  {
    for name in try entries(of: parent.number, path) {
      let isLeftover =
        rest(of: name, after: Leftover.unfinished) != nil
        || rest(of: name, after: Leftover.removed) != nil
      let isAlone = rest(of: name, after: Leftover.unfinishedAlone) != nil
      if isAlone, try !isAbandoned(Path(name), in: parent) { continue }
      if isLeftover || isAlone { wipe(Path(name), in: parent) }
    }
  }

  /// Whether nobody works any more on what was being made without the lock of all commands: it is
  /// so old that its maker is past the moment in which it was not locked yet, and it can be
  /// locked. In this order: in that moment a lock of ours would make him fail.
  private func isAbandoned(_ name: Path, in parent: borrowing Descriptor) throws(StoreTrouble)
    -> Bool
  {
    let oldest = try Clock.now().seconds - 600
    do throws(Errno) {
      let directory = try Descriptor(name, sys_as_directory, in: parent.number)
      return directory.facts.modified < oldest && sys_lock_directory(directory.number) == 0
    } catch {
      return error.code == sys_ENOTDIR || error.code == sys_ELOOP
    }
  }

  /// A decoy that cannot be read is created again: nothing depends on it.
  private func prepareDecoy(on store: borrowing Descriptor) throws(StoreTrouble) {
    do throws(StoreTrouble) {
      _ = try loadDecoy(for: [])
      return
    } catch {
      switch error {
      case .noStore: break
      case .incomplete, .malformed, .state, .foreignState, .unsettled:
        try takeAway(decoy, on: store)
      case .system, .unsafe, .otherUser, .otherUID, .busy, .exists, .service, .crypto,
        .outOfMemory:
        throw error
      }
    }
    let enrollment = try freshDecoy()
    let made = try Unfinished()
    try made.make(
      in: store, root, enrollment: try text(enrollment),
      state: try pages(LoginState(initialFor: enrollment)))
    try appear(made, as: decoy, on: store)
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

  static func makeDecoyCodes() throws(StoreTrouble) -> BackupCodeSet {
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
