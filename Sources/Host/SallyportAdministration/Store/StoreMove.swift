// Moving an enrollment to the fleet of this machine, and back.

import CSystem
import OneTimePassword
package import SallyportCore
package import SallyportSystem

/// A user whose files are locked while he is moved: no login and no other command changes them.
package final class MovingUser {
  package let enrollment: Enrollment
  /// In effect.
  package let state: LoginState
  /// nil: his files count.
  package private(set) var mark: MoveMark?

  private let store: Store
  private let name: Path

  fileprivate init(
    _ enrollment: Enrollment, _ state: LoginState, _ mark: MoveMark?, in store: Store,
    named name: Path
  ) {
    (self.enrollment, self.state, self.mark) = (enrollment, state, mark)
    (self.store, self.name) = (store, name)
  }

  /// On disk before it returns: with a mark no login is decided by the files any more, whatever
  /// happens to this process; without one they count.
  package func write(_ mark: MoveMark?) throws(StoreTrouble) {
    guard let text = mark.map({ enrollment.written(with: $0) }) ?? enrollment.written() else {
      throw .outOfMemory
    }
    let users = try store.userFolder()
    let made = try users.make(text, nil)
    try users.finishing(made) { () throws(StoreTrouble) in
      try users.move("enrollment", from: made, to: name)
    }
    users.wipe(made)
    self.mark = mark
  }

  /// Removes and wipes his files; on disk before it returns.
  package func remove() throws(StoreTrouble) {
    let users = try store.userFolder()
    try users.takeAway(name)
  }
}

extension Store {
  /// Calls `body` for a user who is enrolled here, marked or not, with his files locked; nil
  /// where he is not. Throws where a login would: what no login can read is not moved.
  package func moving<Value>(_ account: Account, _ body: (MovingUser) -> Value)
    throws(StoreTrouble) -> Value?
  {
    try changing { users throws(StoreTrouble) -> Value? in
      let name = try fileName(of: account.name)
      guard try users.has(name) else { return nil }
      return try users.holding(name) { () throws(StoreTrouble) -> Value? in
        try movingUser(name, in: users, account).map(body)
      }
    }
  }

  /// Makes files with this mark, by which no login is decided; on disk before it returns. Throws
  /// `exists` where there are any, of whatever kind.
  package func create(_ enrollment: Enrollment, _ state: LoginState, marked mark: MoveMark)
    throws(StoreTrouble)
  {
    try changing { users throws(StoreTrouble) in
      let name = try fileName(of: enrollment.user)
      if try users.has(name) { throw .exists(path: (users.path / name).text) }
      guard let text = enrollment.written(with: mark) else { throw .outOfMemory }
      let made = try users.make(text, state)
      try users.finishing(made) { () throws(StoreTrouble) in
        try users.rename(made, to: name)
        try users.sync()
      }
    }
  }

  private func movingUser(_ name: Path, in users: borrowing StoreFolder, _ account: Account)
    throws(StoreTrouble) -> MovingUser?
  {
    var mark: MoveMark?
    let record = try users.record(name) { text throws(SettingsError) in
      let read = try Enrollment.readMoving(text)
      mark = read.mark
      return read.enrollment
    }
    guard let record else { return nil }
    let (enrollment, path) = (record.enrollment, (users.path / name / "enrollment").text)
    guard enrollment.user == account.name else {
      throw .otherUser(path: path, found: enrollment.user)
    }
    if let recorded = enrollment.uid, recorded != account.uid {
      throw .otherUID(path: path, recorded: recorded, found: account.uid)
    }
    var state = record.state
    if record.mayLackTheLatest { state.distrustLoss(of: enrollment, at: try Clock.now()) }
    state.reconcile(with: enrollment)
    return MovingUser(enrollment, state, mark, in: self, named: name)
  }
}
