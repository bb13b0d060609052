internal import CSystem
internal import OneTimePassword
package import SallyportCore

// `unenrolled/NAME`: a user's note, which is stored apart from an enrollment. `required/UID`: the
// note of the user with this uid who must enroll, for when the account has another name.

extension Store {
  var notes: UserDirectory { UserDirectory(parent: root, name: "unenrolled") }
  var required: UserDirectory { UserDirectory(parent: root, name: "required") }

  /// The level that root has set for this account (`UserNote.level`).
  package func level(of account: Account) throws(StoreTrouble) -> UserNote.Level? {
    let own = try note(of: account.name)
    var other: UserNote.Level?
    // For this name itself the note above counts.
    if let uid = account.uid, let (user, note) = try requirement(of: uid), user != account.name {
      other = note.level
    }
    return own.level(of: account.uid, and: other)
  }

  /// The user's note, whatever account has the name now; an empty one if there is no file, or no
  /// directory for it. Everything else throws, as a note that cannot be read may say `required`.
  package func note(of name: UserName) throws(StoreTrouble) -> UserNote {
    let file = try location(of: name).name
    guard let (user, note) = try note(file, in: notes) else { return UserNote() }
    guard user == name else { throw .otherUser(path: (notes.path / file).text, found: user) }
    return note
  }

  /// Whose notes there are, as `enrolledNames` tells who is enrolled.
  package func notedNames() throws(StoreTrouble) -> [StoredName] {
    try checks.walk(to: root)
    guard let directory = try OpenUserDirectory.open(notes, on: try openParent(root), checks) else {
      return []
    }
    return try entries(of: directory.descriptor.number, notes.path).map {
      StoredName(directory: $0)
    }
  }

  func requirement(of uid: UInt32) throws(StoreTrouble) -> (UserName, UserNote)? {
    try note(Path(uid: uid), in: required)
  }

  @inline(never)
  func note(_ file: Path, in place: UserDirectory) throws(StoreTrouble) -> (UserName, UserNote)? {
    try checks.walk(to: root)
    guard let directory = try OpenUserDirectory.open(place, on: try openParent(root), checks),
      let text = try text(ofNote: file, in: directory)
    else { return nil }
    do throws(SettingsError) {
      return try UserNote.read(text)
    } catch {
      throw .malformed(path: (place.path / file).text, error)
    }
  }

  /// Returns nil if there is none. A file that was replaced while it was opened has no name any
  /// more; then its successor is read.
  private func text(ofNote name: Path, in directory: borrowing OpenUserDirectory)
    throws(StoreTrouble) -> Secret?
  {
    for _ in 0..<Store.readings {
      if let file = try StoredFile.open(name, sys_for_reading, in: directory, checks) {
        guard let text = try file.secret() else { continue }
        return text
      }
      if try found(name, in: directory.descriptor.number, directory.location.path / name) == nil {
        return nil
      }
    }
    throw .unsettled(path: (directory.location.path / name).text)
  }
}

extension Path {
  init(uid: UInt32) { self.init(decimalText(UInt64(uid))) }
}
