import CSystem
import OneTimePassword
package import SallyportCore
package import SallyportSystem

// Changes of notes, all under the lock of the users' directory; for commands.

extension Store {
  /// Sets an account's level, and syncs it; nil removes it, and what was required of its uid under
  /// another name, unless `find` says that an account of that name has the uid too.
  package func setLevel(
    _ level: UserNote.Level?, of account: Account,
    _ find: (UserName) throws(StoreTrouble) -> Account
  ) throws(StoreTrouble) {
    let others = level.isRequired ? [] : try namesRequired(beside: account, find)
    try changing { users throws(StoreTrouble) in
      try setLevel(level, of: account, others, in: users)
    }
  }

  /// The other names that must enroll, of the account's uid or of the uid which its note has.
  private func namesRequired(
    beside account: Account, _ find: (UserName) throws(StoreTrouble) -> Account
  ) throws(StoreTrouble) -> [UserName] {
    let before = try note(of: account.name).uid
    var names: [UserName] = []
    try eachNote { _, user, note throws(StoreTrouble) in
      guard note.level.isRequired, let uid = note.uid, uid == account.uid || uid == before,
        user != account.name
      else { return }
      // What cannot be asked may be such a name.
      let found = try? find(user)
      if found == nil || found?.uid == uid { names.append(user) }
    } failing: { _, _, _ in
    }
    return names
  }

  /// `others`: names of which the requirement of the uid is kept; nil if that stays as it is.
  private func setLevel(
    _ level: UserNote.Level?, of account: Account, _ others: [UserName]?,
    in users: borrowing StoreFolder
  ) throws(StoreTrouble) {
    let file = try fileName(of: account.name)
    let before = try note(of: account.name).uid
    let note = UserNote(level: level, uid: account.uid ?? UserNote.noUID)
    let text = level == nil ? nil : try text(of: note, for: account.name)
    try put(text, as: file, in: Store.notes, by: users)
    if let uid = account.uid {
      if level.isRequired {
        try put(text, as: Path(uid: uid), in: Store.required, by: users)
      } else if let others {
        try put(requirement(of: uid, by: others), as: Path(uid: uid), in: Store.required, by: users)
      }
    }
    // The uid before may be that of the same person under another name.
    if !level.isRequired, let before, before != account.uid,
      let (user, _) = try requirement(of: before), user == account.name
    {
      let text = try requirement(of: before, by: others ?? [])
      try put(text, as: Path(uid: before), in: Store.required, by: users)
    }
  }

  private func requirement(of uid: UInt32, by names: [UserName]) throws(StoreTrouble) -> Secret? {
    for name in names {
      let note = try note(of: name)
      if note.level.isRequired, note.uid == uid { return try text(of: note, for: name) }
    }
    return nil
  }

  private func text(of note: UserNote, for name: UserName) throws(StoreTrouble) -> Secret {
    guard let text = note.written(for: name) else { throw .outOfMemory }
    return text
  }

  /// A note of before that stays without a uid, or is nobody's now. It lets nobody in.
  package struct UnadoptedNote {
    /// Why it is so.
    package enum Reason {
      /// There is no account of that name; said once.
      case noAccount
      /// A directory that may be away may have the account, so that the note stays as it is.
      case unseen
      /// It loosens, and what runs by itself does not know whether the account is the same.
      case exempt
      case trouble(StoreTrouble)
    }

    /// nil if the note cannot be read.
    package let user: UserName?
    package let path: String
    package let reason: Reason
  }

  /// Gives each note of before, without a uid, that of the account which `find` finds. Each is
  /// replaced by itself, so that the next run ends one that was cut short. Returns those that stay
  /// without a uid, and the exempt whose account was not found.
  ///
  /// `areLocal`: there are no accounts in directories. Else one that is not found may be away.
  /// `isOrdered`: root has run this, and means the accounts that there are now; else only what
  /// tightens is done, as another person may have got the name. No login waits for `find`: it is
  /// called before the lock is taken.
  package func adoptNotes(
    areLocal: Bool, isOrdered: Bool, _ find: (UserName) throws(StoreTrouble) -> Account
  ) throws(StoreTrouble) -> [UnadoptedNote] {
    var unadopted: [UnadoptedNote] = []
    var owners: [(file: Path, note: UserNote, owner: Account)] = []
    func leave(_ user: UserName?, _ file: Path, _ reason: UnadoptedNote.Reason) {
      unadopted.append(
        UnadoptedNote(user: user, path: (root / Store.notes / file).text, reason: reason))
    }
    try eachNote { file, user, note throws(StoreTrouble) in
      guard note.uid == nil else { return }
      let account = try find(user)
      // Nobody's, if the name is another spelling of an account's own.
      let uid = account.name == user ? account.uid : nil
      if account.uid == nil, !areLocal {
        leave(user, file, .unseen)
      } else if !isOrdered, uid != nil, note.level.isExempt {
        leave(user, file, .exempt)
      } else {
        owners.append((file, note, Account(name: user, uid: uid)))
      }
    } failing: { file, user, trouble in
      leave(user, file, .trouble(trouble))
    }
    if owners.isEmpty { return unadopted }
    try changing { users throws(StoreTrouble) in
      for (file, note, owner) in owners {
        do throws(StoreTrouble) {
          // It may be another one by now.
          guard try self.note(of: owner.name) == note else { continue }
          try setLevel(note.level, of: owner, nil, in: users)
          if owner.uid == nil, note.level.isExempt { leave(owner.name, file, .noAccount) }
        } catch {
          leave(owner.name, file, .trouble(error))
        }
      }
    }
    return unadopted
  }

  /// Goes through the notes. What fails for one is no reason to leave out the others. A copy under
  /// another file name is nobody's note.
  private func eachNote(
    _ body: (Path, UserName, UserNote) throws(StoreTrouble) -> Void,
    failing: (Path, UserName?, StoreTrouble) -> Void
  ) throws(StoreTrouble) {
    guard let notes = try folder(Store.notes) else { return }
    for file in try notes.names() {
      var user: UserName?
      do throws(StoreTrouble) {
        guard let (name, note) = try note(file, in: Store.notes) else { continue }
        guard same(try fileName(of: name).bytes, file.bytes) else {
          throw .otherUser(path: (root / Store.notes / file).text, found: name)
        }
        user = name
        try body(file, name, note)
      } catch {
        failing(file, user, error)
      }
    }
  }

  /// Puts the file in its place, or removes it if `text` is nil; it is made among the users'
  /// directories, where the next command removes what a crash leaves.
  func put(
    _ text: Secret?, as file: Path, in place: Path, by users: borrowing StoreFolder
  ) throws(StoreTrouble) {
    if text != nil { try makeDirectory(root / place) }
    guard let target = try folder(place) else { return }
    if let text {
      try users.put(text, as: file, in: target)
    } else {
      try target.remove(file)
      try target.sync()
    }
  }
}

extension UserNote.Level? {
  fileprivate var isRequired: Bool { if case .required? = self { true } else { false } }
}
