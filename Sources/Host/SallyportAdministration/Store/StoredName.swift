import OneTimePassword
package import SallyportCore
package import SallyportSystem

/// The name of a user's directory.
package struct StoredName: Sendable {
  /// Its file name, which is printable ASCII if the store created it.
  package let directory: String
  /// The login name in it; nil for a long name, which is hashed, and for a name that is not the
  /// store's.
  package let user: UserName?

  /// For the kernel.
  var path: Path { Path([UInt8](directory.utf8)) }

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
      guard let value = Secret(rest.prefix(2))?.octets(1, spelledIn: 0..<2)?.first else {
        return nil
      }
      name.append(value)
      rest = rest.dropFirst(2)
    }
    guard let user = UserName(name), user.fileName == directory else { return nil }
    return user
  }
}

extension Store {
  /// The name of this user's directory.
  package func storedName(of name: UserName) throws(StoreTrouble) -> StoredName {
    StoredName(directory: try fileName(of: name).bytes)
  }

  /// The directories of all users, sorted by their bytes.
  package func enrolledNames() throws(StoreTrouble) -> [StoredName] {
    try userFolder().names().map(\.bytes).filter { $0.first != UInt8(ascii: ".") }
      .sorted { $0.lexicographicallyPrecedes($1) }.map { StoredName(directory: $0) }
  }

  /// Whose notes there are, in no order.
  package func notedNames() throws(StoreTrouble) -> [StoredName] {
    guard let notes = try folder(Store.notes) else { return [] }
    return try notes.names().map { StoredName(directory: $0.bytes) }
  }

  /// Everybody with an enrollment or a note whose name is not hashed, in no order; nobody without a
  /// store.
  package func storedPeople() throws(StoreTrouble) -> [UserName] {
    do throws(StoreTrouble) {
      return (try enrolledNames() + notedNames()).compactMap(\.user)
    } catch {
      if case .noStore = error { return [] }
      throw error
    }
  }

  /// The uids of which a user must enroll, in no order; 2³² - 1 for what is no uid.
  package func requiredUIDs() throws(StoreTrouble) -> [UInt32] {
    guard let required = try folder(Store.required) else { return [] }
    return try required.names().map { name in
      UInt32(String(decoding: name.bytes, as: UTF8.self)) ?? UserNote.noUID
    }
  }

  /// The enrollment in a directory, without a look at the account; nil if it is gone. Throws
  /// `otherUser` if the name inside belongs to another directory.
  package func load(stored name: StoredName) throws(StoreTrouble) -> Record? {
    try load(stored: name, in: try userFolder(), format.read)
  }

  /// As above, read in another way.
  func load(stored name: StoredName, _ reading: Reading) throws(StoreTrouble) -> Record? {
    try load(stored: name, in: try userFolder(), reading)
  }

  /// The same for many, one after the other; the directories above are checked once.
  package func load(
    all names: [StoredName], _ take: (StoredName, Result<Record?, StoreTrouble>) -> Void
  ) throws(StoreTrouble) {
    let users = try userFolder()
    for name in names {
      do throws(StoreTrouble) {
        take(name, .success(try load(stored: name, in: users, format.read)))
      } catch {
        take(name, .failure(error))
      }
    }
  }

  /// Throws as `load` does if an enrollment that was read is not the account's.
  package func verify(_ record: Record, of account: Account) throws(StoreTrouble) {
    let recorded = record.enrollment.uid
    let isOwn = record.enrollment.user == account.name && (recorded ?? account.uid) == account.uid
    if !isOwn { _ = try load(account) }
  }

  private func load(
    stored name: StoredName, in users: borrowing StoreFolder, _ reading: Reading
  ) throws(StoreTrouble) -> Record? {
    guard let record = try users.record(name.path, reading) else { return nil }
    guard try isOwn(name, of: record.enrollment.user) else {
      let path = (users.path / name.path / "enrollment").text
      throw .otherUser(path: path, found: record.enrollment.user)
    }
    return record
  }

  /// Whether this is the directory of the user; a hashed name is known by its hash alone.
  private func isOwn(_ name: StoredName, of user: UserName) throws(StoreTrouble) -> Bool {
    if let spelled = name.user { return spelled == user }
    return same(try fileName(of: user).bytes, name.path.bytes)
  }
}
