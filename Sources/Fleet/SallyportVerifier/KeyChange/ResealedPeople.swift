import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

extension Statement {
  /// $1 the last name of the page before, $2 the id of the key of before, $3 how many: names, and a
  /// digest of what is there where something of it names that key. The rows of verifiers are empty.
  fileprivate static let resealed = """
    SELECT e.name, CASE WHEN octet_length(e.body) > 0 AND (substr(e.body, 2, 4) = $2::bytea
      OR substr(coalesce(s.body, e.body), 2, 4) = $2::bytea)
      THEN sha256(e.body || coalesce(s.body, '')) END
    FROM enrollment e LEFT JOIN state s ON s.name = e.name
    WHERE e.name > $1 ORDER BY e.name LIMIT $3::int
    """
}

extension Database {
  private static let page: UInt64 = 1000
  /// How many people's rows are looked at where they are counted.
  private static let mostCounted = 1000

  /// `pause`: after each row.
  func resealPeople(_ pass: inout ResealPass, _ pause: () throws(DatabaseFault) -> Void)
    throws(DatabaseFault)
  {
    let known = pass.disbelieved
    pass.disbelieved = [:]
    var last: [UInt8] = []
    var isOver = false
    while !isOver {
      let (rows, _) = try ask(
        Statement.resealed, [.bytes(last), .bytes(pass.former), .number(Self.page)])
      for row in 0..<rows.count {
        guard let name = rows.bytes(row, 0) else { continue }
        last = name
        guard let there = rows.bytes(row, 1) else { continue }
        if let row = known[name], row.digest == there {
          pass.add(disbelieved: name, row)
        } else if pass.aim == .count, pass.left.count >= Self.mostCounted {
          pass.add(left: name)
        } else {
          try reseal(name, there, &pass)
          try pause()
        }
      }
      isOver = rows.count < Int(Self.page)
    }
  }

  private func reseal(_ name: [UInt8], _ there: [UInt8], _ pass: inout ResealPass)
    throws(DatabaseFault)
  {
    var store = FleetStore(
      self, Event(of: "sallyport-verifier", on: bytes(of: "key"), name: name), uid: nil)
    store.voice = pass.aim == .count ? .silent : .ofRows
    switch try store.reseal(name, pass.aim) {
    case .done: break
    case .left: pass.add(left: name)
    case .late(let reason): pass.add(late: name, reason)
    case .disbelieved(let isOld):
      pass.add(disbelieved: name, ResealPass.Disbelieved(digest: there, isOld: isOld))
    }
  }
}

extension FleetStore {
  /// What came of somebody's rows.
  enum Resealed: Equatable {
    case done
    case left
    /// They are locked, or the server refuses, for this reason.
    case late(String)
    /// No key opens them, or not both of them together; or this verifier has seen newer ones.
    case disbelieved(isOld: Bool)
  }

  /// Somebody's rows, or a decoy's, are saved as they are, sealed with the present key: the version
  /// goes up as with every save, the serial of the document stays.
  func reseal(_ key: [UInt8], _ aim: ResealPass.Aim) throws(DatabaseFault) -> Resealed {
    do throws(StoreTrouble) {
      return try database.alone(for: try hash(of: key), until: deadline) {
        () throws(StoreTrouble) -> Resealed in
        for _ in 0..<Self.attempts {
          guard let row = try row(of: key, reload: true) else { return .done }
          if aim == .count { return .left }
          if try saveBoth(row.document, row.state, of: key, over: row.mark, isSame: true) {
            return .done
          }
        }
        return .left
      }
    } catch {
      if database.isAway { throw .away }
      if let reason = unanswered { return .late(reason) }
      // Else others are at it, memory is short, or it is the row of the fleet.
      return loaded.rowFault.withLock { $0?.resealed } ?? .left
    }
  }
}

extension RowFault {
  fileprivate var resealed: FleetStore.Resealed {
    switch self {
    case .crypto, .sealed(.crypto), .future: .left
    case .gone, .behind, .twin: .disbelieved(isOld: true)
    case .noState, .sealed, .unreadable, .otherUser, .otherEnrollment, .exhausted:
      .disbelieved(isOld: false)
    }
  }
}
