internal import OneTimePassword
package import SallyportCore

// `unenrolled/NAME`: a user's note, which is stored apart from an enrollment. `required/UID`: the
// note of the user with this uid who must enroll, for when the account has another name.

extension Store {
  package static var notes: Path { "unenrolled" }
  package static var required: Path { "required" }

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
    guard let (user, note) = try note(file, in: Store.notes) else { return UserNote() }
    guard user == name else {
      throw .otherUser(path: (root / Store.notes / file).text, found: user)
    }
    return note
  }

  package func requirement(of uid: UInt32) throws(StoreTrouble) -> (UserName, UserNote)? {
    try note(Path(uid: uid), in: Store.required)
  }

  /// The note in this file, and whose it is; nil if there is none.
  @inline(never)
  package func note(_ file: Path, in place: Path) throws(StoreTrouble) -> (UserName, UserNote)? {
    guard let text = try text(of: file, in: place) else { return nil }
    do throws(SettingsError) {
      return try UserNote.read(text)
    } catch {
      throw .malformed(path: (root / place / file).text, error)
    }
  }
}

extension Path {
  package init(uid: UInt32) { self.init(decimalText(UInt64(uid))) }
}
