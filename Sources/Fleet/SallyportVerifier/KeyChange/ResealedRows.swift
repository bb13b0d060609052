import OneTimePassword
import SallyportCore

extension Statement {
  /// $1 the last name of the page before, $2 a key, $3 how many: names, and whether something of
  /// theirs is sealed with another key. The rows of verifiers are empty.
  fileprivate static let resealed = """
    SELECT e.name, octet_length(e.body) > 0 AND (substr(e.body, 2, 4) <> $2::bytea
      OR substr(coalesce(s.body, e.body), 2, 4) <> $2::bytea)
    FROM enrollment e LEFT JOIN state s ON s.name = e.name
    WHERE e.name > $1 ORDER BY e.name LIMIT $3::int
    """

  fileprivate static let invites = """
    SELECT digest, host, enrolls, until, key, seal, rights FROM invite
    """

  /// $1 name, $2 its seal until now, $3 its rights until now, $4 and $5 the new ones.
  fileprivate static let resealHost = """
    UPDATE host SET seal = $4, rights = $5 WHERE name = $1 AND seal = $2
      AND rights IS NOT DISTINCT FROM $3::bytea RETURNING name
    """

  /// The same of an invitation, by its digest.
  fileprivate static let resealInvite = """
    UPDATE invite SET seal = $4, rights = $5 WHERE digest = $1 AND seal = $2
      AND rights IS NOT DISTINCT FROM $3::bytea RETURNING digest
    """
}

/// Rows that are sealed with another key than the present one, by their tables.
package struct KeyLeft: Equatable, Sendable {
  package var people: [[UInt8]] = []
  package var hosts: [[UInt8]] = []
  /// Of all of them; the first ones are named.
  package var count = 0
  private static let most = 5

  package var isEmpty: Bool { count == 0 }

  mutating func add(person: [UInt8]) {
    count += 1
    if people.count < Self.most, !FleetStore.isDecoy(person) { people.append(person) }
  }

  mutating func add(host: [UInt8]) {
    count += 1
    if hosts.count < Self.most { hosts.append(host) }
  }
}

/// What is to be done with rows that are sealed with another key.
enum Resealing {
  /// They are sealed with the present one: what this verifier cannot, is left.
  case seal
  /// They are counted.
  case count
}

// A row whose seal is wrong needs no key: it is left as it is, and not counted.
extension Database {
  private static let page: UInt64 = 1000

  /// All tables once. `pause`: after each row that was saved.
  func reseal(_ what: Resealing, _ pause: () throws(DatabaseFault) -> Void) throws(DatabaseFault)
    -> KeyLeft
  {
    var left = KeyLeft()
    let present = FleetKey.bytes(of: key.id)
    try resealHosts(what, present, &left)
    try resealInvites(what, present, &left)
    try resealRevoked(what, present, &left)
    try resealPresences(what, present, &left)
    try resealIncarnation(what, present, &left)
    try resealPolicies(what, present, &left)
    var last: [UInt8] = []
    var isOver = false
    while !isOver {
      let (rows, _) = try ask(
        Statement.resealed, [.bytes(last), .bytes(present), .number(Self.page)])
      for row in 0..<rows.count {
        guard let name = rows.bytes(row, 0) else { continue }
        last = name
        guard rows.bytes(row, 1) == [1] else { continue }
        let isDone = try FleetStore(self, Event(on: bytes(of: "key")), uid: nil)
          .reseal(name, what)
        if !isDone { left.add(person: name) }
        try pause()
      }
      isOver = rows.count < Int(Self.page)
    }
    return left
  }

  /// Whether this seal is by another key than the present one.
  private func isOther(_ seal: [UInt8]?, _ present: [UInt8]) -> Bool {
    seal.map { !$0.starts(with: present) } ?? false
  }

  private func resealHosts(_ what: Resealing, _ present: [UInt8], _ left: inout KeyLeft)
    throws(DatabaseFault)
  {
    let (rows, _) = try ask(Statement.hosts)
    for row in 0..<rows.count {
      guard let host = HostRow(rows, row), let seal = rows.bytes(row, 4),
        host.isRight(seal, under: key)
      else { continue }
      let rights = rows.bytes(row, 5)
      guard isOther(seal, present) || isOther(rights.map(SealedRights.seal), present) else {
        continue
      }
      let values = try values(host, seal, rights: rights, of: .host(host))
      let isDone =
        what == .seal
        ? try ask(Statement.resealHost, [.text(host.name)] + values).0.count == 1 : false
      if !isDone { left.add(host: host.name) }
    }
  }

  private func resealInvites(_ what: Resealing, _ present: [UInt8], _ left: inout KeyLeft)
    throws(DatabaseFault)
  {
    let (rows, _) = try ask(Statement.invites)
    for row in 0..<rows.count {
      guard let invite = InviteRow(rows, row), let seal = rows.bytes(row, 5),
        invite.isRight(seal, under: key)
      else { continue }
      let rights = rows.bytes(row, 6)
      guard isOther(seal, present) || isOther(rights.map(SealedRights.seal), present) else {
        continue
      }
      let values = try values(invite, seal, rights: rights, of: .invite(invite))
      let isDone =
        what == .seal
        ? try ask(Statement.resealInvite, [.bytes(invite.digest)] + values).0.count == 1 : false
      if !isDone { left.add(host: invite.host) }
    }
  }

  /// $2 to $5 of both. Rights that are not right stay as they are.
  private func values(
    _ row: some SealedRow, _ seal: [UInt8], rights: [UInt8]?, of owner: RightsOwner
  ) throws(DatabaseFault) -> [Value] {
    let read = rights.flatMap { SealedRights.read($0, under: key, of: owner) }
    let sealed = try Self.sealing { () throws(CryptoError) in
      (row: try row.seal(under: key), rights: try read?.sealed(under: key, of: owner) ?? rights)
    }
    return [
      .bytes(seal), rights.map { .bytes($0) } ?? .null, .bytes(sealed.row),
      sealed.rights.map { .bytes($0) } ?? .null,
    ]
  }

  private func resealRevoked(_ what: Resealing, _ present: [UInt8], _ left: inout KeyLeft)
    throws(DatabaseFault)
  {
    let (rows, _) = try ask(Statement.revoked)
    for row in 0..<rows.count {
      guard let one = RevokedRow(rows, row), let seal = rows.bytes(row, 3), isOther(seal, present),
        one.isRight(seal, under: key)
      else { continue }
      let values = try Self.sealing { () throws(CryptoError) in try one.values(under: key) }
      let isDone =
        what == .seal
        ? try ask(Statement.addRevoked, values + [.bytes(seal)]).0.count == 1 : false
      if !isDone { left.add(host: one.host) }
    }
  }

  private func resealPresences(_ what: Resealing, _ present: [UInt8], _ left: inout KeyLeft)
    throws(DatabaseFault)
  {
    let (rows, _) = try ask(Statement.presences)
    for row in 0..<rows.count {
      guard let seal = rows.bytes(row, 7), isOther(seal, present),
        let one = PresenceRow.sealed(rows, row, key)
      else { continue }
      let values = try Self.sealing { () throws(CryptoError) in try one.values(under: key) }
      let isDone =
        what == .seal
        ? try ask(Statement.savePresence, values + [.bytes(seal)]).0.count == 1 : false
      if !isDone { left.add(host: hexadecimal(one.subject)) }
    }
  }
}

// The random of the database, whose seal stands behind it.
extension Database {
  fileprivate func resealIncarnation(
    _ what: Resealing, _ present: [UInt8], _ left: inout KeyLeft
  ) throws(DatabaseFault) {
    guard let (old, new) = try resealedIncarnation(), isOther(Array(old.dropFirst(16)), present)
    else { return }
    let isDone = what == .seal ? try replaceIncarnation(old, by: new) : false
    if !isDone { left.add(host: OneTimePassword.bytes(of: "(the database's number)")) }
  }
}
