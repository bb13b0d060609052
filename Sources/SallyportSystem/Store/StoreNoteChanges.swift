internal import CSystem
internal import OneTimePassword
package import SallyportCore

// Changes of notes, all under the lock of the users' directory; for commands.

extension Store {
  /// Sets an account's level, and syncs it; nil removes it, and what was required of its uid under
  /// another name.
  package func setLevel(_ level: UserNote.Level?, of account: Account) throws(StoreTrouble) {
    try changing { parent throws(StoreTrouble) in
      try setLevel(level, of: account, on: parent)
    }
  }

  private func setLevel(
    _ level: UserNote.Level?, of account: Account, on parent: borrowing Descriptor
  ) throws(StoreTrouble) {
    let file = try location(of: account.name).name
    let before = try note(of: account.name).uid
    let note = UserNote(level: level, uid: account.uid ?? UserNote.noUID)
    let text = level == nil ? nil : try text(of: note, for: account.name)
    try put(text, as: file, in: notes, on: parent)
    if let uid = account.uid {
      let isRequired = if case .required = level { true } else { false }
      try put(isRequired ? text : nil, as: Path(uid: uid), in: required, on: parent)
    }
    if let before, before != account.uid, let (user, _) = try requirement(of: before),
      user == account.name
    {
      try put(nil, as: Path(uid: before), in: required, on: parent)
    }
  }

  private func text(of note: UserNote, for name: UserName) throws(StoreTrouble) -> Secret {
    guard let text = note.written(for: name) else { throw .outOfMemory }
    return text
  }

  /// A note of before, which lets nobody in.
  package struct UnadoptedNote {
    /// nil if the note cannot be read.
    package let user: UserName?
    package let path: String
    /// nil: there is no account of that name.
    package let trouble: StoreTrouble?
    /// Whether a directory that may be away may have the account, so that the note stays as it is.
    package var isUnseen = false
  }

  /// Gives each note of before, without a uid, that of the account which `find` finds. Each is
  /// replaced by itself, so that the next run ends one that was cut short. Returns those of the
  /// exempt whose account was not found, which is said once, and those that stay without a uid.
  ///
  /// `areFiles`: there are no accounts but in files. Else one that is not found may be away.
  package func adoptNotes(
    areFiles: Bool, _ find: (UserName) throws(StoreTrouble) -> Account
  ) throws(StoreTrouble) -> [UnadoptedNote] {
    try changing { parent throws(StoreTrouble) in
      let store = try openParent(root)
      guard let directory = try OpenUserDirectory.open(notes, on: store, checks) else { return [] }
      var unadopted: [UnadoptedNote] = []
      for file in try entries(of: directory.descriptor.number, notes.path).map({ Path($0) }) {
        var user: UserName?
        do throws(StoreTrouble) {
          guard let (name, note) = try note(file, in: notes), note.uid == nil else { continue }
          user = name
          let account = try find(name)
          if account.uid == nil, !areFiles {
            unadopted.append(
              UnadoptedNote(
                user: name, path: (notes.path / file).text, trouble: nil, isUnseen: true))
            continue
          }
          // Nobody's, if the name is another spelling of an account's own.
          let owner = Account(name: name, uid: account.name == name ? account.uid : nil)
          try setLevel(note.level, of: owner, on: parent)
          if owner.uid != nil || note.level != .exempt { continue }
          unadopted.append(UnadoptedNote(user: name, path: (notes.path / file).text, trouble: nil))
        } catch {
          unadopted.append(
            UnadoptedNote(user: user, path: (notes.path / file).text, trouble: error))
        }
      }
      return unadopted
    }
  }

  /// Puts the file in its place, or removes it if `text` is nil; it is made among the users'
  /// directories, where the next command removes what a crash leaves.
  private func put(
    _ text: Secret?, as file: Path, in place: UserDirectory, on parent: borrowing Descriptor
  ) throws(StoreTrouble) {
    if text != nil { try makeDirectory(place.path) }
    let store = try openParent(root)
    guard let directory = try OpenUserDirectory.open(place, on: store, checks) else { return }
    let target = directory.descriptor.number
    if let text {
      let made = try Unfinished().name
      // SAFETY: the C string lives for the call. After a success there is no such file.
      defer { _ = unsafe sys_remove_file(parent.number, made.cString) }
      try SallyportSystem.write(text, as: made, in: parent, users)
      // SAFETY: as above.
      let result = unsafe sys_rename(parent.number, made.cString, target, file.cString)
      try check(result, "rename", place.path / file)
    } else {
      // SAFETY: as above.
      let result = unsafe sys_remove_file(target, file.cString)
      if result != -sys_ENOENT { try check(result, "unlink", place.path / file) }
    }
    try check(sys_sync(target), "fsync", place.path)
  }
}
