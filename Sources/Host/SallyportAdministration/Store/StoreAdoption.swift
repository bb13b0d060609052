// An enrollment whose account has another name or uid now, as after `usermod -l` or `-u`.

import OneTimePassword
package import SallyportCore
package import SallyportSystem

/// An account that is not enrolled, and the name of the one enrollment that its uid alone joins
/// with it: no account is found by that name. It was renamed, or a new person got the uid.
package struct RenamedPair {
  package let former: UserName
  package let account: Account
}

extension Store {
  /// The pair of which this is one, an account or a name that no account has; nil if there is none,
  /// or the uid joins several.
  package func renamedPair(with one: Account) throws(StoreTrouble) -> RenamedPair? {
    var account = one
    if one.uid == nil {
      guard let uid = try load(stored: storedName(of: one.name))?.enrollment.uid,
        let found = try Accounts.find(uid: uid)
      else { return nil }
      account = found
    }
    let names = try enrolledNames()
    let own = try storedName(of: account.name).directory
    if names.contains(where: { $0.directory == own }) { return nil }
    var joined: [UserName] = []
    try load(all: names) { _, found in
      guard case .success(let record?) = found, let uid = record.enrollment.uid,
        uid == account.uid
      else { return }
      joined.append(record.enrollment.user)
    }
    var former: [UserName] = []
    for name in joined where try Accounts.find(name).uid == nil { former.append(name) }
    guard former.count == 1, let name = former.first else { return nil }
    return RenamedPair(former: name, account: account)
  }

  /// What is enrolled under the name before, to be given to this account; nil if nothing is. It has
  /// the account's own name in it already where giving it was cut short.
  package func record(of former: UserName, for account: Account) throws(StoreTrouble) -> Record? {
    let users = try userFolder()
    guard let record = try users.record(try fileName(of: former), format.read) else { return nil }
    let user = record.enrollment.user
    guard user == former || user == account.name else {
      throw .otherUser(path: record.path, found: user)
    }
    return record
  }

  /// Gives it to the account. There is one copy of it at any time: first its file gets the new name
  /// and uid, with which nobody logs in before the directory has the new name, too. Its state stays
  /// as it is, but for places that were remembered, and the requirement to enroll is the account's
  /// before. So the same call ends one that was cut short. Throws `exists` where the account is
  /// enrolled; `changed` where it is no longer the record that was loaded.
  package func adopt(
    _ record: Record, of former: UserName, by account: Account
  ) throws(StoreTrouble) -> Transaction<Void> {
    let (old, name) = (try fileName(of: former), try fileName(of: account.name))
    let isRenamed = !same(old.bytes, name.bytes)
    if isRenamed, try userFolder().has(name) {
      throw .exists(path: (users / name).text)
    }
    let forgotten = try transact(record, asKnown: true) {
      (_, state) throws(StoreTrouble) -> (Void, LoginState) in
      var state = state
      state.forgetRemembered()
      return ((), state)
    }
    guard case .committed = forgotten, let record = try self.record(of: former, for: account) else {
      return .changed
    }
    try require(of: record, by: account)
    // No account has that name, and a new one is another person.
    if isRenamed { try setLevel(nil, of: Account(name: former, uid: nil), Accounts.find) }
    try moveBlock(of: former, record, to: account)
    return try changing { users throws(StoreTrouble) in
      try users.holding(record) { () throws(StoreTrouble) in
        try put(record, as: account, in: old, users)
        guard isRenamed else { return }
        try users.rename(old, to: name)
        try users.sync()
      }
    }
  }

  private func put(
    _ record: Record, as account: Account, in directory: Path, _ users: borrowing StoreFolder
  ) throws(StoreTrouble) {
    let old = record.enrollment
    if old.user == account.name, old.uid == account.uid { return }
    let new = Enrollment(
      id: old.id, user: account.name, uid: account.uid, created: old.created,
      authenticators: old.authenticators, backupCodes: old.backupCodes, passes: old.passes,
      suspended: old.suspended)
    let made = try users.make(try text(new), nil)
    try users.finishing(made) { () throws(StoreTrouble) in
      try users.move("enrollment", from: made, to: directory)
    }
    users.wipe(made)
  }

  /// Has the account enroll as the name and uid before had to, unless it has to earlier: by a note
  /// of its own, which the end of the note of the name before leaves. For the same name, the
  /// requirement of the uid before stays: a new account that gets it has to enroll.
  private func require(of record: Record, by account: Account) throws(StoreTrouble) {
    let before = Account(name: record.enrollment.user, uid: record.enrollment.uid)
    guard case .required(let day) = try level(of: before) else { return }
    let (own, uid) = (try note(of: account.name).level, account.uid)
    let level = UserNote(level: own, uid: uid).level(of: uid, and: .required(from: day))
    if level != own { try setLevel(level, of: account, Accounts.find) }
  }
}
