import OneTimePassword
import SallyportCore

extension Statement {
  fileprivate static let invites = """
    SELECT digest, host, enrolls, until, key, seal, rights FROM invite
    """

  /// $1 name, $2 and $3 its seal and rights until now, $4 and $5 the new ones, $6 and $7 what
  /// stands in `reopened` until now, and the new one.
  fileprivate static let resealHost = """
    UPDATE host SET seal = $4, rights = $5, reopened = $7 WHERE name = $1 AND seal = $2
      AND rights IS NOT DISTINCT FROM $3::bytea AND reopened IS NOT DISTINCT FROM $6::bytea
    RETURNING name
    """

  /// The same of an invitation, by its digest.
  fileprivate static let resealInvite = """
    UPDATE invite SET seal = $4, rights = $5 WHERE digest = $1 AND seal = $2
      AND rights IS NOT DISTINCT FROM $3::bytea RETURNING digest
    """
}

/// Rows that are sealed with the key of before.
package struct KeyLeft: Equatable, Sendable {
  /// How many a verifier seals again, and whose the first ones are: names of people and of hosts,
  /// or what else they are.
  package var count = 0
  package var names: [[UInt8]] = []
  /// People whose rows nobody can believe.
  package var disbelieved: [[UInt8]] = []
  private static let most = 5

  mutating func add(_ name: [UInt8]) {
    count += 1
    if names.count < Self.most, !FleetStore.isDecoy(name) { names.append(name) }
  }
}

/// One pass over all rows that are sealed with the key of before, and what it found.
struct ResealPass {
  /// What is to be done with them.
  enum Aim {
    /// They are sealed with the present one: what this verifier cannot, is left.
    case seal
    /// They are counted.
    case count
  }

  /// Somebody's rows.
  struct Disbelieved: Equatable {
    /// A digest of what is there.
    let digest: [UInt8]
    /// They are right, but this verifier has seen newer ones: one that is restarted seals them
    /// again.
    let isOld: Bool
  }

  let aim: Aim
  /// The id of the key of before.
  fileprivate(set) var former: [UInt8] = []
  private(set) var left = KeyLeft()
  /// People's rows that are not believed: they are not looked at again before they change.
  var disbelieved: [[UInt8]: Disbelieved]
  /// What could not be sealed again for now, and why.
  private(set) var late: [[UInt8]: String] = [:]

  init(_ aim: Aim, disbelieved: [[UInt8]: Disbelieved] = [:]) {
    (self.aim, self.disbelieved) = (aim, disbelieved)
  }

  /// Whether this seal names the key of before.
  func isFormer(_ seal: [UInt8]?) -> Bool { seal?.starts(with: former) ?? false }

  mutating func add(left name: [UInt8]) { left.add(name) }

  mutating func add(disbelieved name: [UInt8], _ row: Disbelieved) {
    if row.isOld { left.add(name) } else { left.disbelieved.append(name) }
    disbelieved[name] = row
  }

  mutating func add(late name: [UInt8], _ reason: String) {
    left.add(name)
    late[name] = reason
  }

  /// One row. `body`: seals it again; false: another one was faster.
  mutating func seal(_ name: [UInt8], _ body: () throws(DatabaseFault) -> Bool)
    throws(DatabaseFault)
  {
    if aim == .count { return left.add(name) }
    do throws(DatabaseFault) {
      if try !body() { left.add(name) }
    } catch {
      // Such as one that somebody has locked.
      guard case .refused = error, !error.isOfTheServer else { throw error }
      add(late: name, error.text)
    }
  }
}

// A row whose seal is wrong needs no key: it is left as it is, and not counted. Neither are rights
// that nobody with a key has sealed.
extension Database {
  /// All tables once. `pause`: after each row of a person.
  func reseal(_ pass: inout ResealPass, _ pause: () throws(DatabaseFault) -> Void)
    throws(DatabaseFault)
  {
    guard let former = key.former else { return }
    pass.former = FleetKey.bytes(of: former.id)
    try reseal(try hostsWithRights(), by: Statement.resealHost, &pass)
    try reseal(try invitesWithRights(), by: Statement.resealInvite, &pass)
    try resealRevoked(&pass)
    try resealPresences(&pass)
    try resealIncarnation(&pass)
    try resealPolicies(&pass)
    try resealPeople(&pass, pause)
  }

  // MARK: hosts and invitations

  /// A row of a host or an invitation, as it stands there.
  private struct WithRights {
    let owner: RightsOwner
    let seal: [UInt8]
    let rights: [UInt8]?
    var reopened: [UInt8]?
  }

  private func hostsWithRights() throws(DatabaseFault) -> [WithRights] {
    let (rows, _) = try ask(Statement.hosts)
    return (0..<rows.count).compactMap { row in
      guard let host = HostRow(rows, row), let seal = rows.bytes(row, 4),
        host.isRight(seal, under: key)
      else { return nil }
      return WithRights(
        owner: .host(host), seal: seal, rights: rows.bytes(row, 5), reopened: rows.bytes(row, 6))
    }
  }

  private func invitesWithRights() throws(DatabaseFault) -> [WithRights] {
    let (rows, _) = try ask(Statement.invites)
    return (0..<rows.count).compactMap { row in
      guard let invite = InviteRow(rows, row), let seal = rows.bytes(row, 5),
        invite.isRight(seal, under: key)
      else { return nil }
      return WithRights(owner: .invite(invite), seal: seal, rights: rows.bytes(row, 6))
    }
  }

  private func reseal(_ rows: [WithRights], by statement: String, _ pass: inout ResealPass)
    throws(DatabaseFault)
  {
    for one in rows {
      let rights = one.rights.flatMap { SealedRights.read($0, under: key, of: one.owner) }
      let reopened = one.owner.reopened(one.reopened, under: key)
      let isFormer =
        pass.isFormer(one.seal)
        || rights != nil && pass.isFormer(one.rights.map(SealedRights.seal))
        || reopened > 0 && pass.isFormer(one.reopened.map { Array($0.dropFirst(8)) })
      guard isFormer else { continue }
      let values = try values(one, rights, reopened: reopened)
      try pass.seal(one.owner.name) { () throws(DatabaseFault) in
        try ask(statement, values).0.count == 1
      }
    }
  }

  /// Of the statement. What is not right stays as it is.
  private func values(_ one: WithRights, _ rights: SealedRights?, reopened: Int64)
    throws(DatabaseFault) -> [Value]
  {
    try Self.sealing { () throws(CryptoError) in
      let sealed = try rights?.sealed(under: key, of: one.owner) ?? one.rights
      func value(_ bytes: [UInt8]?) -> Value { bytes.map { .bytes($0) } ?? .null }
      let both: [Value] = [.bytes(one.seal), value(one.rights)]
      switch one.owner {
      case .host(let row):
        let mark = reopened > 0 ? try Reopening.mark(reopened, under: key, of: row) : one.reopened
        return [.text(row.name)] + both + [
          .bytes(try row.seal(under: key)), value(sealed), value(one.reopened), value(mark),
        ]
      case .invite(let row):
        return [.bytes(row.digest)] + both + [.bytes(try row.seal(under: key)), value(sealed)]
      }
    }
  }

  // MARK: others

  private func resealRevoked(_ pass: inout ResealPass) throws(DatabaseFault) {
    let (rows, _) = try ask(Statement.revoked)
    for row in 0..<rows.count {
      guard let one = RevokedRow(rows, row), let seal = rows.bytes(row, 3), pass.isFormer(seal),
        one.isRight(seal, under: key)
      else { continue }
      let values = try Self.sealing { () throws(CryptoError) in try one.values(under: key) }
      try pass.seal(one.host) { () throws(DatabaseFault) in
        try ask(Statement.addRevoked, values + [.bytes(seal)]).0.count == 1
      }
    }
  }

  private func resealPresences(_ pass: inout ResealPass) throws(DatabaseFault) {
    let (rows, _) = try ask(Statement.presences)
    for row in 0..<rows.count {
      guard let seal = rows.bytes(row, 7), pass.isFormer(seal),
        let one = PresenceRow.sealed(rows, row, key)
      else { continue }
      let values = try Self.sealing { () throws(CryptoError) in try one.values(under: key) }
      try pass.seal(hexadecimal(one.subject)) { () throws(DatabaseFault) in
        try ask(Statement.savePresence, values + [.bytes(seal)]).0.count == 1
      }
    }
  }

  /// The random of the database, whose seal stands behind it.
  private func resealIncarnation(_ pass: inout ResealPass) throws(DatabaseFault) {
    guard let (old, new) = try resealedIncarnation(), pass.isFormer(Array(old.dropFirst(16)))
    else { return }
    try pass.seal(OneTimePassword.bytes(of: "(the database's number)")) {
      () throws(DatabaseFault) in try replaceIncarnation(old, by: new)
    }
  }
}

extension RightsOwner {
  /// Of the host.
  fileprivate var name: [UInt8] {
    switch self {
    case .host(let row): row.name
    case .invite(let row): row.host
    }
  }

  /// As `Reopening` reads it.
  fileprivate func reopened(_ column: [UInt8]?, under key: FleetKey) -> Int64 {
    switch self {
    case .host(let row): Reopening.read(column, under: key, of: row)
    case .invite: 0
    }
  }
}
