import FleetProtocol
import OneTimePassword
import SallyportAdministration
import SallyportCore
import TestSupport
import Testing

extension Seeded {
  mutating func moving() throws -> MoveRequest.Moving {
    let one = try enrollment()
    let enrollment = Enrollment(
      id: one.id, user: one.user, uid: nil, created: one.created,
      authenticators: one.authenticators, backupCodes: one.backupCodes)
    let some = loginState()
    let state = LoginState(
      enrollmentID: enrollment.id, authenticators: some.authenticators,
      backupCodes: some.backupCodes, known: some.known, other: some.other, slip: some.slip,
      refunds: some.refunds, origins: some.origins, remembered: some.remembered)
    return MoveRequest.Moving(enrollment, state)
  }

  fileprivate mutating func moves() throws -> [MoveRequest] {
    let burial = MoveRequest.Tombstone(id: id(), version: number64(), token: id())
    return [
      .look(userName()), .put(try moving(), version: number64()), .merge(try moving()),
      .fetch(userName(), isForced: false), .fetch(userName(), isForced: true),
      .bury(userName(), burial),
    ]
  }

  fileprivate mutating func fetchAnswers() throws -> [FetchAnswer] {
    let hosts = try (1...32).map { try #require(FleetHostName(Array("web\($0)".utf8))) }
    return [
      .copy(try moving(), version: number64()), .used(on: hosts), .held, .other(.notAllowed),
    ]
  }

  fileprivate mutating func moveAnswers() -> [MoveAnswer] {
    let people: [FleetStanding.Person] = [.nobody, .enrolled(id()), .removed(id())]
    return people.map { .standing(FleetStanding($0, version: number64())) }
      + [.done, .notAllowed, .trouble]
  }
}

@Suite struct `What moves an enrollment to the fleet` {
  @Test(arguments: 0..<60) func `is read as it was written`(seed: UInt64) throws {
    var random = Seeded(seed)
    for request in try random.moves() {
      let frame = try #require(request.encoded())
      let read = try #require(MoveRequest.decode(frame))
      #expect(read.name == request.name)
      #expect(bytes(try #require(read.encoded())) == bytes(frame))
      switch (request, read) {
      case (.look, .look): break
      case (.put(let a, let version), .put(let b, let again)):
        #expect(a.state == b.state && version == again)
      case (.merge(let a), .merge(let b)): #expect(a.state == b.state)
      case (.fetch(_, let a), .fetch(_, let b)): #expect(a == b)
      case (.bury(_, let a), .bury(_, let b)): #expect(a == b)
      case _: Issue.record("another request")
      }
    }
    for answer in random.moveAnswers() {
      #expect(MoveAnswer.decode(try #require(answer.encoded())) == answer)
    }
    for answer in try random.fetchAnswers() {
      let frame = try #require(answer.encoded())
      let read = try #require(FetchAnswer.decode(frame))
      #expect(read.encoded() == frame)
      if case .copy(let a, let version) = answer, case .copy(let b, let again) = read {
        #expect(a.state == b.state && a.enrollment.id == b.enrollment.id && version == again)
      }
    }
  }

  @Test(arguments: 0..<200) func `is itself again, or nothing, after any change`(seed: UInt64)
    throws
  {
    var random = Seeded(seed)
    for request in try random.moves() {
      let frame = random.mutated(frame: bytes(try #require(request.encoded())))
      if let read = MoveRequest.decode(try secret(frame)) {
        #expect(bytes(try #require(read.encoded())) == frame)
      }
    }
    for answer in random.moveAnswers() {
      let frame = random.mutated(frame: try #require(answer.encoded()))
      if let read = MoveAnswer.decode(frame) { #expect(read.encoded() == frame) }
    }
    for answer in try random.fetchAnswers() {
      let frame = random.mutated(frame: try #require(answer.encoded()))
      if let read = FetchAnswer.decode(frame) { #expect(read.encoded() == frame) }
    }
  }

  @Test func `has neither a uid nor another enrollment's state`() throws {
    var random = Seeded(1)
    let moving = try random.moving()
    let own = moving.enrollment
    let here = Enrollment(
      id: own.id, user: own.user, uid: 1000, created: own.created,
      authenticators: own.authenticators, backupCodes: nil)
    #expect(MoveRequest.merge(MoveRequest.Moving(here, moving.state)).encoded() == nil)
    let other = MoveRequest.Moving(own, LoginState(enrollmentID: own.id ^ 1))
    #expect(MoveRequest.put(other, version: 0).encoded() == nil)
  }

  @Test func `is short enough for a frame, whatever it holds`() throws {
    let names = (0..<8).map { "a\($0)" + String(repeating: "x", count: 62) }
    let secret = try secret([UInt8](repeating: 0xff, count: Secret.longestKey))
    let parameters = try #require(
      CodeParameters(type: .totp(period: 300), algorithm: .sha512, digits: .eight))
    let enrollment = Enrollment(
      id: 1, user: try #require(UserName([UInt8](repeating: 0x61, count: 255))), uid: nil,
      created: UnixTime(Int64.max),
      authenticators: try names.enumerated().map { index, name in
        Authenticator(
          id: UInt64(index + 1), name: try label(name), parameters: parameters, secret: secret,
          initialLastAccepted: UInt64.max, created: UnixTime(Int64.max))
      },
      backupCodes: BackupCodeSet(
        id: 1, salt: [UInt8](repeating: 1, count: 16),
        digests: [[UInt8]](repeating: [UInt8](repeating: 1, count: 32), count: 32),
        scratchDigests: [[UInt8]](repeating: [UInt8](repeating: 1, count: 32), count: 32)))
    let moving = MoveRequest.Moving(enrollment, LoginState(initialFor: enrollment))
    #expect(try #require(MoveRequest.put(moving, version: 1).encoded()).count < 32_768)
  }
}

@Suite struct `The mark of an enrollment that is moved` {
  @Test(arguments: [
    MoveMark.push(version: 0), .push(version: UInt64.max), .merge,
    .take(version: 7, token: UInt64.max),
  ])
  func `is read by who moves it, and by nobody else`(mark: MoveMark) throws {
    let one = try enrollment([try authenticator()])
    let text = try #require(one.written(with: mark))
    let (read, found) = try Enrollment.readMoving(text)
    #expect(found == mark && read.id == one.id && read.uid == one.uid)
    #expect(bytes(try #require(read.written())) == bytes(try #require(one.written())))
    #expect(throws: SettingsError(line: 2, .moving)) { try Enrollment.read(text) }
    #expect(try Enrollment.readMoving(try #require(one.written())).mark == nil)
  }

  @Test(arguments: [
    "", "push", "push 12", "push 00000000000000000", "merge 1", "pull", "take",
    "take 0000000000000001", "take 0000000000000001 ", "take 0000000000000001 0000000000000000",
    "take 0000000000000001  000000000000001", "push 0000000000000001 0000000000000001",
    "take 0000000000000001 00000000000000011",
  ])
  func `is one of three`(value: String) throws {
    let one = try enrollment([try authenticator()])
    let text = Array("fleet = \(value)\n".utf8) + bytes(try #require(one.written()))
    #expect(throws: SettingsError.self) { try Enrollment.readMoving(try secret(text)) }
    #expect(throws: SettingsError(line: 1, .moving)) { try Enrollment.read(try secret(text)) }
  }

  /// A key of a section, and one further down, is no mark: nobody reads on.
  @Test func `stands in front`() throws {
    let one = try enrollment([try authenticator()])
    let text = String(decoding: bytes(try #require(one.written())), as: UTF8.self)
    let further = text.replacing("uid = ", with: "fleet = merge\nuid = ")
    #expect(throws: SettingsError.self) { try Enrollment.readMoving(try secret(further)) }
  }
}
