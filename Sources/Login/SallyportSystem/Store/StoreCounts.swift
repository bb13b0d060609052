internal import CSystem
internal import OneTimePassword
package import SallyportCore

// `reminders/NAME`, what is kept of a user who is not enrolled: the number of logins, for
// `enrollment = remind`, when an enrolling was last begun, and the uid of the user. Each user
// has a file, which a login changes in place while it holds that file's lock; nobody else waits for
// it.

extension Store {
  private var counts: UserDirectory { UserDirectory(parent: root, name: "reminders") }

  /// A line of the file: ten digits and a line feed, so that each number overwrites the one before.
  private enum CountLine: Int {
    case logins = 0
    case begun = 11
    case uid = 22

    static let length = 11
  }

  /// How many logins of an unenrolled user were counted; 0 also if the count cannot be read, as it
  /// only decides when to remind the user.
  package func loginsCounted(of account: Account) throws(StoreTrouble) -> UInt32 {
    UInt32(clamping: try counted(.logins, of: account))
  }

  /// When an enrolling of this user was last begun; nil if none was, or if that cannot be read.
  package func enrollingBegun(by account: Account) throws(StoreTrouble) -> UnixTime? {
    let seconds = try counted(.begun, of: account)
    return seconds > 0 ? UnixTime(Int64(clamping: seconds)) : nil
  }

  private func counted(_ line: CountLine, of account: Account) throws(StoreTrouble) -> UInt64 {
    try checks.walk(to: root)
    let file = try location(of: account.name).name
    guard let directory = try OpenUserDirectory.open(counts, on: try openParent(root), checks),
      let stored = try StoredFile.open(file, sys_for_reading, in: directory, checks),
      try isOf(account, stored)
    else { return 0 }
    return try number(line, in: stored)
  }

  /// Counts a login of an unenrolled user. Returns the new number.
  package func countLogin(of account: Account) throws(StoreTrouble) -> UInt32 {
    UInt32(clamping: try count(.logins, of: account, nil))
  }

  /// Keeps that an enrolling of this user was begun; nil to forget that.
  package func noteEnrolling(of account: Account, begun time: UnixTime?) throws(StoreTrouble) {
    _ = try count(.begun, of: account, UInt64(clamping: time?.seconds ?? 0))
  }

  /// `value`: nil for one more than before.
  @inline(never)
  private func count(_ line: CountLine, of account: Account, _ value: UInt64?)
    throws(StoreTrouble) -> UInt64
  {
    try checks.walk(to: root)
    let file = try location(of: account.name).name
    return try CriticalSection.during { () throws(StoreTrouble) -> UInt64 in
      try makeDirectory(counts.path)
      guard let directory = try OpenUserDirectory.open(counts, on: try openParent(root), checks)
      else {
        throw .noStore(path: counts.path.text)
      }
      let stored = try countFile(file, in: directory)
      let descriptor = stored.descriptor.number
      try LockBytes.own.acquire(descriptor, asKnown: true, timeout, stored.path)
      defer { sys_unlock(descriptor) }
      if try !isOf(account, stored) {
        let nothing = text(of: 0)
        try stored.save(nothing + nothing + text(of: uid(of: account)), at: 0)
      }
      let before = try number(line, in: stored)
      let now = value ?? (min(before, UInt64(UInt32.max) - 1) + 1)
      try stored.save(text(of: now), at: line.rawValue)
      return now
    }
  }

  /// Whether it was counted for this account, and not for one before it with the same name.
  private func isOf(_ account: Account, _ file: borrowing StoredFile) throws(StoreTrouble) -> Bool {
    try number(.uid, in: file) == uid(of: account)
  }

  /// One more than the uid: 0 is what a file of before has there.
  private func uid(of account: Account) -> UInt64 { UInt64(account.uid ?? UInt32.max) + 1 }

  private func text(of number: UInt64) -> [UInt8] {
    // With a digit in front there are zeros too; a line feed takes its place, behind the others.
    var text = decimalText(10_000_000_000 + min(number, 9_999_999_999))
    for index in 1..<text.count { text[index - 1] = text[index] }
    text[text.count - 1] = UInt8(ascii: "\n")
    return text
  }

  /// 0 for anything else.
  private func number(_ line: CountLine, in file: borrowing StoredFile) throws(StoreTrouble)
    -> UInt64
  {
    let bytes = try file.bytes(line.rawValue + CountLine.length)
    let start = line.rawValue
    guard bytes.count == start + CountLine.length, bytes.last == UInt8(ascii: "\n") else {
      return 0
    }
    return decimal([UInt8](bytes[start..<(start + 10)])) ?? 0
  }

  private func countFile(_ name: Path, in directory: borrowing OpenUserDirectory)
    throws(StoreTrouble)
    -> StoredFile
  {
    for _ in 0..<Store.attempts {
      if let file = try StoredFile.open(name, sys_for_updating, in: directory, checks) {
        return file
      }
      do throws(StoreTrouble) {
        _ = try newFile(name, in: directory.descriptor, directory.location.path / name)
      } catch {
        // Another login of the same user has just created it.
        if case .system(_, _, EEXIST) = error { continue }
        throw error
      }
    }
    throw .unsettled(path: (directory.location.path / name).text)
  }
}
