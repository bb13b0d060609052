// An enrollment whose account has another name or uid now, as after `usermod -l` or `-u`.

import OneTimePassword
package import SallyportCore
package import SallyportSystem

extension Store {
  /// Gives a loaded enrollment to this account: its authenticators and backup codes, what was used
  /// of them, and the budget for wrong codes. Places that were remembered are forgotten.
  ///
  /// Killed anywhere in it, the enrollment belongs to the former name, to the account, or to both:
  /// then this call, once more, ends it. `changed` where it is no longer the loaded one. Throws
  /// `exists` where the account has another one.
  package func adopt(_ record: Record, by account: Account) throws(StoreTrouble)
    -> Transaction<Void>
  {
    let (former, name) = (try fileName(of: record.enrollment.user), try fileName(of: account.name))
    return try changing { users throws(StoreTrouble) in
      try users.holding(record) { () throws(StoreTrouble) in
        if same(former.bytes, name.bytes) {
          let made = try made(of: record, for: account, in: users)
          try users.finishing(made) { () throws(StoreTrouble) in
            try exchange(made, with: name, in: users)
          }
          // The new one must be on the disk before the old one is wiped.
          try users.sync()
          return users.wipe(made)
        }
        if try users.has(name) {
          let found = try users.record(name, format.read)
          guard found?.enrollment.id == record.enrollment.id else {
            throw .exists(path: (users.path / name).text)
          }
        } else {
          let made = try made(of: record, for: account, in: users)
          try users.finishing(made) { () throws(StoreTrouble) in
            try users.rename(made, to: name)
          }
          try users.sync()
        }
        try users.takeAway(former)
      }
    }
  }

  /// The state is read again: it is locked now.
  private func made(
    of record: Record, for account: Account, in users: borrowing StoreFolder
  ) throws(StoreTrouble) -> Path {
    let old = record.enrollment
    let enrollment = Enrollment(
      id: old.id, user: account.name, uid: account.uid, created: old.created,
      authenticators: old.authenticators, backupCodes: old.backupCodes)
    guard let now = try users.record(try fileName(of: old.user), format.read) else {
      throw .unsettled(path: record.path)
    }
    var state = now.state
    if now.mayLackTheLatest { state.distrustLoss(of: old, at: try Clock.now()) }
    state.reconcile(with: enrollment)
    state.forgetRemembered()
    return try users.make(try text(enrollment), state)
  }

  /// Has this account enroll, where that was required under the name before, and no longer under
  /// that name and uid. An exemption stays behind. The note of before goes last, so that the next
  /// call ends one that was cut short. Returns whether there was something to do.
  package func adoptRequirement(of former: UserName, by account: Account) throws(StoreTrouble)
    -> Bool
  {
    try changing { users throws(StoreTrouble) in
      let before = try note(of: former)
      guard case .required = before.level, let uid = account.uid else { return false }
      if former == account.name, before.uid == uid { return false }
      let note = UserNote(level: before.level, uid: uid)
      let text = try text(of: note, for: account.name)
      try put(text, as: Path(uid: uid), in: Store.required, by: users)
      if let old = before.uid, old != uid, let (user, _) = try requirement(of: old), user == former
      {
        try put(nil, as: Path(uid: old), in: Store.required, by: users)
      }
      try put(text, as: try fileName(of: account.name), in: Store.notes, by: users)
      if former != account.name {
        try put(nil, as: try fileName(of: former), in: Store.notes, by: users)
      }
      return true
    }
  }
}
