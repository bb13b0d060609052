import FleetProtocol
import FleetTransport
import Foundation
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

@testable import SallyportVerifier

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `Taking enrollments from hosts` {
  private let verifier: Verifier
  private let handler: ManagementHandler
  private let name = "user-\(UUID().uuidString)"
  private let host = Array("web1".utf8)

  init() throws {
    verifier = try Verifier("move")
    handler = ManagementHandler(verifier.database)
  }

  private func ask(_ request: MoveRequest, enrolls: Bool = true, on host: String = "web1") throws
    -> MoveAnswer?
  {
    MoveAnswer.decode(try told(request, enrolls, host))
  }

  private func fetch(isForced: Bool = false, enrolls: Bool = true, on host: String = "web1") throws
    -> FetchAnswer?
  {
    FetchAnswer.decode(try told(.fetch(try user, isForced: isForced), enrolls, host))
  }

  private func told(_ request: MoveRequest, _ enrolls: Bool, _ host: String) throws -> [UInt8] {
    let pin = try #require(Pin([UInt8](repeating: 3, count: 32)))
    let asker = HostIdentity(pin, host: Array(host.utf8), enrolls: enrolls)
    let answer = handler.answer(try #require(request.encoded()), from: asker, arrived: 0)
    #expect(answer.answers(.management))
    return answer.body
  }

  private var user: UserName { get throws { try #require(UserName(Array(name.utf8))) } }

  private func standing() throws -> FleetStanding {
    guard case .standing(let found) = try ask(.look(try user)) else {
      Issue.record("no standing")
      return FleetStanding(.nobody, version: 0)
    }
    return found
  }

  /// With the secret of the RFCs' examples, whose codes a fleet accepts at 59.
  private func moving(
    id: UInt64 = 0xe0e0, last: UInt64? = nil, used: UInt64 = 0, salt: UInt8 = 1,
    secret: Secret? = nil
  ) throws -> MoveRequest.Moving {
    let parameters = try parameters()
    let one = Authenticator(
      id: 1, name: try label("phone"), parameters: parameters,
      secret: try secret ?? example(parameters.algorithm), initialLastAccepted: nil,
      created: UnixTime(0))
    let salt = [UInt8](repeating: salt, count: 16)
    let codes = BackupCodeSet(
      id: id ^ 0xb0b0, salt: salt,
      digests: try ["7KMF2X9QD4TW0HZA", "7KMF2X9QD4TW0HZB"].map {
        try BackupCode.digest(try TestSupport.secret($0), salt: salt)
      })
    let enrollment = Enrollment(
      id: id, user: try user, uid: nil, created: UnixTime(1_700_000_000), authenticators: [one],
      backupCodes: codes)
    var state = LoginState(initialFor: enrollment)
    state.authenticators[0].lastAccepted = last
    state.backupCodes?.used = used
    state.other = Bucket(spent: GuessProbability(units: 17), since: UnixTime(0))
    return MoveRequest.Moving(enrollment, state)
  }

  private func isIn(_ code: String) throws -> Bool {
    if case .accepted = try verifier.type(code, as: name) { true } else { false }
  }

  private func state() throws -> LoginState {
    let account = Account(name: try user, uid: nil)
    return try #require(try verifier.store(for: name).load(account)).state
  }

  @Test func `enrolls by what a host's files had, with all that was used of it`() throws {
    #expect(try standing() == FleetStanding(.nobody, version: 0))
    var moving = try moving(last: 0, used: 1)
    let place = try #require(NetworkAddress([192, 0, 2, 1]))
    var state = moving.state
    state.origins = [KnownOrigin(origin: place, lastSeen: UnixTime(50))]
    moving = MoveRequest.Moving(moving.enrollment, state)
    #expect(try ask(.put(moving, version: 0)) == .done)
    #expect(try standing() == FleetStanding(.enrolled(0xe0e0), version: 1))
    let kept = try self.state()
    #expect(kept.authenticators == state.authenticators && kept.backupCodes == state.backupCodes)
    #expect(kept.known == state.known && kept.other == state.other)
    #expect(kept.origins.map(\.origin) == [try #require(OriginPseudonyms(on: host).of(place))])
    // 94287082 at 59, in six digits.
    #expect(try isIn("287082"))
    #expect(try !isIn("7KMF2X9QD4TW0HZA"))
    #expect(try isIn("7KMF2X9QD4TW0HZB"))
  }

  // decisive
  @Test func `puts once, and takes over what was used since where it is asked again`() throws {
    #expect(try ask(.put(try moving(), version: 0)) == .done)
    #expect(try isIn("287082"))
    // As it was before that login: once more, late, or from a host with a copy.
    for version: UInt64 in [0, 0, 9] {
      #expect(try ask(.put(try moving(), version: version)) == .done)
      #expect(try !isIn("287082"))
    }
    #expect(try ask(.put(try moving(last: 70, used: 2), version: 0), on: "web2") == .done)
    let state = try state()
    #expect(state.authenticators[0].lastAccepted == 70 && state.backupCodes?.used == 2)
  }

  @Test func `changes nothing of another enrollment`() throws {
    #expect(try ask(.put(try moving(), version: 0)) == .done)
    let other = try moving(id: 0xabab, last: 99, used: 3)
    let standing = FleetStanding(.enrolled(0xe0e0), version: 1)
    #expect(try ask(.put(other, version: 1)) == .standing(standing))
    #expect(try state().authenticators[0].lastAccepted == nil)
  }

  // decisive
  @Test func `changes nothing where a copy was given other secrets or codes since`() throws {
    #expect(try ask(.put(try moving(), version: 0)) == .done)
    let changed = [
      try moving(last: 99, used: 3, salt: 2),
      try moving(last: 99, used: 3, secret: Secret([UInt8](repeating: 7, count: 20))),
    ]
    for one in changed {
      let answer = try ask(.put(one, version: 0))
      guard case .standing(let found) = answer else {
        Issue.record("\(String(describing: answer))")
        continue
      }
      #expect(found.person == .enrolled(0xe0e0))
    }
    #expect(try state().authenticators[0].lastAccepted == nil && state().backupCodes?.used == 0)
    #expect(try ask(.merge(changed[0])) == .done)
    #expect(try state().authenticators[0].lastAccepted == 99 && state().backupCodes?.used == 0)
  }

  // decisive
  @Test func `takes over what another enrollment has used of the same secrets`() throws {
    #expect(try ask(.put(try moving(last: 50, used: 1), version: 0)) == .done)
    #expect(try ask(.merge(try moving(id: 0xabab, last: 40, used: 2))) == .done)
    #expect(try state().authenticators[0].lastAccepted == 50)
    #expect(try state().backupCodes?.used == 3)
    #expect(try ask(.merge(try moving(id: 0xabab, last: 60, used: 0))) == .done)
    #expect(try state().authenticators[0].lastAccepted == 60)
    #expect(try state().backupCodes?.used == 3)
    #expect(try standing().person == .enrolled(0xe0e0))
  }

  // decisive
  @Test func `takes over nothing of other secrets and other codes`() throws {
    #expect(try ask(.put(try moving(last: 50), version: 0)) == .done)
    let other = try moving(
      id: 0xabab, last: 99, used: 3, salt: 2,
      secret: try secret([UInt8](repeating: 8, count: 20)))
    #expect(try ask(.merge(other)) == .done)
    #expect(try state().authenticators[0].lastAccepted == 50)
    #expect(try state().backupCodes?.used == 0)
  }

  @Test func `merges nothing where nobody is enrolled`() throws {
    let nobody = FleetStanding(.nobody, version: 0)
    #expect(try ask(.merge(try moving())) == .standing(nobody))
    #expect(try standing() == nobody)
  }

  /// A put that comes late must not bring back what was removed since.
  @Test func `puts over the version alone that the host has seen`() throws {
    _ = try verifier.store(for: name).countLogin(of: Account(name: user, uid: 1))
    let seen = try standing()
    #expect(seen == FleetStanding(.nobody, version: 1))
    #expect(try ask(.put(try moving(), version: 0)) == .standing(seen))
    #expect(try standing() == seen)
    #expect(try ask(.put(try moving(), version: 1)) == .done)
  }

  @Test func `puts back nobody who was removed, by a copy of what he had`() throws {
    #expect(try ask(.put(try moving(), version: 0)) == .done)
    let store = verifier.store(for: name)
    let row = try #require(try store.row(of: try user.bytes))
    let gone = FleetDocument(.removed(0xe0e0))
    #expect(try store.saveBoth(gone, nil, of: try user.bytes, over: row.mark))
    let standing = FleetStanding(.removed(0xe0e0), version: 2)
    #expect(try ask(.put(try moving(), version: 2)) == .standing(standing))
    #expect(try self.standing() == standing)
    // By another one he is enrolled again.
    #expect(try ask(.put(try moving(id: 0xabab), version: 2)) == .done)
  }

  /// Of a copy that lay on a host meanwhile: the phone in it may have been stolen.
  @Test func `puts back nobody by a copy that is older than what ended last`() throws {
    let copies = (0..<18).map { UInt64(0xe0e0 + $0) }
    for id in copies {
      #expect(try ask(.put(try moving(id: id), version: try standing().version)) == .done)
      #expect(try verifier.store(for: name).end(Account(name: try user, uid: nil), id: id))
    }
    for id in copies.dropFirst() {
      let there = try standing()
      #expect(
        try ask(.put(try moving(id: id), version: there.version), on: "web2")
          == .standing(FleetStanding(.removed(id), version: there.version)))
      #expect(try standing() == there)
    }
    // More than these are not remembered (docs/fleet-format.md).
    #expect(try ask(.put(try moving(id: copies[0]), version: try standing().version)) == .done)
  }

  @Test func `takes back from the host that has taken it what it has, and from nobody else`() throws
  {
    #expect(try ask(.put(try moving(), version: 0)) == .done)
    #expect(try ask(.bury(try user, try burial())) == .done)
    #expect(try ask(.put(try moving(), version: try standing().version)) == .done)
    #expect(try ask(.bury(try user, try burial())) == .done)
    #expect(try ask(.put(try moving(id: 0xabab), version: try standing().version)) == .done)
    #expect(try verifier.store(for: name).end(Account(name: try user, uid: nil), id: 0xabab))
    let there = try standing()
    #expect(
      try ask(.put(try moving(), version: there.version), on: "web2")
        == .standing(FleetStanding(.removed(0xe0e0), version: there.version)))
  }

  @Test func `does it for no host without that right, and reads no garbage`() throws {
    #expect(try ask(.put(try moving(), version: 0), enrolls: false) == .notAllowed)
    #expect(try ask(.look(try user), enrolls: false) == .notAllowed)
    #expect(try standing() == FleetStanding(.nobody, version: 0))
    let pin = try #require(Pin([UInt8](repeating: 3, count: 32)))
    let asker = HostIdentity(pin, host: host, enrolls: true)
    let answer = handler.answer(try secret("garbage"), from: asker, arrived: 0)
    #expect(answer == VerifierAnswer(to: .management, []))
  }

  /// Two verifiers, and hosts that push copies of one enrollment at the same time.
  // shows: fleet-move
  @Test func `loses nothing that any of many at once has used`() throws {
    let second = ManagementHandler(try Verifier("move-2").database)
    let requests = try (0..<16).map { number -> Secret in
      let moving = try moving(last: UInt64(100 + number), used: number == 3 ? 1 : 0)
      return try #require(MoveRequest.put(moving, version: 0).encoded())
    }
    let pin = try #require(Pin([UInt8](repeating: 3, count: 32)))
    let asker = HostIdentity(pin, host: host, enrolls: true)
    let handlers = [handler, second]
    DispatchQueue.concurrentPerform(iterations: requests.count) { number in
      let answer = handlers[number % 2].answer(requests[number], from: asker, arrived: 0)
      #expect(MoveAnswer.decode(answer.body) == .done)
    }
    #expect(try state().authenticators[0].lastAccepted == 115)
    #expect(try state().backupCodes?.used == 1)
  }

  // MARK: back to the files

  private func copy(_ answer: FetchAnswer?) throws -> (MoveRequest.Moving, UInt64) {
    guard case .copy(let moving, let version) = answer else {
      throw Missing(what: "\(String(describing: answer))")
    }
    return (moving, version)
  }

  private struct Missing: Error { let what: String }

  @Test func `gives all that was used to the host that takes it, and answers until it is ended`()
    throws
  {
    #expect(try ask(.put(try moving(used: 2), version: 0)) == .done)
    #expect(try isIn("287082"))
    let (found, version) = try copy(try fetch())
    let kept = try state()
    #expect(found.state.authenticators == kept.authenticators)
    #expect(found.state.backupCodes == kept.backupCodes && found.state.other == kept.other)
    #expect(found.state.origins == [] && found.state.remembered == [])
    #expect(
      bytes(try #require(found.enrollment.written()))
        == bytes(try #require(try moving().enrollment.written())))
    // Nothing has changed by it.
    #expect(try isIn("7KMF2X9QD4TW0HZA"))
    let old = MoveRequest.Tombstone(id: 0xe0e0, version: version, token: 5)
    let standing = FleetStanding(.enrolled(0xe0e0), version: 3)
    #expect(try ask(.bury(try user, old)) == .standing(standing))
    #expect(try self.standing() == standing)
    #expect(try ask(.bury(try user, try burial())) == .done)
    #expect(try self.standing() == FleetStanding(.removed(0xe0e0), version: 4))
    #expect(try !isIn("7KMF2X9QD4TW0HZB"))
  }

  /// Of what is there now.
  private func burial() throws -> MoveRequest.Tombstone {
    MoveRequest.Tombstone(id: 0xe0e0, version: try copy(try fetch()).1, token: 5)
  }

  // decisive
  // shows: fleet-move
  @Test func `ends it once, also when asked again, and for nobody else`() throws {
    #expect(try ask(.put(try moving(), version: 0)) == .done)
    let burial = try burial()
    #expect(try ask(.bury(try user, burial)) == .done)
    // Saved once more: the answer may have been lost with the standby that would have had it.
    #expect(try standing().version == 2)
    #expect(try ask(.bury(try user, burial)) == .done)
    let gone = MoveAnswer.standing(FleetStanding(.removed(0xe0e0), version: 3))
    for (id, token): (UInt64, UInt64) in [(0xe0e0, 6), (0xabab, 5)] {
      let other = MoveRequest.Tombstone(id: id, version: burial.version, token: token)
      #expect(try ask(.bury(try user, other)) == gone)
    }
    // Another host has files of before.
    #expect(try ask(.put(try moving(), version: 3), on: "web2") == gone)
    // Enrolled again, by the same files: what was asked before ends nothing.
    #expect(try ask(.put(try moving(), version: 3)) == .done)
    let back = FleetStanding(.enrolled(0xe0e0), version: 4)
    #expect(try ask(.bury(try user, burial)) == .standing(back))
  }

  /// Else anybody with the password would enroll there, or need nothing more.
  @Test func `refuses who was taken, whatever would hold for one who is not enrolled`() throws {
    let (account, codes) = (Account(name: try user, uid: 1000), Policy())
    let levels: [EnrollmentLevel] = [.refuse, .required, .offer, .remind, .voluntary]
    func level(_ level: EnrollmentLevel) throws -> EnrollmentLevel {
      var policy = codes
      policy.enrollment = level
      let context = LoginContext(policy: policy, origin: .unknown, service: try label("sshd"))
      return try RecordAuthority(store: verifier.store(for: name)).level(of: account, in: context)
    }
    for each in levels { #expect(try level(each) == each) }
    #expect(try ask(.put(try moving(), version: 0)) == .done)
    #expect(try ask(.bury(try user, try burial())) == .done)
    for each in levels { #expect(try level(each) == .refuse) }
  }

  @Test func `names the other hosts that let him in, and gives him away where it is told to`()
    throws
  {
    #expect(try ask(.put(try moving(), version: 0)) == .done)
    #expect(try isIn("287082"))
    guard case .used(let hosts) = try fetch(on: "web9") else {
      Issue.record("given away")
      return
    }
    #expect(hosts.map(\.text) == ["web1"])
    _ = try copy(try fetch(isForced: true, on: "web9"))
    _ = try copy(try fetch())
  }

  // shows: secrets-out
  @Test func `gives nobody away to a host without that right, or who is not there`() throws {
    for expected: MoveAnswer in [.notAllowed, .standing(FleetStanding(.nobody, version: 0))] {
      let found = try fetch(isForced: true, enrolls: expected != .notAllowed)
      guard case .other(expected) = found else {
        Issue.record("\(String(describing: found))")
        continue
      }
    }
    #expect(try ask(.put(try moving(), version: 0)) == .done)
    // Nor to one that ends what it was not given.
    let other = MoveRequest.Tombstone(id: 0xe0e1, version: 1, token: 7)
    #expect(try ask(.bury(try user, other), enrolls: false) == .notAllowed)
    guard case .other(.notAllowed) = try fetch(enrolls: false) else {
      Issue.record("given away")
      return
    }
    #expect(try standing() == FleetStanding(.enrolled(0xe0e0), version: 1))
  }
}
