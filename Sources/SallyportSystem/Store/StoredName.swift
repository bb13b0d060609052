internal import CSystem
internal import OneTimePassword
package import SallyportCore

/// The name of a user's folder.
package struct StoredName: Sendable {
  /// Its file name, printable ASCII for what the store has made itself.
  package let folder: String
  /// The login name that it spells; nil for a long one, which is hashed, and for what is not ours.
  package let user: UserName?

  /// Of a folder of `users` or a file of `unenrolled`.
  package init(folder bytes: [UInt8]) {
    folder = String(decoding: bytes, as: UTF8.self)
    user = StoredName.user(bytes)
  }

  /// Only the one spelling that the store itself would use.
  private static func user(_ folder: [UInt8]) -> UserName? {
    var name: [UInt8] = []
    var rest = folder[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        name.append(byte)
        continue
      }
      guard let value = bytes(fromHexadecimal: [UInt8](rest.prefix(2)))?.first else { return nil }
      name.append(value)
      rest = rest.dropFirst(2)
    }
    guard let user = UserName(name), user.fileName == folder else { return nil }
    return user
  }
}

extension Store {
  /// The folders of all users, in the order of their bytes.
  package func enrolledNames() throws(StoreTrouble) -> [StoredName] {
    try checks.walk(to: root)
    let shelf = try openShelf(users)
    return try entries(of: shelf.number, users).filter { $0.first != UInt8(ascii: ".") }
      .sorted { $0.lexicographicallyPrecedes($1) }.map { StoredName(folder: $0) }
  }

  /// What is enrolled under a folder's name, without a look at the account; nil where it is gone.
  /// Throws `otherUser` where the name inside belongs to another folder.
  package func load(stored name: StoredName) throws(StoreTrouble) -> Record? {
    try checks.walk(to: root)
    return try load(stored: name, on: try openShelf(users))
  }

  /// The same for many, one after the other; what is above them is checked once.
  package func load(
    all names: ArraySlice<StoredName>, _ take: (StoredName, Result<Record?, StoreTrouble>) -> Void
  ) throws(StoreTrouble) {
    try checks.walk(to: root)
    let shelf = try openShelf(users)
    for name in names {
      do throws(StoreTrouble) {
        take(name, .success(try load(stored: name, on: shelf)))
      } catch {
        take(name, .failure(error))
      }
    }
  }

  private func load(stored name: StoredName, on shelf: borrowing Descriptor)
    throws(StoreTrouble) -> Record?
  {
    let place = Place(shelf: users, name: Path(name.folder))
    guard let record = try read(place, on: shelf) else { return nil }
    guard try isOwn(name, of: record.enrollment.user) else {
      let path = (place.path / StoredFile.enrollment).text
      throw .otherUser(path: path, found: record.enrollment.user)
    }
    return record
  }

  /// Whether that is the folder of this user: a name that is hashed is known by its hash alone.
  private func isOwn(_ name: StoredName, of user: UserName) throws(StoreTrouble) -> Bool {
    if let spelled = name.user { return spelled == user }
    return same(try place(of: user).name.bytes, Path(name.folder).bytes)
  }
}

/// All names in an open folder but `.` and `..`.
func entries(of folder: Int32, _ path: Path) throws(StoreTrouble) -> [[UInt8]] {
  var error: Int32 = 0
  // SAFETY: the reader is closed below and used by nobody else; the buffer has its size.
  guard let reader = unsafe sys_names_open(folder, &error) else {
    throw path.trouble("open", 0 - error)
  }
  defer { unsafe sys_names_close(reader) }
  var names: [[UInt8]] = []
  var buffer = [CChar](repeating: 0, count: 256)
  while try check(unsafe sys_names_next(reader, &buffer, buffer.count), "readdir", path) == 1 {
    let name = buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    let isItself = name.count <= 2 && name.allSatisfy { $0 == UInt8(ascii: ".") }
    if !isItself { names.append(name) }
  }
  return names
}
