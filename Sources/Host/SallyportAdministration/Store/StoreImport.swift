import CService
import OneTimePassword
package import SallyportCore
package import SallyportSystem

extension Store {
  /// How many users are enrolled at once. The users' directory is locked meanwhile, and others stop
  /// waiting for it after five seconds.
  package static let batch = 1000

  /// Enrolls many users, who must not be enrolled. Returns nil for each who is enrolled now,
  /// otherwise the error.
  ///
  /// It creates all directories, syncs the file system once, and then gives them their names. So
  /// every directory with a user's name is complete, whenever the machine stops, and there are two
  /// syncs instead of four for each user. Throws if no user was enrolled.
  package func create(all new: [(Enrollment, LoginState)]) throws(StoreTrouble) -> [StoreTrouble?] {
    try changing { users throws(StoreTrouble) in
      let made = try makeAll(new, in: users)
      var results: [StoreTrouble?] = []
      for (index, unfinished) in made.enumerated() {
        results.append(nameTrouble(unfinished, new[index].0.user, in: users))
        if results[index] != nil { users.wipe(unfinished) }
      }
      try users.sync()
      return results
    }
  }

  private func makeAll(_ new: [(Enrollment, LoginState)], in users: borrowing StoreFolder)
    throws(StoreTrouble) -> [Path]
  {
    var made: [Path] = []
    made.reserveCapacity(new.count)
    do throws(StoreTrouble) {
      for (enrollment, state) in new {
        made.append(try users.make(try text(enrollment), state, synced: false))
      }
      try check(sys_sync_file_system(users.number), "syncfs", users.path)
      return made
    } catch {
      for unfinished in made { users.wipe(unfinished) }
      throw error
    }
  }

  private func nameTrouble(_ made: Path, _ user: UserName, in users: borrowing StoreFolder)
    -> StoreTrouble?
  {
    do throws(StoreTrouble) {
      try users.rename(made, to: try fileName(of: user))
      return nil
    } catch {
      return error
    }
  }

  /// Leaves the users' directory to others for a moment; they try for it every five milliseconds.
  package func makeWay() { sys_sleep(6_000_000) }
}
