import CSystem
import Glibc
import OneTimePassword
package import SallyportCore
package import SallyportSystem

// The file of acts: docs/enrollment-format.md. No login and no change depends on it.

/// The lines of acts of one month, as they are stored.
package struct StoredActs: Sendable {
  /// The name of the file, `2026-11`.
  package let month: String
  /// Whole lines, without their ends.
  package let lines: [[UInt8]]
  /// What follows the last line's end: a writer was cut short, or writes at this moment.
  package let isCutShort: Bool
  /// Whether older lines were not read.
  package let isTooLong: Bool
}

extension Store {
  static var acts: Path { "acts" }
  /// The number of months whose files are kept.
  package static let monthsOfActs = 24
  /// Of a longer file, its last bytes are read.
  package static let longestActs = 16 << 20
  /// A file that has grown to this takes no more lines.
  private static let fullActs: UInt64 = 256 << 20

  /// Appends lines to the file of a month, in one write; on disk before it returns. `month`: as
  /// `2026-11`. Takes no lock. If this throws, a part of the lines may be there.
  package func append(acts lines: [String], month: String) throws(StoreTrouble) {
    let text = lines.map { "\($0)\n" }.joined()
    let file = try openActs(month)
    defer { sys_close(file.number) }
    let (path, facts) = (file.path, file.facts)
    if let flaw = Store.flaw(ofActs: facts) { throw .unsafe(path: path.text, flaw) }
    let limit = min(sys_file_size_limit(), Store.fullActs)
    // Beyond its limit the kernel would end this process.
    guard limit == 0 || facts.size + UInt64(text.utf8.count) + 1 <= limit else {
      throw .system("write", path: path.text, errno: EFBIG)
    }
    // What was cut short gets its end. Where the other one still writes, an empty line comes after.
    let bytes =
      Array(((try endsWell(file.number, facts, path)) ? "" : "\n").utf8) + Array(text.utf8)
    // SAFETY: the buffer lives for the calls.
    var done = unsafe write(file.number, bytes, bytes.count)
    while done < 0, errno == EINTR { done = unsafe write(file.number, bytes, bytes.count) }
    if done < 0 { throw .system("write", path: path.text, errno: errno) }
    if done < bytes.count { throw .system("write", path: path.text, errno: ENOSPC) }
    try check(sys_sync(file.number), "fsync", path)
  }

  private func openActs(_ month: String) throws(StoreTrouble)
    -> (number: Int32, facts: sys_facts, path: Path)
  {
    let name = Path(Array(month.utf8))
    let folder = try actsFolder()
    let path = folder.path / name
    // SAFETY: the C string lives for the call.
    let number = unsafe sys_open(folder.number, name.cString, O_RDWR | O_APPEND | O_CREAT)
    try check(number, "open", path)
    var facts = sys_facts()
    // SAFETY: filled within the call.
    let result = unsafe sys_facts_of(number, &facts)
    if result < 0 || facts.size > 0 { return (number, facts, path) }
    do throws(StoreTrouble) {
      try folder.sync()
      try folder.dropOldActs(besides: name)
    } catch {
      sys_close(number)
      throw error
    }
    return (number, facts, path)
  }

  private func actsFolder() throws(StoreTrouble) -> StoreFolder {
    if let folder = try folder(Store.acts) { return folder }
    try makeDirectory(root / Store.acts)
    guard let folder = try folder(Store.acts) else { throw .noStore(path: root.text) }
    return folder
  }

  private func endsWell(_ file: Int32, _ facts: sys_facts, _ path: Path) throws(StoreTrouble)
    -> Bool
  {
    guard facts.size > 0 else { return true }
    var last: UInt8 = 0
    // SAFETY: one byte, filled within the call.
    let got = unsafe sys_read(file, &last, 1, facts.size - 1)
    if got < 0 { throw .system("read", path: path.text, errno: Int32(clamping: 0 - got)) }
    return got == 1 && last == 0x0a
  }

  private static func flaw(ofActs file: sys_facts) -> StoreTrouble.Flaw? {
    if file.kind != sys_regular { return .notRegular }
    if file.owner != 0, file.owner != geteuid() { return .owner(file.owner, wanted: 0) }
    if file.mode & 0o077 != 0 { return .mode(file.mode) }
    return file.links == 1 ? nil : .links(file.links)
  }

  // MARK: reading

  /// The months that have a file, in order; of none where there is no such directory.
  package func monthsOfActs() throws(StoreTrouble) -> [String] {
    guard let folder = try folder(Store.acts) else { return [] }
    return try folder.monthsOfActs()
  }

  /// The lines of a month; nil if it has no file.
  package func acts(of month: String) throws(StoreTrouble) -> StoredActs? {
    guard let folder = try folder(Store.acts) else { return nil }
    let name = Path(Array(month.utf8))
    let path = folder.path / name
    // SAFETY: the C string lives for the call.
    let number = unsafe sys_open(folder.number, name.cString, O_RDONLY)
    if number == -ENOENT { return nil }
    try check(number, "open", path)
    defer { sys_close(number) }
    var facts = sys_facts()
    // SAFETY: filled within the call.
    try check(unsafe sys_facts_of(number, &facts), "fstat", path)
    if let flaw = Store.flaw(ofActs: facts) { throw .unsafe(path: path.text, flaw) }
    let start = facts.size - min(facts.size, UInt64(Store.longestActs))
    let bytes = try Store.bytes(number, from: start, to: facts.size, path)
    var lines = bytes.split(separator: 0x0a, omittingEmptySubsequences: false)
    let rest = lines.popLast() ?? []
    // The beginning of the first one is not there.
    if start > 0, !lines.isEmpty { lines.removeFirst() }
    return StoredActs(
      month: month, lines: lines.filter { !$0.isEmpty }.map(Array.init), isCutShort: !rest.isEmpty,
      isTooLong: start > 0)
  }

  /// How many lines a month takes of what one person changes himself in sessions, so that nobody
  /// fills the file with codes of his own.
  package static let mostOwnActs = 400

  /// Whether the month, as far as it is read, has no room for more of them.
  package func hasEnoughOwnActs(of user: UserName, month: String) throws(StoreTrouble) -> Bool {
    guard let found = try acts(of: month) else { return false }
    let name = Act.field(user.bytes)
    let wanted = ["by=\(name)", "for=\(name)", "via=session"].map { Array($0.utf8) }
    let count = found.lines.count { line in
      let words = line.split(separator: 0x20)
      return wanted.allSatisfy { word in words.contains { $0.elementsEqual(word) } }
    }
    return count >= Store.mostOwnActs
  }

  private static func bytes(_ file: Int32, from start: UInt64, to end: UInt64, _ path: Path)
    throws(StoreTrouble) -> [UInt8]
  {
    var bytes: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 65536)
    while start + UInt64(bytes.count) < end {
      let wanted = min(part.count, Int(end - start) - bytes.count)
      // SAFETY: at most as many bytes as the buffer has.
      let got = unsafe sys_read(file, &part, wanted, start + UInt64(bytes.count))
      if got < 0 { throw .system("read", path: path.text, errno: Int32(clamping: 0 - got)) }
      if got == 0 { break }
      bytes += part.prefix(Int(got))
    }
    return bytes
  }

  /// Removes them all, for an image from which machines are made.
  func leaveActs() throws(StoreTrouble) {
    let top = try topFolder()
    if try top.has(Store.acts) { try top.takeAway(Store.acts) }
  }
}

extension StoreFolder {
  fileprivate func monthsOfActs() throws(StoreTrouble) -> [String] {
    try names().map { String(decoding: $0.bytes, as: UTF8.self) }.filter(isMonth).sorted()
  }

  /// By their number and not by their age: a clock that was wrong for a day removes one at most.
  fileprivate func dropOldActs(besides name: Path) throws(StoreTrouble) {
    let own = String(decoding: name.bytes, as: UTF8.self)
    let others = try monthsOfActs().filter { $0 != own }
    for month in others.dropLast(Store.monthsOfActs - 1) { try remove(Path(Array(month.utf8))) }
  }
}

/// Whether it is like `2026-11`.
private func isMonth(_ name: String) -> Bool {
  let bytes = Array(name.utf8)
  return bytes.count == 7 && UnixTime(date: bytes + Array("-01".utf8)) != nil
}
