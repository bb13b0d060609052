internal import CSystem
internal import OneTimePassword
package import SallyportCore

// `reminders/NAME`: the number of logins without an enrollment, for `enrollment = remind`. Each
// user has a file, which a login changes in place while it holds that file's lock; nobody else
// waits for it.

extension Store {
  private var counts: UserDirectory { UserDirectory(parent: root, name: "reminders") }

  /// How many logins of an unenrolled user were counted; 0 also if the count cannot be read, as it
  /// only decides when to remind the user.
  package func loginsCounted(of name: UserName) throws(StoreTrouble) -> UInt32 {
    try checks.walk(to: root)
    let file = try location(of: name).name
    guard let directory = try OpenUserDirectory.open(counts, on: try openParent(root), checks),
      let stored = try StoredFile.open(file, sys_for_reading, in: directory, checks)
    else { return 0 }
    return try count(in: stored)
  }

  /// Counts a login of an unenrolled user. Returns the new number.
  package func countLogin(of name: UserName) throws(StoreTrouble) -> UInt32 {
    try checks.walk(to: root)
    let file = try location(of: name).name
    return try CriticalSection.during { () throws(StoreTrouble) -> UInt32 in
      try makeDirectory(counts.path)
      guard let directory = try OpenUserDirectory.open(counts, on: try openParent(root), checks)
      else {
        throw .noStore(path: counts.path.text)
      }
      let stored = try countFile(file, in: directory)
      let number = stored.descriptor.number
      try LockBytes.own.acquire(number, asKnown: true, timeout, stored.path)
      defer { sys_unlock(number) }
      let before = try count(in: stored)
      let now = before < UInt32.max ? before + 1 : before
      try stored.save(text(of: now), at: 0)
      return now
    }
  }

  /// Ten digits and a line feed, so that each count overwrites the one before.
  private func text(of count: UInt32) -> [UInt8] {
    let digits = decimalText(UInt64(count))
    return [UInt8](repeating: UInt8(ascii: "0"), count: 10 - min(digits.count, 10)) + digits
      + [UInt8(ascii: "\n")]
  }

  private func count(in file: borrowing StoredFile) throws(StoreTrouble) -> UInt32 {
    let bytes = try file.bytes(11)
    guard bytes.last == UInt8(ascii: "\n"), let count = decimal([UInt8](bytes.dropLast())) else {
      return 0
    }
    return UInt32(clamping: count)
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
        if case .system(_, _, sys_EEXIST) = error { continue }
        throw error
      }
    }
    throw .unsettled(path: (directory.location.path / name).text)
  }
}
