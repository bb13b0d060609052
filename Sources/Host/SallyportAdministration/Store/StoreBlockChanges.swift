import OneTimePassword
package import SallyportCore
package import SallyportSystem

// Who is blocked, for commands: by the name and by the uid of an account, kept beside the
// enrollment and the note, so that lifting it brings both back.

extension Store {
  /// Somebody who is blocked.
  package struct Blocked: Equatable {
    /// nil: the file is not understood, and blocks without an end.
    package let block: Block?
    /// Of the file.
    package let path: String

    /// Whether all hosts of a fleet have it, and not the files of this machine.
    package var isInFleet = false

    init(block: Block?, path: String) { (self.block, self.path) = (block, path) }

    /// Of a fleet.
    package init(inFleet block: Block) {
      self.init(block: block, path: "fleet")
      isInFleet = true
    }

    package func isOver(at now: UnixTime) -> Bool { block?.isOver(at: now) ?? false }

    /// Whether it holds, and root has set it, or it is not known who has.
    package func isRoots(at now: UnixTime) -> Bool { !isOver(at: now) && block?.helper == nil }
  }

  /// What comes of blocking somebody.
  package enum Blocking: Equatable {
    case done
    /// He is blocked, but a login may be held up, and end as it was decided before.
    case heldUp
    /// Root has blocked him, and a helper changes nothing of that.
    case isRoots
  }

  /// What comes of lifting a block.
  package enum Lifting: Equatable {
    case done
    /// Nothing blocked him.
    case notBlocked
    /// Root has blocked him, and a helper lifts nothing then.
    case isRoots
  }

  /// Blocks the account; on disk before it returns. A login that did not see it has ended by then:
  /// each looks under its user's lock, which is taken here once it is written. `helper`: who does
  /// it without root.
  package func block(
    _ account: Account, until: UnixTime?, at now: UnixTime, by helper: UserName? = nil
  ) throws(StoreTrouble) -> Blocking {
    let block = Block(
      user: account.name, uid: account.uid, until: until, since: now, helper: helper)
    guard let text = block.written() else { throw .outOfMemory }
    let file = try fileName(of: account.name)
    return try changing { users throws(StoreTrouble) in
      if helper != nil, try blocks(of: account).contains(where: { $0.isRoots(at: now) }) {
        return .isRoots
      }
      try put(text, as: file, in: Store.blocked, by: users)
      if let uid = account.uid {
        try put(text, as: Path(uid: uid), in: Store.blockedUIDs, by: users)
      }
      do throws(StoreTrouble) {
        try users.holding(file) { () throws(StoreTrouble) in }
        return .done
      } catch {
        guard case .busy = error else { throw error }
        return .heldUp
      }
    }
  }

  /// Lifts what blocks this account, by its name and by its uid, and what blocks the name that it
  /// had when it was blocked, unless `find` says that this is another account's now. All of it or
  /// nothing. `helper`: who does it without root.
  package func unblock(
    _ account: Account, at now: UnixTime, by helper: UserName? = nil,
    _ find: (UserName) throws(StoreTrouble) -> Account
  ) throws(StoreTrouble) -> Lifting {
    let found = try blocks(of: account)
    if found.isEmpty { return .notBlocked }
    var names = [account.name]
    for name in found.compactMap(\.block?.user) where name != account.name {
      let uid = try find(name).uid
      if uid == nil || uid == account.uid { names.append(name) }
    }
    // The uid before is no other account's of these names.
    var uids = account.uid.map { [$0] } ?? []
    for name in names {
      if let block = try blocked(name)?.block, let uid = block.uid, try isFree(uid, account, find) {
        uids.append(uid)
      }
    }
    return try changing { users throws(StoreTrouble) in
      if helper != nil, try isRoots(names, uids, at: now) { return .isRoots }
      for uid in uids { try put(nil, as: Path(uid: uid), in: Store.blockedUIDs, by: users) }
      for name in names {
        try put(nil, as: try fileName(of: name), in: Store.blocked, by: users)
      }
      return .done
    }
  }

  /// Whether root has blocked one of these, and it has not ended.
  private func isRoots(_ names: [UserName], _ uids: [UInt32], at now: UnixTime)
    throws(StoreTrouble) -> Bool
  {
    for name in names { if try blocked(name)?.isRoots(at: now) == true { return true } }
    for uid in uids { if try blocked(uid)?.isRoots(at: now) == true { return true } }
    return false
  }

  /// Whether what blocks this uid was set for the account under a name and uid before.
  private func isFree(
    _ uid: UInt32, _ account: Account, _ find: (UserName) throws(StoreTrouble) -> Account
  ) throws(StoreTrouble) -> Bool {
    if uid == account.uid { return false }
    guard let block = try blocked(uid)?.block else { return false }
    if block.user == account.name { return true }
    return try find(block.user).uid == nil
  }

  /// What blocks this account now or would, but that it has ended; the strictest first.
  package func blocks(of account: Account) throws(StoreTrouble) -> [Blocked] {
    var found: [Blocked] = []
    if let own = try blocked(account.name) { found.append(own) }
    if let uid = account.uid, let other = try blocked(uid) { found.append(other) }
    return found.sorted { $0.end > $1.end }
  }

  private func blocked(_ name: UserName) throws(StoreTrouble) -> Blocked? {
    try blocked(try fileName(of: name), in: Store.blocked)
  }

  private func blocked(_ uid: UInt32) throws(StoreTrouble) -> Blocked? {
    try blocked(Path(uid: uid), in: Store.blockedUIDs)
  }

  private func blocked(_ file: Path, in place: Path) throws(StoreTrouble) -> Blocked? {
    do throws(StoreTrouble) {
      guard let text = try text(of: file, in: place) else { return nil }
      return Blocked(block: Block.read(text), path: (root / place / file).text)
    } catch {
      if case .noStore = error { return nil }
      throw error
    }
  }

  /// All files that block somebody, by name before those by uid, each sorted.
  package func allBlocked() throws(StoreTrouble) -> [(file: StoredName, blocked: Blocked)] {
    var all: [(file: StoredName, blocked: Blocked)] = []
    for place in [Store.blocked, Store.blockedUIDs] {
      guard let folder = try folder(place) else { continue }
      let names = try folder.names().map(\.bytes).sorted { $0.lexicographicallyPrecedes($1) }
      for name in names {
        guard let found = try blocked(Path(name), in: place) else { continue }
        all.append((StoredName(directory: name), found))
      }
    }
    return all
  }

  /// Blocks the account as the name and uid before were, and lifts the block of that name, which no
  /// account has any more. A uid before stays blocked: who gets it is somebody else, and is told
  /// of. What a helper has set is root's then, who types this.
  func moveBlock(of former: UserName, _ record: Record, to account: Account) throws(StoreTrouble) {
    let before = Account(name: former, uid: record.enrollment.uid)
    guard let found = try blocks(of: before).first else { return }
    // Where nobody knows until when it holds, it has no end.
    let now = try Clock.now()
    _ = try block(account, until: found.block?.until, at: found.block?.since ?? now)
    if former == account.name { return }
    let file = try fileName(of: former)
    try changing { users throws(StoreTrouble) in
      try put(nil, as: file, in: Store.blocked, by: users)
    }
  }
}

extension Store.Blocked {
  fileprivate var end: Int64 { block?.until?.seconds ?? Int64.max }
}
