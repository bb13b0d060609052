import CSystem
import OneTimePassword
package import SallyportCore
package import SallyportSystem

// The reserve of a host of a fleet: an ordinary store, whose entries have backup codes alone.
// Beside the store's own directories it has `pending`, with an empty file for each entry of which a
// code was used while no verifier could be asked, `confirmed`, which says when the fleet confirmed
// it, `start` and `mark` (docs/enrollment-format.md).

extension Store {
  /// Where the reserve of a host is.
  package static let usualReserve = "/var/lib/sallyport/reserve"

  // MARK: its entries

  /// The reserve of a host of a fleet. No enrollment has a place in it, only entries have.
  package convenience init(reserve root: String, owner: Owner = .root) {
    self.init(
      root: root, owner: owner,
      Format(
        read: { text throws(SettingsError) in try ReserveEntry.read(text).enrollment },
        written: { _ in nil }))
  }

  /// Puts it in the place of whatever there is of this person.
  package func replace(_ entry: ReserveEntry, _ state: LoginState) throws(StoreTrouble) {
    try replace(try text(entry), of: entry.enrollment.user, state)
  }

  /// As `rewrite` of an enrollment.
  package func rewrite(
    _ record: Record, _ entry: ReserveEntry, _ change: (LoginState) -> LoginState
  ) throws(StoreTrouble) -> Transaction<Void> {
    try rewrite(record, try text(entry), change)
  }

  private func text(_ entry: ReserveEntry) throws(StoreTrouble) -> Secret {
    guard let text = entry.written() else { throw .outOfMemory }
    return text
  }

  /// An entry and its state, as they are in this directory; nil if it is gone.
  package func entry(stored name: StoredName) throws(StoreTrouble) -> (ReserveEntry, Record)? {
    var entry: ReserveEntry?
    let record = try load(stored: name) { text throws(SettingsError) in
      let read = try ReserveEntry.read(text)
      entry = read
      return read.enrollment
    }
    guard let record, let entry else { return nil }
    return (entry, record)
  }

  /// As `prepare`, where the directory above may be missing too.
  package func prepareWithParent() throws(StoreTrouble) {
    try makeDirectory(root.above)
    try prepare { () throws(StoreTrouble) in
      let decoy = try Store.makeDecoy()
      let entry = ReserveEntry(
        Enrollment(
          id: decoy.id, user: decoy.user, uid: nil, created: decoy.created, authenticators: [],
          backupCodes: decoy.backupCodes),
        receipt: try Store.randomBytes(ReserveEntry.receiptLength))
      return (try text(entry), LoginState(initialFor: entry.enrollment))
    }
  }

  // MARK: what has to go up

  private static var pending: Path { "pending" }

  /// On disk before it returns.
  package func markPending(_ name: UserName) throws(StoreTrouble) {
    let file = try fileName(of: name)
    try CriticalSection.during { () throws(StoreTrouble) in
      try makeDirectory(root / Store.pending)
      guard let pending = try folder(Store.pending) else {
        throw .noStore(path: (root / Store.pending).text)
      }
      try pending.makeEmpty(file)
      try pending.sync()
    }
  }

  /// Nothing has to go up of it any more; what a power cut brings back goes up once more.
  package func unmarkPending(_ name: StoredName) throws(StoreTrouble) {
    guard let pending = try folder(Store.pending) else { return }
    try pending.remove(name.path)
  }

  /// The entries that are marked.
  package func pendingNames() throws(StoreTrouble) -> [StoredName] {
    guard let pending = try folder(Store.pending) else { return [] }
    return try pending.names().map(\.bytes).sorted { $0.lexicographicallyPrecedes($1) }
      .map { StoredName(directory: $0) }
  }

  // MARK: when it was confirmed

  private static var confirmed: Path { "confirmed" }

  /// The text of `confirmed`; nil if there is none.
  package func confirmation() throws(StoreTrouble) -> [UInt8]? {
    try topFolder().text(of: Store.confirmed).map { $0.bytes(in: 0..<$0.count) }
  }

  /// Writes it: on disk, as a whole, before it returns.
  package func confirm(_ text: [UInt8]) throws(StoreTrouble) { try put(text, as: Store.confirmed) }

  private func put(_ text: [UInt8], as name: Path) throws(StoreTrouble) {
    guard let text = Secret(text) else { throw .outOfMemory }
    try CriticalSection.during { () throws(StoreTrouble) in
      let top = try topFolder()
      try top.put(text, as: name, in: top)
    }
  }

  // MARK: the start of its service

  private static var start: Path { "start" }
  private static let startHead = "# Kept by sallyportd(8).\nversion = 1\nnumber = "

  /// The highest number that was used; nil where there is none that can be read.
  package func startNumber() throws(StoreTrouble) -> UInt64? {
    guard let text = try topFolder().text(of: Store.start) else { return nil }
    let bytes = text.bytes(in: 0..<text.count)
    guard bytes.starts(with: Store.startHead.utf8), bytes.last == 10 else { return nil }
    let digits = bytes.dropFirst(Store.startHead.utf8.count).dropLast()
    return UInt64(String(decoding: digits, as: UTF8.self))
  }

  /// Writes it: on disk, as a whole, before it returns.
  package func note(startNumber number: UInt64) throws(StoreTrouble) {
    try put(Array("\(Store.startHead)\(number)\n".utf8), as: Store.start)
  }

  // MARK: how far the fleet's database was

  private static var mark: Path { "mark" }

  /// As a verifier gave it; nil where there is none.
  package func fleetMark() throws(StoreTrouble) -> [UInt8]? {
    try topFolder().text(of: Store.mark).map { $0.bytes(in: 0..<$0.count) }
  }

  /// Writes it: on disk, as a whole, before it returns.
  package func keep(fleetMark mark: [UInt8]) throws(StoreTrouble) { try put(mark, as: Store.mark) }

  // MARK: its end

  /// Removes and wipes all of it, itself included; nothing is done where there is none. What a
  /// crash leaves, the next call removes.
  package func dismantle() throws(StoreTrouble) {
    do throws(StoreTrouble) {
      _ = try userFolder()
    } catch {
      guard case .noStore = error else { throw error }
      return try removeDirectory(root)
    }
    try changing { users throws(StoreTrouble) in
      for name in try users.names() { users.wipe(name) }
      let top = try topFolder()
      for name in try top.names() where !same("users", name.bytes) { top.wipe(name) }
    }
    try removeDirectory(users)
    try removeDirectory(root)
  }

  private func removeDirectory(_ path: Path) throws(StoreTrouble) {
    // SAFETY: the C string lives for the call.
    let result = unsafe sys_remove_directory(AT_FDCWD, path.cString)
    if result != -ENOENT { try check(result, "rmdir", path) }
  }
}
