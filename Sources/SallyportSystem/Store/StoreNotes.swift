internal import CSystem
internal import OneTimePassword
package import SallyportCore

// `unenrolled/NAME`: what is kept of a user apart from an enrollment.

extension Store {
  private var notes: UserDirectory { UserDirectory(parent: root, name: "unenrolled") }

  /// What is kept of a user; an empty note where there is no file, or no directory for it.
  /// Everything else throws: a note that cannot be read might be a `required`.
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

  /// Puts what `change` makes of a user's note in its place, for good; an empty one removes the
  /// file. The new note.
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

  /// nil where there is none. A file that is replaced while it is opened has no name any more: then
  /// its successor counts.
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

  /// Made among the users' directories, where the next command wipes what a crash leaves, and under
  /// their lock.
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
      // SAFETY: as above; nothing is left of that name where all went well.
      defer { _ = unsafe sys_remove_file(parent.number, made.cString) }
      try SallyportSystem.write(text, as: made, in: parent, users)
      // SAFETY: as above.
      let result = unsafe sys_rename(parent.number, made.cString, target, file.cString)
      try check(result, "rename", notes.path / file)
    }
    try check(sys_sync(target), "fsync", notes.path)
  }
}
