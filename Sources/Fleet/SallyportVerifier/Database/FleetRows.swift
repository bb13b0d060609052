import CService
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

extension Statement {
  /// The database, and the server's address where there is one.
  static let name = """
    SELECT concat_ws(' at ', current_database()::text, host(inet_server_addr()))
    """

  fileprivate static let sealOfFleet = "SELECT seal, canary FROM fleet"
  fileprivate static let announced = "SELECT next FROM fleet"
}

extension FleetKey {
  /// For a command that writes sealed rows: it seals as the fleet does.
  func follow(_ line: DatabaseConnection) throws(DatabaseFault) {
    let rows = try line.ask(Statement.sealOfFleet)
    guard let seal = rows.bytes(0, 0) else { return }
    if let canary = rows.bytes(0, 1), isRight(canary, "canary", []) { noteOldest(canary) }
    if let lack = lacks(seal) { throw .unusable(lack) }
    follow(seal)
  }
}

// The row of the fleet: what may be read, and how often something was lost.
extension Database {
  /// Throws where this program, or its key, is not one of this fleet.
  func fleet(by line: DatabaseConnection) throws(DatabaseFault) -> FleetRow {
    let before = books.withLock { $0.highest }
    let rows = try line.ask(Statement.fleet)
    guard rows.count == 1, let row = FleetRow(rows, 0, from: 0), let schema = rows.number(0, 6)
    else { throw .unusable("the fleet row is missing: sallyport-verifier init") }
    guard row.needs <= Schema.number else {
      throw .unusable(
        "the schema \(schema) needs version \(row.needs) of sallyport-verifier, this is "
          + "\(Schema.number): install a newer one")
    }
    guard schema >= Schema.number else {
      throw .unusable(
        "the schema is \(schema), an older one than \(Schema.number): sallyport-verifier migrate")
    }
    let (canary, seal) = (rows.bytes(0, 5) ?? [], rows.bytes(0, 4) ?? [])
    guard key.isRight(canary, "canary", []) else {
      throw .unusable(
        "the key here is not this fleet's key: sallyport-verifier key take FILE, with a copy "
          + "that key show printed on another verifier")
    }
    key.noteOldest(canary)
    if key.lacks(seal) != nil {
      try takeAnnounced(
        line.ask(Statement.announced).bytes(0, 0), present: FleetKey.id(of: seal),
        oldest: FleetKey.id(of: canary))
    }
    if let lack = key.lacks(seal) { throw .unusable(lack) }
    guard row.isRight(seal, under: key) else {
      throw .unusable("the fleet row was modified by somebody without the key")
    }
    key.follow(seal)
    books.withLock { books in
      // What was acknowledged under a higher number may be gone with that one.
      if row.distrust < before { books.lose(under: before) }
      guard row.distrust >= books.highest else { return }
      (books.highest, books.fleet) = (row.distrust, (seal, row))
    }
    return row
  }

  /// The same, of a server that may have another one's tables, or none: what it has is said, once.
  func fleetThere(by line: DatabaseConnection) throws(DatabaseFault) -> FleetRow {
    do throws(DatabaseFault) {
      let row = try fleet(by: line)
      try checkIncarnation(by: line)
      books.withLock { $0.unfit = "" }
      return row
    } catch {
      let isOther =
        switch error {
        case .unusable, .refused("42P01", _): true
        case .unreachable, .refused, .broken, .silent, .warned, .away, .aside, .moved, .outOfMemory:
          false
        }
      if isOther {
        let text = "the database\(name(by: line)) is not this fleet's: \(error.text)"
        let isNews = books.withLock { books in
          defer { books.unfit = text }
          return books.unfit != text
        }
        if isNews { alert(text + "; hosts ask other verifiers") }
      }
      throw error
    }
  }

  /// With a blank before it, and where it is; nothing where it does not say.
  func name(by line: DatabaseConnection) -> String {
    (try? line.ask(Statement.name).text(0, 0)).map { " \($0)" } ?? ""
  }

  /// The same of a row that came with others; nil: it was changed by somebody without the key, or
  /// is an older one. Where a later one was seen since they were asked for, that. `before`: the
  /// highest number of distrust that was known before they were asked for.
  func fleet(_ rows: Rows, _ row: Int, from column: Int, since before: UInt64) -> FleetRow? {
    guard let found = FleetRow(rows, row, from: column),
      let seal = rows.bytes(row, column + 4)
    else { return nil }
    let (known, knownSeal) = books.withLock { ($0.fleet?.row, $0.fleet?.seal) }
    if found != known || seal != knownSeal {
      if let lack = key.lacks(seal) {
        lose(lack)
        return nil
      }
      guard found.isRight(seal, under: key) else { return nil }
      if found.distrust < before {
        lose("the row of the fleet is older than one that was seen", lost: before)
      }
      let latest: FleetRow? = books.withLock { books in
        guard found.distrust < books.highest else {
          (books.fleet, books.highest) = ((seal, found), found.distrust)
          key.follow(seal)
          return found
        }
        return found.distrust < before ? nil : books.fleet?.row
      }
      guard let latest, latest == found else { return latest }
    }
    guard found.needs <= Schema.number else {
      lose("the tables need version \(found.needs) of sallyport-verifier, this is \(Schema.number)")
      return nil
    }
    return found
  }

  /// Whether passes, blocks and what came with them may be saved: all verifiers read it.
  var writesNew: Bool { writes(Schema.passing) }

  /// The same of 32 places, and of what came with them.
  var writesFormer: Bool { writes(Schema.placing) }

  /// Whether all verifiers answer what hosts have sealed.
  var writesSealed: Bool { writes(Schema.sealing) }

  private func writes(_ number: UInt64) -> Bool {
    books.withLock { $0.fleet?.row.writes ?? 0 } >= number
  }

  /// Writes down that what was saved may be lost: no code up to now counts any more. A clock that
  /// was not compared with the others since this verifier began does not say when that is. `lost`:
  /// not where another verifier has done so since this number of distrust; nil: in any case.
  /// Returns whether it did.
  @discardableResult
  func distrust(by line: DatabaseConnection, unlessAbove lost: UInt64? = nil) throws(DatabaseFault)
    -> Bool
  {
    let isCompared = books.withLock { $0.server != nil && !$0.isAside }
    let time = try isCompared ? clock() : fleetTime(by: line)
    return try distrust(by: line, upTo: time, unlessAbove: lost)
  }

  /// The latest time of a clock by which codes were verified, in milliseconds since 1970: this
  /// verifier's, or the database's where other verifiers that live agree with that one alone. So
  /// nobody who writes to the tables has another time written down. Throws where the two differ and
  /// nobody tells: for as long as one is ahead nobody would be let in.
  private func fleetTime(by line: DatabaseConnection) throws(DatabaseFault) -> Int64 {
    let rows = try line.ask(Statement.clocks)
    let mine = clock()
    guard rows.count > 0 else { return mine }
    func time(_ row: Int, _ column: Int) -> Int64 {
      Int64(min(rows.number(row, column) ?? 0, 1 << 50))
    }
    let there = time(0, 2)
    func isAgreed(_ offset: Int64) -> Bool {
      (0..<rows.count).contains { row in
        let age = there - time(row, 1)
        return abs(age) <= Self.lifetime && rows.bytes(row, 3) != verifier
          && abs(time(row, 0) - time(row, 1) - offset) <= ClockWatch.most
      }
    }
    switch (isAgreed(mine - there), isAgreed(0)) {
    case (true, false): return mine
    case (false, true): return there
    case (true, true), (false, false):
      guard abs(Double(mine) - Double(there)) <= Double(ClockWatch.most) else {
        throw .unusable(
          "codes have to be invalidated, but this clock is \((mine - there) / 1000) s off the "
            + "database's, and no verifier tells which is right: set the wrong one (timedatectl)")
      }
      return max(mine, there)
    }
  }

  @discardableResult
  private func distrust(
    by line: DatabaseConnection, upTo time: Int64, unlessAbove lost: UInt64? = nil
  ) throws(DatabaseFault) -> Bool {
    for _ in 0..<8 {
      let old = try fleet(by: line)
      if let lost, old.distrust > lost { return false }
      var new = old
      // A state that was saved under a later number must not be one of the future again.
      new.distrust = DistrustNumber.next(
        after: max(books.withLock { $0.highest }, lost ?? 0), at: time / 1000)
      // What another verifier accepted by its clock, which may be ahead of this one's.
      new.distrusted = time / 1000 + ClockWatch.most / 1000
      let seals = try Self.sealing { () throws(CryptoError) in
        (old: try old.seal(under: key), new: try new.seal(under: key))
      }
      let rows = try line.ask(
        Statement.distrust,
        [
          .number(old.distrust), .number(new.distrust), .number(UInt64(clamping: new.distrusted)),
          .bytes(seals.new),
        ] + values(of: line) + [.bytes(seals.old)])
      guard rows.number(0, 0) == 1 else { continue }
      books.withLock { ($0.fleet, $0.highest) = ((seals.new, new), new.distrust) }
      alert("saves were lost, or may have been: all codes up to now count as used")
      return true
    }
    throw .unusable("other verifiers keep changing the fleet row")
  }

  /// For the command: a connection that is no verifier's.
  package func distrust() throws(DatabaseFault) {
    let line = try DatabaseConnection(words, worker: 1)
    let (mine, fleet) = (clock(), try fleetTime(by: line))
    guard abs(Double(mine) - Double(fleet)) <= Double(ClockWatch.most) else {
      throw .unusable(
        "this clock is \((mine - fleet) / 1000) s off the fleet's: set it (timedatectl), and run "
          + "this again")
    }
    try distrust(by: line, upTo: max(mine, fleet))
  }

  /// For how long backup codes are refused after a loss, in seconds: until then every host has
  /// told again which ones it knows to be used.
  private static let hold: Int64 = 900

  /// Whether backup codes that are used may be taken for unused ones.
  var holdsBackupCodes: Bool {
    guard let row = books.withLock({ $0.fleet?.row }), row.distrust > 0 else { return false }
    return clock() / 1000 < row.distrusted + Self.hold
  }
}

extension FleetRow {
  /// needs, writes, distrust and distrusted, from this column on.
  init?(_ rows: Rows, _ row: Int, from column: Int) {
    let numbers = (0..<4).compactMap { rows.number(row, column + $0) }
    guard numbers.count == 4 else { return nil }
    // Within what a clock says, so that nothing overflows.
    self.init(
      needs: numbers[0], writes: numbers[1], distrust: numbers[2],
      distrusted: Int64(min(numbers[3], 1 << 40)))
  }
}
