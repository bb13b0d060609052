internal import CSystem
internal import OneTimePassword
package import SallyportCore

extension Store {
  /// How many are enrolled at once: the users directory stays locked meanwhile, and whoever waits
  /// for it gives up after five seconds.
  package static let batch = 1000

  /// Enrolls many, none of whom is enrolled: nil for each who is now, or why not.
  ///
  /// All directories are made, then the file system is synced once, then they get their names: so
  /// each that has a name is whole, whenever the machine stops. Two flushes for all in place of
  /// four for each. Throws where nobody of them is enrolled.
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

  /// Lets others have the users directory for a moment, who look for it every five milliseconds.
  package func makeWay() { sys_sleep(6_000_000) }
}
