internal import CSystem
package import OneTimePassword
package import SallyportCore

// `blocked/NAME` and `blocked-uids/UID`: who is blocked. A file in either says so.

/// Reads the clock.
package typealias TimeSource = () throws(StoreTrouble) -> UnixTime

extension Store {
  package static var blocked: Path { "blocked" }
  package static var blockedUIDs: Path { "blocked-uids" }

  /// Whether somebody may be blocked: false where neither directory is there. Every account phase
  /// asks this, and most stores have neither.
  @inline(never) package func mayBlock() throws(StoreTrouble) -> Bool {
    if try isThere(Store.blocked) { return true }
    return try isThere(Store.blockedUIDs)
  }

  @inline(never) private func isThere(_ place: Path) throws(StoreTrouble) -> Bool {
    let path = root / place
    return try found(path, in: AT_FDCWD, path) != nil
  }

  /// Whether root has blocked this account, by its name or its uid. Throws where a file or a
  /// directory is there and cannot be read.
  @inline(never)
  package func isBlocked(_ account: Account, at now: TimeSource) throws(StoreTrouble) -> Bool {
    guard try mayBlock() else { return false }
    if try blocks(fileName(of: account.name), in: Store.blocked, now) { return true }
    guard let uid = account.uid else { return false }
    return try blocks(Path(uid: uid), in: Store.blockedUIDs, now)
  }

  @inline(never)
  private func blocks(_ file: Path, in place: Path, _ now: TimeSource) throws(StoreTrouble) -> Bool
  {
    guard let text = try text(of: file, in: place) else { return false }
    return !Block.isOver(text, at: try now())
  }

  /// The text of this file in a directory of the store; nil if there is none.
  @inline(never)
  package func text(of file: Path, in place: Path) throws(StoreTrouble) -> Secret? {
    try checks.walk(to: root)
    let place = UserDirectory(parent: root, name: place)
    guard let directory = try OpenUserDirectory.open(place, on: try openParent(root), checks)
    else { return nil }
    return try directory.text(of: file, checks)
  }
}
