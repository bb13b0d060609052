import OneTimePassword
import SallyportCore
import SallyportLogin
package import SallyportSupport
package import SallyportSystem

/// What a dump of the fleet's database has.
package struct BackupReport: Equatable, Sendable {
  /// People who are enrolled, and who have a record without being so.
  package var enrolled = 0
  package var others = 0
  package var hosts = 0
  /// Of the tables; nil: there is no row of the fleet.
  package var schema: UInt64?
  /// The serial of the newest policy; nil: there is none.
  package var policy: UInt64?
  /// Of the last save, or the last sign of life of a verifier, in seconds since 1970.
  package var made: Int64?
  /// How many signs of life of this verifier came later, one each two seconds while it runs; nil:
  /// it has no file that says so, or the dump does not know it.
  package var later: UInt64?
  /// Why it is not complete, in sentences without an end.
  package fileprivate(set) var flaws: [String] = []

  package var isComplete: Bool { flaws.isEmpty }
}

/// Opens a dump with the key of the fleet, row by row, in memory alone.
package struct BackupCheck {
  private let key: FleetKey
  private let verifier: [UInt8]
  private let memory: Memory
  /// For the names of people, of this check alone.
  private let rollbackGuard: RollbackGuard

  private var report = BackupReport()
  private var isWhole = false
  private var (tables, copied): (Set<String>, Set<String>) = ([], [])
  private var fleet: FleetRow?
  private var fleets = 0
  /// Bodies whose other half has not come yet.
  private var enrollments: [[UInt8]: [UInt8]] = [:]
  private var states: [[UInt8]: (version: UInt64, body: [UInt8])] = [:]
  private var decoys = 0
  /// Rows that nobody can believe: of which table, and why; and whose they are.
  private var wrong: [String: [String]] = [:]

  /// `verifier`: whose file `memory` is.
  package init(_ key: FleetKey, verifier: String, memory: String) throws(StoreTrouble) {
    (self.key, self.verifier) = (key, Array(verifier.utf8))
    self.memory = Memory(at: memory)
    rollbackGuard = try RollbackGuard()
  }

  package static func read(_ file: borrowing OpenFile, _ check: consuming BackupCheck)
    throws(Dump.Fault) -> BackupReport
  {
    var check = check
    try Dump.read(file, wanted: wanted) { part in check.take(part) }
    return check.end()
  }

  private static let wanted: Set<String> = [
    "enrollment", "state", "fleet", "host", "invite", "revoked", "presence", "policy", "worker",
  ]

  private mutating func take(_ part: Dump.Part) {
    switch part {
    case .table(let name): tables.insert(name)
    case .rows(let name): copied.insert(name)
    case .row(let row): take(row)
    case .end: isWhole = true
    }
  }

  private mutating func take(_ row: DumpRow) {
    switch row.table {
    case "enrollment": takeEnrollment(row)
    case "state": takeState(row)
    case "fleet": takeFleet(row)
    case "host": takeHost(row)
    case "worker": note(row.time("now"))
    case _: takeSealed(row)
    }
  }

  private mutating func note(_ time: Int64?) {
    report.made = [report.made, time].compactMap { $0 }.max()
  }

  private mutating func add(_ what: String, _ name: String) {
    wrong[what, default: []].append(name)
  }
}

// MARK: people

extension BackupCheck {
  private static let witness = Array("/verifier/".utf8)

  private mutating func takeEnrollment(_ row: DumpRow) {
    guard let name = row.bytes("name"), let body = row.bytes("body") else {
      return add("enrollment", "a row that is none")
    }
    // Those of verifiers are empty.
    if name.starts(with: Self.witness) { return }
    if let state = states.removeValue(forKey: name), fleet != nil {
      check(name, body, state)
    } else {
      enrollments[name] = body
    }
  }

  private mutating func takeState(_ row: DumpRow) {
    guard let name = row.bytes("name"), let body = row.bytes("body"),
      let version = row.natural("version")
    else { return add("state", "a row that is none") }
    note(row.time("saved"))
    if name.starts(with: Self.witness) {
      if name.dropFirst(Self.witness.count).elementsEqual(verifier) { noteLater(than: version) }
    } else if fleet != nil, let enrollment = enrollments.removeValue(forKey: name) {
      check(name, enrollment, (version, body))
    } else {
      states[name] = (version, body)
    }
  }

  private mutating func noteLater(than version: UInt64) {
    guard let mark = memory.record?.mark else { return }
    report.later = mark > version ? mark - version : 0
  }

  private mutating func check(
    _ name: [UInt8], _ enrollment: [UInt8], _ state: (version: UInt64, body: [UInt8])?
  ) {
    let isDecoy = FleetStore.isDecoy(name)
    do throws(RowFault) {
      let user = try rethrow(
        { () throws(CryptoError) in isDecoy ? nil : try rollbackGuard.mark(of: name) },
        as: RowFault.crypto)
      var columns = Columns(
        user: user, seenBefore: nil, enrollment: enrollment, state: state?.body,
        version: state?.version)
      columns.distrust = Distrust(
        number: fleet?.distrust ?? 0, time: UnixTime(fleet?.distrusted ?? 0))
      let row = try key.row(columns, of: name)
      if isDecoy {
        decoys += 1
        return
      }
      guard let enrolled = row.document.enrollment else {
        report.others += 1
        return
      }
      guard same(enrolled.user.bytes, name) else { throw .otherUser }
      report.enrolled += 1
    } catch {
      add("\(error.text)", printable(name, limit: 256))
    }
  }
}

// MARK: other rows

extension BackupCheck {
  private mutating func takeFleet(_ row: DumpRow) {
    fleets += 1
    report.schema = row.natural("schema")
    guard let needs = row.natural("needs"), let writes = row.natural("writes"),
      let distrust = row.natural("distrust"), let distrusted = row.number("distrusted"),
      let seal = row.bytes("seal"), let canary = row.bytes("canary")
    else { return report.flaws.append("its row of the fleet cannot be read") }
    guard key.isRight(canary, "canary", []) else {
      return report.flaws.append(
        "its key is not the one here: a dump is opened with the key of its time")
    }
    let found = FleetRow(needs: needs, writes: writes, distrust: distrust, distrusted: distrusted)
    if !found.isRight(seal, under: key) { add("fleet", "the row of the fleet") }
    if needs > Schema.number {
      report.flaws.append(
        "it needs version \(needs) of sallyport-verifier, this is \(Schema.number)")
    }
    if let incarnation = row.bytes("incarnation"), !isRight(incarnation: incarnation) {
      add("fleet", "its incarnation")
    }
    fleet = found
  }

  private func isRight(incarnation: [UInt8]) -> Bool {
    let length = Database.incarnationLength
    return key.isRight(
      Array(incarnation.dropFirst(length)), "incarnation", [Array(incarnation.prefix(length))])
  }

  private mutating func takeHost(_ row: DumpRow) {
    let name = row.text("name") ?? []
    let known = printable(name, limit: 256)
    guard let enrolls = row.flag("enrolls"), let joined = row.number("joined"),
      let seal = row.bytes("seal")
    else { return add("host", known) }
    let host = HostRow(name: name, key: row.bytes("key"), enrolls: enrolls, joined: joined)
    let rights = row.bytes("rights")
    let hasRights = rights.map { SealedRights.read($0, under: key, of: .host(host)) != nil } ?? true
    if host.isRight(seal, under: key), hasRights { report.hosts += 1 } else { add("host", known) }
  }

  private mutating func takeSealed(_ row: DumpRow) {
    let seal = row.bytes("seal") ?? []
    let isRight =
      switch row.table {
      case "invite": InviteRow(row)?.isRight(seal, under: key)
      case "revoked": RevokedRow(row)?.isRight(seal, under: key)
      case "presence": PresenceRow(row)?.isRight(seal, under: key)
      case _: takePolicy(row, seal)
      }
    if isRight != true { add(row.table, row.text("host").map { printable($0) } ?? "one") }
  }

  private mutating func takePolicy(_ row: DumpRow, _ seal: [UInt8]) -> Bool? {
    guard let serial = row.natural("serial"), let at = row.number("at"),
      let author = row.text("author"), let text = row.bytes("body")
    else { return nil }
    report.policy = max(report.policy ?? 0, serial)
    return StoredPolicy(serial: serial, at: at, author: author, text: text)
      .isRight(seal, under: key)
  }
}

extension InviteRow {
  fileprivate init?(_ row: DumpRow) {
    guard let digest = row.bytes("digest"), let host = row.text("host"),
      let enrolls = row.flag("enrolls"), let until = row.number("until")
    else { return nil }
    self.init(digest: digest, host: host, enrolls: enrolls, until: until, key: row.bytes("key"))
  }
}

extension RevokedRow {
  fileprivate init?(_ row: DumpRow) {
    guard let subject = row.bytes("subject"), let host = row.text("host"),
      let at = row.number("at")
    else { return nil }
    self.init(subject: subject, host: host, at: at)
  }
}

extension PresenceRow {
  fileprivate init?(_ row: DumpRow) {
    guard let subject = row.bytes("subject"), let kind = row.natural("kind").flatMap(Kind.init),
      let random = row.bytes("random"), let number = row.natural("number"),
      let former = row.bytes("former"), let suspect = row.bytes("suspect"),
      let noted = row.number("noted")
    else { return nil }
    self.init(subject: subject, kind: kind)
    (self.random, self.number, self.suspect, self.noted) = (random, number, suspect, noted)
    // What is sealed is all of them together.
    self.former = [former]
  }
}

// MARK: the whole

extension BackupCheck {
  private static let mostNamed = 5
  private static let decoys = 64

  private mutating func end() -> BackupReport {
    if !isWhole { report.flaws.append("it does not end as pg_dump ends: it was cut off") }
    guard fleets == 1 else {
      report.flaws.append("it has \(fleets) rows of the fleet, not one")
      return report
    }
    // Nothing is right by another key; the flaw is told.
    guard fleet != nil else { return report }
    for (name, enrollment) in enrollments {
      check(name, enrollment, states.removeValue(forKey: name))
    }
    for name in states.keys {
      add("the row of the enrollment is missing", printable(name, limit: 256))
    }
    report.flaws += missing
    if decoys < Self.decoys {
      report.flaws.append(
        "it has \(decoys) of the \(Self.decoys) decoys: sallyport-verifier init "
          + "makes them after a restore")
    }
    for (what, names) in wrong.sorted(by: { $0.key < $1.key }) {
      let shown = names.sorted().prefix(Self.mostNamed).joined(separator: ", ")
      let more = names.count > Self.mostNamed ? " and \(names.count - Self.mostNamed) more" : ""
      let reason =
        Self.wanted.contains(what) ? "not sealed with the key, in the table \(what)" : what
      report.flaws.append("\(reason): \(shown)\(more)")
    }
    return report
  }

  /// Tables of its version, or their rows, that it has not.
  private var missing: [String] {
    let isOlder = report.schema ?? 0 < Schema.number
    let later = isOlder ? Schema.names(in: Schema.additions) : []
    let names = Schema.names(in: Schema.tables + Schema.event).subtracting(later)
    // The rows of events are in their days.
    let withRows = names.filter { !$0.hasPrefix("event") }
    return names.subtracting(tables).sorted().map { "the table \($0) is missing" }
      + withRows.intersection(tables).subtracting(copied).sorted().map {
        "the rows of the table \($0) are missing, or are not written as COPY"
      }
  }
}

extension Schema {
  /// Of the tables that these statements make.
  fileprivate static func names(in statements: [String]) -> Set<String> {
    Set(
      statements.compactMap { statement in
        let words = statement.replacing("IF NOT EXISTS ", with: "").split { " \n(".contains($0) }
        return words.count > 2 && words[0].first == "C" && words[1] == "TABLE"
          ? String(words[2]) : nil
      })
  }
}
