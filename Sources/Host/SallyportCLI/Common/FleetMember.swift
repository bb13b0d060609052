import SallyportAdministration
package import SallyportCore

/// What the fleet has of one person, without secrets.
package struct FleetMember {
  /// Whether somebody is enrolled, and where.
  package enum Place {
    case enrolled(Enrolled)
    case notEnrolled
    /// By the files of this host.
    case taken(by: String)
    /// The verifiers do not believe the rows, and refuse all logins by them.
    case unreadable
  }

  /// What somebody has, and what was used of it.
  package struct Enrolled {
    let authenticators: [String]
    let backupCodesLeft: Int
    let since: UnixTime
    let lastUse: UnixTime?
    let openPasses: Int
    let lock: Lock

    package init(
      _ authenticators: [String], backupCodesLeft: Int, since: UnixTime, lastUse: UnixTime?,
      openPasses: Int, lock: Lock
    ) {
      (self.authenticators, self.backupCodesLeft) = (authenticators, backupCodesLeft)
      (self.since, self.lastUse) = (since, lastUse)
      (self.openPasses, self.lock) = (openPasses, lock)
    }
  }

  /// Whether wrong codes are used up, from known places or from elsewhere.
  package enum Lock: Equatable {
    case none
    case until(UnixTime)
    /// Until somebody unlocks.
    case forGood
  }

  /// As the row has it: any bytes.
  package let name: [UInt8]
  let place: Place
  let level: UserNote.Level?
  /// Perhaps over by now.
  let block: Block?

  package init(_ name: [UInt8], _ place: Place, level: UserNote.Level?, block: Block?) {
    (self.name, self.place, self.level, self.block) = (name, place, level, block)
  }
}
