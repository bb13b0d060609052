import CService
import FleetProtocol
import FleetTransport
import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem
import TestSupport
import Testing

@testable import SallyportVerifier

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `The rights of a host` {
  private let own: OwnDatabase
  private let verifier: Verifier
  private let table: HostTable
  private let pin: Pin
  private let host: FleetHostName

  init() throws {
    own = try OwnDatabase()
    verifier = try Verifier("rights", in: own)
    table = try HostTable(own.words + " user=sallyport_verifier", key: try fleetKey())
    pin = try #require(Pin([UInt8](repeating: 5, count: 32)))
    host = try #require(FleetHostName(Array("web1".utf8)))
  }

  private func asker(_ rights: [HostRight]) -> HostIdentity { asker(HostRights(rights)) }

  private func asker(_ rights: HostRights) -> HostIdentity {
    HostIdentity(pin, host: host.bytes, rights: rights)
  }

  private func answer(_ body: Secret?, _ asker: HostIdentity, of verifier: Verifier? = nil) throws
    -> [UInt8]
  {
    let database = (verifier ?? self.verifier).database
    return ManagementHandler(database).answer(try #require(body), from: asker, arrived: 0).body
  }

  private func isKept(_ body: Secret?, _ right: HostRight?) throws -> Bool {
    let rights = HostRights(right.map { [$0] } ?? [])
    return try answer(body, asker(rights)) == MoveAnswer.notAllowed.encoded()
  }

  private func amend(
    _ change: EnrollmentChange, _ name: String, _ asker: HostIdentity, to id: UInt64 = 0xe0e0
  ) throws -> ServiceAnswer? {
    let question = LoginQuestion(
      name: Array(name.utf8), service: Array("sshd".utf8), origin: .local, policy: Policy(),
      millisecondsLeft: 5000, verb: .amend(change, to: id))
    let handler = LoginHandler(verifier.database, FleetPolicy(in: "/var/empty/no-policy"))
    let answer = handler.answer(
      try hostFrame(question, isOwn: false, uid: 1000), from: asker, arrived: sys_monotonic())
    return ServiceAnswer.decode(answer.body, to: question.verb)
  }

  private func create(_ name: String, _ asker: HostIdentity) throws -> ServiceAnswer? {
    let new = try fleetEnrollment([authenticator(parameters(.totp(period: 30)))], name)
    return try amend(.create(new), name, asker, to: 0)
  }

  private func event(_ what: String) throws -> UInt64? {
    try verifier.ask("SELECT count(*) FROM event WHERE outcome = $1", [.text(Array(what.utf8))])
      .number(0, 0)
  }

  // decisive; shows: secrets-out
  @Test func `are apart: none gives what another one does`() throws {
    let name = try #require(UserName(Array(try verifier.enroll().utf8)))
    let changes: [Secret?] = [
      MoveRequest.look(name).encoded(), PersonRequest(.tell, of: name).encoded(),
      PersonRequest(.unblock, of: name).encoded(), RosterRequest([name]).encoded(),
      PeopleRequest(after: []).encoded(),
      EventsRequest(since: UnixTime(0), upTo: EventsRequest.latest, .both, of: []).encoded(),
    ]
    for (index, body) in changes.enumerated() {
      for right in [nil] + HostRight.allCases {
        let isAllowed = right == .changes || right == .takes && index < 2
        #expect(try isKept(body, right) == !isAllowed, "\(index) \(String(describing: right))")
      }
    }
    for right in [nil] + HostRight.allCases {
      let fetch = MoveRequest.fetch(name, isForced: true).encoded()
      #expect(try isKept(fetch, right) == (right != .takes))
      let rights = asker(HostRights(right.map { [$0] } ?? []))
      let renamed = try amend(
        .rename(try label("phone"), to: try label("old")), name.text, rights)
      // By `changes` it was renamed.
      #expect(renamed == (right == .changes ? .done : .notServed))
      let new = try create("new-\(String(describing: right))", rights)
      #expect(new == (right == .enrolls ? .done : .notServed))
    }
    #expect(try answer(RightsRequest().encoded(), asker(HostRights())) != [])
  }

  // decisive; shows: host-rights
  @Test func `are counted over all verifiers, with the change itself`() async throws {
    let other = try Verifier("rights2", in: own)
    let names = try (0..<8).map { _ in try #require(UserName(Array(try verifier.enroll().utf8))) }
    var rights = HostRights()
    rights[.changes].daily = 5
    let asker = asker(rights)
    let bodies = names.map { PersonRequest(.block(until: nil), of: $0).encoded() }
    let done = try await withThrowingTaskGroup(of: Bool.self) { group in
      for (index, body) in bodies.enumerated() {
        let verifier = index % 2 == 0 ? verifier : other
        group.addTask {
          try answer(body, asker, of: verifier) == PersonAnswer.other(.done).encoded()
        }
      }
      return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    #expect(done == 5)
    #expect(try event("act-block") == 5)
    let alerts = (verifier.complaints + other.complaints).filter {
      $0.contains("host web1 has used its right changes 5 times today")
    }
    #expect((1...2).contains(alerts.count), "\(alerts)")
    // What is not a change goes on, and it can see how it stands.
    #expect(try isKept(PersonRequest(.tell, of: names[0]).encoded(), .changes) == false)
    #expect(
      try RightsAnswer.decode(answer(RightsRequest().encoded(), asker))
        == .told(rights, used: [.init(), .init(daily: 5), .init()], isClosed: false))
    // More for an hour, and the next day.
    rights[.changes].more = 1
    rights[.changes].until = UnixTime(try SallyportSystem.Clock.now().seconds + 3600)
    let wider = self.asker(rights)
    let answers = try bodies.map { try answer($0, wider) }
    #expect(answers.count { $0 != MoveAnswer.notAllowed.encoded() } == 1)
    _ = try verifier.ask("UPDATE spent SET period = period - 1 WHERE kind = 2")
    let next = try Verifier("rights3", in: own)
    #expect(try answer(bodies[0], asker, of: next) == PersonAnswer.other(.done).encoded())
    #expect(try verifier.ask("SELECT n FROM spent WHERE kind = 2").number(0, 0) == 1)
  }

  // decisive; shows: secrets-out
  @Test func `let no more secrets out than they say, each with its event`() throws {
    let names = try (0..<12).map { _ in try #require(UserName(Array(try verifier.enroll().utf8))) }
    let asker = asker(HostRights([.takes]))
    let copies = try names.filter { name in
      let body = try answer(MoveRequest.fetch(name, isForced: true).encoded(), asker)
      if case .copy = FetchAnswer.decode(body) { return true }
      #expect(body == MoveAnswer.notAllowed.encoded())
      return false
    }
    #expect(copies.count == 10)
    #expect(try event("act-fleet-fetch") == 10)
    #expect(verifier.complaints.count { $0.contains("used its right takes 10 times today") } == 1)
    // The database goes away before it is counted.
    _ = try verifier.ask("DELETE FROM spent")
    let next = try Verifier("rights4", in: own)
    _ = try verifier.ask("REVOKE INSERT ON spent FROM sallyport_verifier")
    let body = try answer(MoveRequest.fetch(names[11], isForced: true).encoded(), asker, of: next)
    #expect(body == MoveAnswer.trouble.encoded())
  }

  // decisive
  @Test func `need not be there to end what was begun by them, but for who knows it`() throws {
    let name = try #require(UserName(Array(try verifier.enroll().utf8)))
    let body = try answer(MoveRequest.fetch(name, isForced: true).encoded(), asker([.takes]))
    guard case .copy(let copy, let version) = FetchAnswer.decode(body) else {
      Issue.record("a copy")
      return
    }
    func bury(_ id: UInt64, _ version: UInt64, token: UInt64, by host: HostIdentity) throws
      -> MoveAnswer?
    {
      let burial = MoveRequest.Tombstone(id: id, version: version, token: token)
      return MoveAnswer.decode(try answer(MoveRequest.bury(name, burial).encoded(), host))
    }
    let (none, id) = (asker(HostRights()), copy.enrollment.id)
    // Who does not know it learns nothing, nor does a host that was put back do anything.
    #expect(try bury(id + 1, version, token: 7, by: none) == .notAllowed)
    let resting = HostIdentity(pin, host: host.bytes, rests: true)
    #expect(try bury(id, version, token: 7, by: resting) == .notAllowed)
    // He was let in since: the copy is to be thrown away.
    guard case .standing(let found) = try bury(id, version + 1, token: 7, by: none) else {
      Issue.record("what is there")
      return
    }
    #expect(found.person == .enrolled(id))
    for _ in 0..<2 { #expect(try bury(id, version, token: 7, by: none) == .done) }
    #expect(try bury(id + 1, version, token: 7, by: none) == .notAllowed)
    #expect(try bury(id, version, token: 7, by: resting) == .notAllowed)
  }

  @Test func `are told without what has ended, and with what is left of it`() throws {
    let now = try SallyportSystem.Clock.now().seconds
    var rights = HostRights([.changes])
    rights[.takes] = .init(more: 4, until: UnixTime(now + 3600))
    rights[.enrolls] = .init(more: 9, until: UnixTime(now - 1))
    let name = try #require(UserName(Array(try verifier.enroll().utf8)))
    _ = try answer(MoveRequest.fetch(name, isForced: true).encoded(), asker(rights))
    var held = rights
    held[.enrolls] = .init()
    #expect(
      try RightsAnswer.decode(answer(RightsRequest().encoded(), asker(rights)))
        == .told(held, used: [.init(), .init(), .init(more: 1)], isClosed: false))
  }

  @Test func `to enroll are asked for with the prompt, and counted`() throws {
    var rights = HostRights()
    rights[.enrolls].daily = 2
    let asker = asker(rights)
    let answers = try ["a", "b", "c"].map { try create("rights-\($0)", asker) }
    #expect(answers == [.done, .done, .notServed])
    #expect(try verifier.events(of: "rights-b") == ["act-enroll"])
    #expect(try verifier.events(of: "rights-c") == [])
  }

  // MARK: the row

  private func join(_ rights: [HostRight]) throws {
    let invitation = try table.invite(
      host, rights: HostRights(rights), pin: pin.bytes, verifiers: [Array("192.0.2.1:7353".utf8)])
    let request = JoinRequest(.join, try JoinToken.read(invitation.token).secret, names: [])
    let handler = JoinHandler(verifier.database, pins: [pin])
    guard case .welcome = handler.answer(key: pin.bytes, request) else {
      Issue.record("it joined")
      return
    }
  }

  private func rights(_ revocations: Revocations? = nil) -> HostRights? {
    guard case .host(let found) = Hosts(verifier.database, revocations).lookup(pin) else {
      return nil
    }
    return found.rights
  }

  // decisive; shows: host-rights
  @Test func `that were taken do not come back with the row that gave them`() throws {
    try join([.enrolls, .changes])
    #expect(rights() == HostRights([.enrolls, .changes]))
    #expect(try table.hosts().map(\.right) == ["enrolls, changes"])
    _ = try verifier.ask("CREATE TABLE before AS SELECT * FROM host")
    let left = try table.setRights(of: host) { (rights) in
      var rights = rights
      rights[.changes] = HostRights.Allowance()
      return rights
    }
    #expect(left == HostRights([.enrolls]) && rights() == left)
    let remembered = Revocations(key: try fleetKey())
    #expect(rights(remembered) == left)
    _ = try verifier.ask("UPDATE host SET rights = b.rights, seal = b.seal FROM before b")
    #expect(rights() == HostRights())
    #expect(try table.hosts().map(\.right) == ["none: sallyport-verifier hosts allow"])
    #expect(verifier.complaints.contains { $0.contains("its rights are not the last ones") })
    // Nor where the database forgets that they were taken.
    _ = try verifier.ask("DELETE FROM revoked")
    #expect(rights(remembered) == HostRights())
    #expect(try verifier.ask("SELECT count(*) FROM revoked").number(0, 0) == 2)
    // Those of another row are none.
    _ = try verifier.ask("UPDATE host SET rights = set_byte(rights, 9, 200)")
    #expect(rights() == HostRights())
    #expect(try table.setRights(of: host) { _ in HostRights([.takes]) } == HostRights([.takes]))
    #expect(rights(remembered) == HostRights([.takes]))
  }

  // decisive; shows: host-rights
  @Test func `of a row from before are all of them until they are changed`() throws {
    let row = HostRow(name: host.bytes, key: pin.bytes, enrolls: true, joined: 1)
    _ = try verifier.ask(
      "INSERT INTO host (name, key, enrolls, joined, seal) VALUES ('web1', $1, true, 1, $2)",
      [.bytes(pin.bytes), .bytes(try row.seal(under: try fleetKey()))])
    #expect(rights() == HostRights(HostRight.allCases))
    #expect(try table.hosts().map(\.right) == ["enrolls, changes, takes"])
    _ = try verifier.ask("CREATE TABLE before AS SELECT * FROM host")
    #expect(try table.setRights(of: host) { _ in HostRights([.enrolls]) } != nil)
    // A verifier of the former version finds none.
    #expect(try verifier.ask("SELECT enrolls FROM host").bytes(0, 0) == [0])
    #expect(rights() == HostRights([.enrolls]))
    _ = try verifier.ask(
      "UPDATE host SET enrolls = true, rights = NULL, seal = b.seal FROM before b")
    #expect(rights() == HostRights())
    // A row that somebody without the key has made gets none.
    _ = try verifier.ask("UPDATE host SET key = set_byte(key, 0, 77)")
    #expect(throws: DatabaseFault.self) { try table.setRights(of: host) { $0 } }
  }

  private func give(_ right: HostRight, _ allowance: HostRights.Allowance) throws -> HostRights? {
    try table.setRights(of: host) { (rights) in
      var rights = rights
      rights[right] = allowance
      return rights
    }
  }

  // decisive
  @Test func `that are changed are told to be changed in the same moment`() throws {
    try join([.changes])
    let isOver = Locked(false)
    let seen = onThread {
      var seen: Set<UInt32> = []
      while !isOver.withLock({ $0 }) {
        // A list of its own each time: it reads the tables now.
        guard case .host(let found) = Hosts(verifier.database).lookup(pin) else { continue }
        seen.insert(found.rights[.changes].daily)
      }
      return seen
    }
    for number in 1...60 { _ = try give(.changes, .init(daily: UInt32(number))) }
    isOver.withLock { $0 = true }
    try wait { seen.withLock { $0 != nil } }
    #expect(try seen.withLock { try $0?.get().contains(0) } == false)
    #expect(verifier.complaints == [])
  }

  @Test func `are no more what has ended, and begin again where they are given again`() throws {
    try join([.changes])
    let now = try SallyportSystem.Clock.now().seconds
    _ = try give(.takes, .init(more: 2, until: UnixTime(now - 1)))
    #expect(try table.hosts().map(\.right) == ["changes"])
    let names = try (0..<3).map { _ in try #require(UserName(Array(try verifier.enroll().utf8))) }
    func copies(_ rights: HostRights?) throws -> Int {
      try names.count { name in
        let body = MoveRequest.fetch(name, isForced: true).encoded()
        guard let rights, case .copy = FetchAnswer.decode(try answer(body, asker(rights))) else {
          return false
        }
        return true
      }
    }
    #expect(try copies(give(.takes, .init(more: 2, until: UnixTime(now + 3600)))) == 2)
    #expect(try give(.takes, .init()) == HostRights([.changes]))
    // For a shorter time than before.
    #expect(try copies(give(.takes, .init(more: 2, until: UnixTime(now + 60)))) == 2)
  }

  // decisive
  @Test func `are sealed with the people for whom they are`() throws {
    let row = HostRow(name: host.bytes, key: pin.bytes, joined: 1)
    var rights = HostRights([.enrolls])
    rights[.takes] = .init(more: 2, until: UnixTime(9), people: [[0x61], [0x62, 0x63]])
    for rights in [rights, HostRights([.enrolls])] {
      let sealed = try SealedRights(rights: rights, changed: 7)
        .sealed(under: try fleetKey(), of: .host(row))
      func read(_ bytes: [UInt8]) throws -> SealedRights? {
        SealedRights.read(bytes, under: try fleetKey(), of: .host(row))
      }
      #expect(try read(sealed) == SealedRights(rights: rights, changed: 7))
      for index in sealed.indices {
        var other = sealed
        other[index] ^= 1
        #expect(try read(other) == nil)
        #expect(try read(Array(sealed.prefix(index))) == nil)
      }
    }
  }

  // MARK: invitations

  private func joins(by token: Secret) throws -> JoinAnswer {
    let request = JoinRequest(.join, try JoinToken.read(token).secret, names: [])
    return JoinHandler(verifier.database, pins: [pin]).answer(key: pin.bytes, request)
  }

  private func invite(_ rights: [HostRight]) throws -> Secret {
    try table.invite(
      host, rights: HostRights(rights), pin: pin.bytes, verifiers: [Array("192.0.2.1:7353".utf8)]
    ).token
  }

  // decisive; shows: host-rights
  @Test func `that were taken do not come back with an invitation, open or used`() throws {
    let used = try invite([.changes, .takes])
    guard case .welcome = try joins(by: used) else {
      Issue.record("it joined")
      return
    }
    let open = try invite([.takes])
    _ = try verifier.ask("CREATE TABLE before AS SELECT * FROM invite")
    #expect(try give(.takes, .init()) == HostRights([.changes]))
    #expect(try joins(by: open) == .refused(.unknownToken))
    // A newer one takes the place of one that somebody puts back.
    let other = try invite([.changes])
    _ = try verifier.ask("INSERT INTO before SELECT * FROM invite")
    _ = try invite([])
    _ = try verifier.ask("INSERT INTO invite SELECT * FROM before ON CONFLICT DO NOTHING")
    for token in [open, other] { #expect(try joins(by: token) == .refused(.unknownToken)) }
  }

  // decisive; shows: host-rights
  @Test func `that were taken do not come back where somebody deletes the host`() throws {
    let token = try invite([.takes])
    guard case .welcome = try joins(by: token) else {
      Issue.record("it joined")
      return
    }
    #expect(try give(.takes, .init()) == HostRights())
    _ = try verifier.ask("DELETE FROM host")
    #expect(try joins(by: token) == .refused(.unknownToken))
  }
}
