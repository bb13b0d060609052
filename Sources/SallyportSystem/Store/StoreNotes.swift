internal import CSystem
internal import OneTimePassword
package import SallyportCore

// `unenrolled/NAME`: a user's note, which is stored apart from an enrollment.

extension Store {
  private var notes: UserDirectory { UserDirectory(parent: root, name: "unenrolled") }

  /// The user's note; an empty one if there is no file, or no directory for it. Everything else
  /// throws, as a note that cannot be read may say `required`.
  package func note(of name: UserName) throws(StoreTrouble) -> UserNote {
    try checks.walk(to: root)
    guard let directory = try OpenUserDirectory.open(notes, on: try openParent(root), checks) else {
      return UserNote()
    }
    let file = try location(of: name).name
    guard let text = try text(ofNote: file, in: directory) else { return UserNote() }
    var path: String { (notes.path / file).text }
    let (user, note): (UserName, UserNote)
    do throws(SettingsError) {
      (user, note) = try UserNote.read(text)
    } catch {
      throw .malformed(path: path, error)
    }
    guard user == name else { throw .otherUser(path: path, found: user) }
    return note
  }

  /// Stores what `change` makes of a user's note, and syncs it; an empty note removes the file.
  /// Returns the new note.
  package func changeNote(of name: UserName, _ change: (inout UserNote) -> Void)
    throws(StoreTrouble) -> UserNote
  {
    try changing { parent throws(StoreTrouble) in
      var note = try note(of: name)
      change(&note)
      try put(note, of: name, on: parent)
      return note
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
      if try found(name, in: directory.descriptor.number, notes.path / name) == nil { return nil }
    }
    throw .unsettled(path: (notes.path / name).text)
  }

  /// Creates the file among the users' directories, under their lock, where the next command
  /// removes what a crash leaves.
  private func put(_ note: UserNote, of name: UserName, on parent: borrowing Descriptor)
    throws(StoreTrouble)
  {
    let file = try location(of: name).name
    try makeDirectory(notes.path)
    guard let directory = try OpenUserDirectory.open(notes, on: try openParent(root), checks) else {
      throw .noStore(path: notes.path.text)
    }
    let target = directory.descriptor.number
    if note == UserNote() {
      // SAFETY: the C string lives for the call.
      let result = unsafe sys_remove_file(target, file.cString)
      if result != -sys_ENOENT { try check(result, "unlink", notes.path / file) }
    } else {
      guard let text = note.written(for: name) else { throw .outOfMemory }
      let made = try Unfinished().name
      // SAFETY: as above. After a success there is no such file.
      defer { _ = unsafe sys_remove_file(parent.number, made.cString) }
      try SallyportSystem.write(text, as: made, in: parent, users)
      // SAFETY: as above.
      let result = unsafe sys_rename(parent.number, made.cString, target, file.cString)
      try check(result, "rename", notes.path / file)
    }
    try check(sys_sync(target), "fsync", notes.path)
  }
}
