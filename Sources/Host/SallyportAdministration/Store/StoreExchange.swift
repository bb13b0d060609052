import CService
import OneTimePassword
import SallyportSystem

extension Store {
  /// Puts a new directory in place of the present one. If they can be exchanged at once, the old
  /// one then has the name of the new one, and the caller wipes it after a sync.
  func exchange(_ made: Path, with name: Path, in users: borrowing StoreFolder)
    throws(StoreTrouble)
  {
    // SAFETY: the C strings live for the call.
    let result =
      exchanges ? unsafe sys_exchange(users.number, made.cString, name.cString) : -EINVAL
    if result == -EINVAL || result == -ENOSYS { return try moveIn(made, name, in: users) }
    try check(result, "rename", users.path / name)
  }

  /// For file systems that cannot exchange: moves file by file, under a name that says so.
  ///
  /// A login meanwhile finds the new enrollment with the state of the old one, which is an error;
  /// at no moment is the user not enrolled. `completeMoves` completes what a crash interrupted.
  private func moveIn(_ made: Path, _ name: Path, in users: borrowing StoreFolder)
    throws(StoreTrouble)
  {
    let marker = Leftover.moving(name)
    try users.rename(made, over: marker)
    try users.sync()
    do throws(StoreTrouble) {
      try users.move("enrollment", from: marker, to: name)
    } catch {
      users.wipe(marker)
      throw error
    }
    try users.move("state", from: marker, to: name)
    users.wipe(marker)
  }

  /// Completes the moves that a crash interrupted; one that had not begun is dropped. Needs the
  /// lock of the users' directory.
  func completeMoves(in users: borrowing StoreFolder) throws(StoreTrouble) {
    for marker in try users.names() {
      guard let user = rest(of: marker.bytes, after: Leftover.moving) else { continue }
      try completeMove(marker, Path(user), in: users)
      users.wipe(marker)
    }
  }

  private func completeMove(_ marker: Path, _ name: Path, in users: borrowing StoreFolder)
    throws(StoreTrouble)
  {
    let hasBegun = try !users.has(marker / "enrollment")
    guard hasBegun, try users.has(marker / "state"), try users.has(name) else { return }
    try users.move("state", from: marker, to: name)
  }
}
