// Moving an enrollment to the fleet of this machine, and back. Not in the module.

#if !hasFeature(Embedded)
  internal import CSystem
  internal import OneTimePassword
  package import SallyportCore

  /// A user whose files are locked while he is moved: no login and no other command changes them.
  package final class MovingUser {
    package let enrollment: Enrollment
    /// In effect.
    package let state: LoginState
    /// nil: he is judged by his files.
    package private(set) var mark: MoveMark?

    private let store: Store
    private let location: UserDirectory

    fileprivate init(
      _ enrollment: Enrollment, _ state: LoginState, _ mark: MoveMark?, _ store: Store,
      _ location: UserDirectory
    ) {
      (self.enrollment, self.state, self.mark) = (enrollment, state, mark)
      (self.store, self.location) = (store, location)
    }

    /// On disk before it returns: with a mark nobody judges him by the files any more, whatever
    /// happens to this process; without one they do.
    package func write(_ mark: MoveMark?) throws(StoreTrouble) {
      guard let text = mark.map({ enrollment.written(with: $0) }) ?? enrollment.written() else {
        throw .outOfMemory
      }
      try store.rewrite(text, at: location)
      self.mark = mark
    }

    /// Removes and wipes his files; on disk before it returns.
    package func remove() throws(StoreTrouble) {
      let parent = try store.openParent(store.users)
      try store.takeAway(location, on: parent)
    }
  }

  extension Store {
    /// Calls `body` for a user who is enrolled here, marked or not, with his files locked; nil
    /// where he is not. Throws where a login would: what no login can read is not moved.
    package func moving<Value>(_ account: Account, _ body: (MovingUser) -> Value)
      throws(StoreTrouble) -> Value?
    {
      try changing { parent throws(StoreTrouble) -> Value? in
        let location = try location(of: account.name)
        guard let directory = try OpenUserDirectory.open(location, on: parent, checks) else {
          return nil
        }
        let missing = location.path / StoredFile.state
        guard let state = try LockedState(in: directory, self, .own, asKnown: true) else {
          throw .incomplete(path: missing.text)
        }
        guard try directory.isStill(on: parent), try directory.holds(state.file) else {
          throw .unsettled(path: location.path.text)
        }
        let user = try movingUser(in: directory, state, account)
        defer { _ = state.file.facts }
        return body(user)
      }
    }

    /// Makes files with this mark, by which nobody is judged; on disk before it returns. Throws
    /// `exists` where there are any, of whatever kind.
    package func create(_ enrollment: Enrollment, _ state: LoginState, marked mark: MoveMark)
      throws(StoreTrouble)
    {
      try changing { parent throws(StoreTrouble) in
        let location = try location(of: enrollment.user)
        if try isThere(location, on: parent) { throw .exists(path: location.path.text) }
        guard let text = enrollment.written(with: mark) else { throw .outOfMemory }
        let made = try Unfinished()
        try made.make(in: parent, users, enrollment: text, state: try pages(state))
        try finishing(made, on: parent) { () throws(StoreTrouble) in
          try appear(made, as: location, on: parent)
        }
      }
    }

    private func movingUser(
      in directory: borrowing OpenUserDirectory, _ state: borrowing LockedState,
      _ account: Account
    ) throws(StoreTrouble) -> MovingUser {
      let path = directory.location.path / StoredFile.enrollment
      let reading = sys_for_reading
      guard let file = try StoredFile.open(StoredFile.enrollment, reading, in: directory, checks)
      else { throw .incomplete(path: path.text) }
      guard let text = try file.secret() else { throw .unsettled(path: path.text) }
      let (enrollment, mark): (Enrollment, MoveMark?)
      do throws(SettingsError) {
        (enrollment, mark) = try Enrollment.readMoving(text)
      } catch {
        throw .malformed(path: path.text, error)
      }
      guard enrollment.user == account.name else {
        throw .otherUser(path: path.text, found: enrollment.user)
      }
      if let recorded = enrollment.uid, recorded != account.uid {
        throw .otherUID(path: path.text, recorded: recorded, found: account.uid)
      }
      let current = try current(in: state.file, of: enrollment, known: nil)
      var now = current.state
      if current.record?.mayLackTheLatest == true {
        now.distrustLoss(of: enrollment, at: try Clock.now())
      }
      now.reconcile(with: enrollment)
      return MovingUser(enrollment, now, mark, self, directory.location)
    }

    /// Puts this text in the place of a user's enrollment, whose old one is wiped.
    fileprivate func rewrite(_ text: Secret, at location: UserDirectory) throws(StoreTrouble) {
      let parent = try openParent(users)
      guard let directory = try OpenUserDirectory.open(location, on: parent, checks) else {
        throw .unsettled(path: location.path.text)
      }
      let made = try make(text, on: parent)
      try finishing(made, on: parent) { () throws(StoreTrouble) in
        let source = try openDirectory(made.name, in: parent, users / made.name)
        try move(StoredFile.enrollment, from: source, to: directory)
      }
      wipe(made.name, in: parent)
    }
  }
#endif
