import FleetProtocol
import FleetTransport
import OneTimePassword
import SallyportCore

extension Statement {
  private static let columns = "subject, kind, random, number, former, suspect, noted, seal"

  /// $1 subject: its row, and what the database's clock says, in milliseconds.
  static let presence = """
    SELECT \(columns), (extract(epoch FROM clock_timestamp()) * 1000)::bigint
    FROM (SELECT 1) AS one LEFT JOIN presence ON subject = $1
    """

  /// Of all.
  static let presences = "SELECT \(columns) FROM presence"

  /// $1 subject, $2 the seal that was read.
  static let endPresence = "DELETE FROM presence WHERE subject = $1 AND seal = $2 RETURNING kind"

  /// Of hosts and invitations that are gone.
  static let forgetPresences = """
    DELETE FROM presence p WHERE NOT EXISTS (SELECT FROM host WHERE key = p.subject)
      AND NOT EXISTS (SELECT FROM invite WHERE digest = p.subject)
    """

  /// $1 to $8 the row, $9 the seal that was read. Nothing where another one was faster.
  static let savePresence = """
    INSERT INTO presence (\(columns))
    VALUES ($1, $2::bigint, $3, $4::bigint, $5, $6, $7::bigint, $8)
    ON CONFLICT (subject) DO UPDATE SET kind = excluded.kind, random = excluded.random,
      number = excluded.number, former = excluded.former, suspect = excluded.suspect,
      noted = excluded.noted, seal = excluded.seal WHERE presence.seal = $9
    RETURNING kind
    """
}

/// The starts of hosts, as the table `presence` has them.
struct Presences: Sendable {
  let database: Database
  /// nil for ones that nothing remembers.
  var revocations: Revocations?

  /// What a host says of itself.
  func take(_ start: HostStart, from holder: HostIdentity) throws(DatabaseFault) -> HostStartReply {
    let (host, key) = (holder.host, holder.pin.bytes)
    if try rests(host, key) { return .rests }
    for _ in 0..<8 {
      let (rows, _) = try database.ask(Statement.presence, [.bytes(holder.pin.bytes)])
      guard let now = rows.number(0, 8) else { throw .unusable("no clock") }
      let seal = rows.bytes(0, 7)
      let old = PresenceRow.sealed(rows, 0, database.key)
      // Somebody without the key has changed it.
      if seal != nil, old == nil { return .rests }
      var row = old ?? PresenceRow(subject: holder.pin.bytes)
      let reply = row.take(start, at: Int64(clamping: now))
      if row != old {
        guard try save(row, over: seal ?? []) else { continue }
      }
      if row.kind.rests {
        try revocations?.noteRest(of: host, key, in: database)
        if old?.kind.rests != true { alert(row.kind, holder) }
      }
      return reply
    }
    throw .unusable("others keep changing what this host has said")
  }

  /// A host that keeps nothing, or the invitation for one.
  func noteEphemeral(_ subject: [UInt8]) throws(DatabaseFault) {
    _ = try save(PresenceRow(subject: subject, kind: .ephemeral), over: [])
  }

  /// As each verifier has it in its file, and the database now: root may have accepted it since.
  private func rests(_ host: [UInt8], _ key: [UInt8]) throws(DatabaseFault) -> Bool {
    guard let revocations, revocations.rests(host, key) else { return false }
    try revocations.settle(by: database)
    return revocations.rests(host, key)
  }

  /// Whether it may hold backup codes, as it is now.
  func mayHold(_ holder: HostIdentity) throws(DatabaseFault) -> Bool {
    if try rests(holder.host, holder.pin.bytes) { return false }
    return try kind(of: holder.pin.bytes) == .usual
  }

  /// As it is now; nil where somebody without the key has changed it.
  func kind(of subject: [UInt8]) throws(DatabaseFault) -> PresenceRow.Kind? {
    let (rows, _) = try database.ask(Statement.presence, [.bytes(subject)])
    if rows.bytes(0, 7) == nil { return .usual }
    return PresenceRow.sealed(rows, 0, database.key)?.kind
  }

  private func save(_ row: PresenceRow, over seal: [UInt8]) throws(DatabaseFault) -> Bool {
    let values = try Database.sealing { () throws(CryptoError) in
      try row.values(under: database.key)
    }
    return try database.ask(Statement.savePresence, values + [.bytes(seal)]).0.count == 1
  }

  private func alert(_ kind: PresenceRow.Kind, _ holder: HostIdentity) {
    let name = String(decoding: holder.host, as: UTF8.self)
    database.alert(
      "host \(name) "
        + (kind == .copied
          ? "runs twice: an earlier start of it speaks after a later one"
          : "was put back: it had said more before")
        + "; its reserve and its rights rest until sallyport-verifier hosts accept \(name)")
  }
}

extension PresenceRow {
  /// By how much a number goes up at most, from nothing too.
  private static let step: UInt64 = 1 << 32
  private static let mostFormer = 8
  /// How often it is written down that a host has said the same again, and after how long one that
  /// has not counts as one that says it no more, in milliseconds.
  static let (stamping, silence): (Int64, Int64) = (300_000, 1_200_000)
  /// How long after the first time a start that says what is too old is believed to be there still,
  /// in milliseconds. A question that was late comes once.
  private static let lateness: Int64 = 2000

  mutating func take(_ start: HostStart, at now: Int64) -> HostStartReply {
    switch kind {
    case .ephemeral: return .fine
    case .putBack, .copied, .givenUp: return .rests
    case .usual: break
    }
    let isFormer = former.contains(start.random)
    let isNew = start.random != random
    guard
      isFormer || start.number < number || isNew && start.number == number
        || start.number - number > Self.step
    else {
      if isNew, !random.isEmpty { former = Array(([random] + former).prefix(Self.mostFormer)) }
      (random, number, suspect) = (start.random, start.number, [])
      if now < noted || now - noted >= Self.stamping { noted = now }
      return .fine
    }
    guard suspect == start.random, now >= noted else {
      (suspect, noted) = (start.random, now)
      return .again
    }
    if now - noted < Self.lateness { return .again }
    kind = isFormer ? .copied : .putBack
    return .rests
  }

  /// Whether it rests, or says nothing more. `now`: in milliseconds; nil: not known.
  func rests(at now: Int64?) -> Bool {
    kind.rests || kind == .usual && noted > 0 && now.map { $0 - noted > Self.silence } == true
  }

  /// nil for one that was made or changed by somebody without the key, and where there is none.
  static func sealed(_ rows: Rows, _ row: Int, _ key: FleetKey) -> Self? {
    guard let found = Self(rows, row), let seal = rows.bytes(row, 7) else { return nil }
    return found.isRight(seal, under: key) ? found : nil
  }

  /// Whatever its seal says; nil where none can be right.
  init?(_ rows: Rows, _ row: Int) {
    guard let subject = rows.bytes(row, 0), let kind = rows.number(row, 1).flatMap(Kind.init),
      let random = rows.bytes(row, 2), let number = rows.number(row, 3),
      let former = rows.bytes(row, 4), let suspect = rows.bytes(row, 5),
      let noted = rows.number(row, 6)
    else { return nil }
    self.init(subject: subject, kind: kind)
    (self.random, self.number, self.suspect) = (random, number, suspect)
    self.noted = Int64(clamping: noted)
    let length = HostStart.randomLength
    self.former = stride(from: 0, to: former.count, by: length).map {
      Array(former[$0..<min($0 + length, former.count)])
    }
  }

  func values(under key: FleetKey) throws(CryptoError) -> [Value] {
    [
      .bytes(subject), .number(kind.rawValue), .bytes(random), .number(number),
      .bytes(Array(former.joined())), .bytes(suspect), .number(UInt64(clamping: noted)),
      .bytes(try seal(under: key)),
    ]
  }
}
