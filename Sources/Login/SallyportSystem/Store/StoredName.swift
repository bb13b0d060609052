internal import CSystem
internal import OneTimePassword
package import SallyportCore

/// The name of a user's directory.
package struct StoredName: Sendable {
  /// Its file name, which is printable ASCII if the store created it.
  package let directory: String
  /// The login name in it; nil for a long name, which is hashed, and for a name that is not the
  /// store's.
  package let user: UserName?

  /// The name of a directory in `users` or of a file in `unenrolled`.
  package init(directory bytes: [UInt8]) {
    directory = String(decoding: bytes, as: UTF8.self)
    user = StoredName.user(bytes)
  }

  /// Only the one spelling that the store itself uses.
  private static func user(_ directory: [UInt8]) -> UserName? {
    var name: [UInt8] = []
    var rest = directory[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        name.append(byte)
        continue
      }
      guard let value = bytes(fromHexadecimal: [UInt8](rest.prefix(2)))?.first else { return nil }
      name.append(value)
      rest = rest.dropFirst(2)
    }
    guard let user = UserName(name), user.fileName == directory else { return nil }
    return user
  }
}

extension Store {
  /// The directories of all users, sorted by their bytes.
  package func enrolledNames() throws(StoreTrouble) -> [StoredName] {
    try checks.walk(to: root)
    let parent = try openParent(users)
    return try entries(of: parent.number, users).filter { $0.first != UInt8(ascii: ".") }
      .sorted { $0.lexicographicallyPrecedes($1) }.map { StoredName(directory: $0) }
  }

  /// The enrollment in a directory, without a look at the account; nil if it is gone. Throws
  /// `otherUser` if the name inside belongs to another directory.
  package func load(stored name: StoredName) throws(StoreTrouble) -> Record? {
    try checks.walk(to: root)
    return try load(stored: name, on: try openParent(users))
  }

  /// The same for many, one after the other; the directories above are checked once.
  package func load(
    all names: [StoredName], _ take: (StoredName, Result<Record?, StoreTrouble>) -> Void
  ) throws(StoreTrouble) {
    try checks.walk(to: root)
    let parent = try openParent(users)
    for name in names {
      do throws(StoreTrouble) {
        take(name, .success(try load(stored: name, on: parent)))
      } catch {
        take(name, .failure(error))
      }
    }
  }

  private func load(stored name: StoredName, on parent: borrowing Descriptor)
    throws(StoreTrouble) -> Record?
  {
    let location = UserDirectory(parent: users, name: Path(name.directory))
    guard let record = try read(location, on: parent) else { return nil }
    guard try isOwn(name, of: record.enrollment.user) else {
      let path = (location.path / StoredFile.enrollment).text
      throw .otherUser(path: path, found: record.enrollment.user)
    }
    return record
  }

  /// Whether this is the directory of the user; a hashed name is known by its hash alone.
  private func isOwn(_ name: StoredName, of user: UserName) throws(StoreTrouble) -> Bool {
    if let spelled = name.user { return spelled == user }
    return same(try location(of: user).name.bytes, Path(name.directory).bytes)
  }
}

/// All names in an open directory except `.` and `..`.
func entries(of directory: Int32, _ path: Path) throws(StoreTrouble) -> [[UInt8]] {
  var error: Int32 = 0
  // SAFETY: the reader is closed below and not used elsewhere; the buffer has the size that is
  // passed.
  guard let reader = unsafe sys_names_open(directory, &error) else {
    throw path.trouble("open", 0 - error)
  }
  defer { unsafe sys_names_close(reader) }
  var names: [[UInt8]] = []
  var buffer = [UInt8](repeating: 0, count: 256)
  while try check(unsafe sys_names_next(reader, &buffer, buffer.count), "readdir", path) == 1 {
    let name = [UInt8](buffer.prefix { $0 != 0 })
    if !same(".", name), !same("..", name) { names.append(name) }
  }
  return names
}
