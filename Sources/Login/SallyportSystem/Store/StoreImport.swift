internal import CSystem
internal import OneTimePassword
package import SallyportCore

extension Store {
  /// How many users are enrolled at once. The users directory is locked meanwhile, and others stop
  /// waiting for it after five seconds.
  package static let batch = 1000

  /// Enrolls many users, who must not be enrolled. Returns nil for each who is enrolled now,
  /// otherwise the error.
  ///
  /// It creates all directories, syncs the file system once, and then gives them their names. So
  /// every directory with a user's name is complete, whenever the machine stops, and there are two
  /// syncs instead of four for each user. Throws if no user was enrolled.
  package func create(all new: [(Enrollment, LoginState)]) throws(StoreTrouble) -> [StoreTrouble?] {
    try changing { parent throws(StoreTrouble) in
      let made = try makeAll(new, on: parent)
      var results: [StoreTrouble?] = []
      for (index, unfinished) in made.enumerated() {
        results.append(nameTrouble(unfinished, new[index].0.user, on: parent))
        if results[index] != nil { wipe(unfinished.name, in: parent) }
      }
      try check(sys_sync(parent.number), "fsync", users)
      return results
    }
  }

  private func makeAll(_ new: [(Enrollment, LoginState)], on parent: borrowing Descriptor)
    throws(StoreTrouble) -> [Unfinished]
  {
    var made: [Unfinished] = []
    made.reserveCapacity(new.count)
    do throws(StoreTrouble) {
      for (enrollment, state) in new {
        let unfinished = try Unfinished()
        try unfinished.make(
          in: parent, users, enrollment: try text(enrollment), state: try pages(state),
          synced: false)
        made.append(unfinished)
      }
      try check(sys_sync_file_system(parent.number), "syncfs", users)
      return made
    } catch {
      for unfinished in made { wipe(unfinished.name, in: parent) }
      throw error
    }
  }

  private func nameTrouble(_ made: Unfinished, _ user: UserName, on parent: borrowing Descriptor)
    -> StoreTrouble?
  {
    do throws(StoreTrouble) {
      try rename(made, to: try location(of: user), on: parent)
      return nil
    } catch {
      return error
    }
  }

  /// Leaves the users directory to others for a moment; they try for it every five milliseconds.
  package func makeWay() { sys_sleep(6_000_000) }
}
