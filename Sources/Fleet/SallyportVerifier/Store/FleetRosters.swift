import FleetProtocol
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

extension Statement {
  /// $1 names: as `load`, of many.
  fileprivate static let loadAll = """
    SELECT e.name, e.body, s.body, s.version, f.needs, f.writes, f.distrust, f.distrusted, f.seal
    FROM fleet f LEFT JOIN enrollment e ON e.name = ANY ($1::bytea[])
      LEFT JOIN state s ON s.name = e.name
    """
}

// What doctor asks about many people at once.
extension FleetStore {
  /// Of each of them, by one statement. Somebody whose rows cannot be believed is one of them.
  func roster(of names: [UserName]) throws(StoreTrouble) -> [RosterAnswer.Entry] {
    try load(all: names.map(\.bytes))
    return names.map { name in
      do throws(StoreTrouble) {
        return try row(of: name.bytes).entry
      } catch {
        return RosterAnswer.Entry(.unreadable, nil)
      }
    }
  }

  /// As `load` does of one.
  func load(all keys: [[UInt8]]) throws(StoreTrouble) {
    try fetch(keys, by: Statement.loadAll, [.text(FleetStore.array(keys))])
  }

  /// A text of PostgreSQL for an array of bytes: `{"\\x616c","\\x62"}`.
  private static func array(_ values: [[UInt8]]) -> [UInt8] {
    let texts = values.map { bytes(of: "\"\\\\x") + hexadecimal($0) + bytes(of: "\"") }
    return bytes(of: "{") + texts.joined(separator: bytes(of: ",")) + bytes(of: "}")
  }
}

extension Row? {
  fileprivate var entry: RosterAnswer.Entry {
    guard let self else { return RosterAnswer.Entry(.notEnrolled, nil) }
    let place: RosterAnswer.Entry.Place =
      switch self.document.place {
      case .enrolled(let enrollment): .enrolled(enrollment.factors)
      case .notEnrolled, .removed: .notEnrolled
      case .taken(_, _, let host): .taken(by: host)
      }
    return RosterAnswer.Entry(place, self.document.note.level)
  }
}
