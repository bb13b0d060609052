import FleetProtocol
import OneTimePassword
import SallyportAdministration
import SallyportCore
import TestSupport
import Testing

extension Seeded {
  private mutating func noteLevels() -> [UserNote.Level?] {
    [
      nil, .exempt(until: nil), .exempt(until: UnixTime(Int64(number64() >> 1))),
      .required(from: nil), .required(from: UnixTime(Int64(number64() >> 1))),
    ]
  }

  private mutating func pairs() throws -> [CodePair] {
    try Digits.allCases.map { digits in
      let codes = (0..<2).map { _ in UInt32(number(0...Int(digits.modulus) - 1)) }
      return try #require(CodePair(.code(codes[0], digits), .code(codes[1], digits)))
    }
  }

  fileprivate mutating func personRequests() throws -> [PersonRequest] {
    var verbs: [PersonRequest.Verb] = [
      .tell, .unlock(id: number64()), .end(id: number64()), .forget(id: number64()),
      .block(until: nil), .block(until: UnixTime(Int64(number64() >> 1))), .unblock,
      .former(suspension: number64(), id: number64()),
      .restore(suspension: number64(), id: number64()),
    ]
    verbs += [
      .show, .lend(under: policy(), id: id()), .block(until: UnixTime(5)), .unblock,
    ].map { .help(HelpOrder($0, by: userName())) }
    verbs += noteLevels().map { .level($0) }
    verbs += try pairs().map {
      .resynchronize($0, named: flip() ? label() : nil, under: policy(), id: number64())
    }
    return verbs.map { PersonRequest($0, of: userName()) }
  }

  fileprivate mutating func personAnswers() throws -> [PersonAnswer] {
    let (drift, name) = (Int32(number(-9...9)), label())
    let host = try #require(FleetHostName(Array("web1".utf8)))
    let standings: [PersonFacts.EnrollmentPlace] = [
      .enrolled(try moving()), .notEnrolled, .taken(by: host), .notEnrolled,
    ]
    let blocks = [
      nil, FleetBlock(since: UnixTime(5), until: nil, helper: userName()),
      FleetBlock(since: UnixTime(0), until: UnixTime(Int64(number64() >> 1))),
    ]
    let told = zip(standings, noteLevels()).flatMap { standing, level in
      blocks.map {
        PersonAnswer.told(
          PersonFacts(
            standing, UserNote(level: level), logins: UInt32(number(0...9)), block: $0))
      }
    }
    let results: [Resync] = [
      .done(name: name, drift: drift, reopened: nil),
      .done(name: name, drift: drift, reopened: UnixTime(Int64(number64() >> 1))),
      .refused(.clockOff(name: name, drift: drift, period: 30, accepted: 1)),
      .refused(.replayed(name: name)), .refused(.notFound),
      .refused(.waits(name: name, until: UnixTime(Int64(number64() >> 1)))),
    ]
    return told + results.map { .resynchronized($0) }
      + [.changed, .other(.done), .other(.notAllowed), .other(.trouble)]
  }
}

@Suite struct `What root asks about one person of a fleet` {
  @Test(arguments: 0..<60) func `is read as it was written, and is no move`(seed: UInt64) throws {
    var random = Seeded(seed)
    for request in try random.personRequests() {
      let frame = try #require(request.encoded())
      #expect(PersonRequest.decode(frame) == request)
      #expect(MoveRequest.decode(frame) == nil)
    }
    for answer in try random.personAnswers() {
      let frame = try #require(answer.encoded())
      let read = try #require(PersonAnswer.decode(frame))
      #expect(read.encoded() == frame)
      #expect("\(read)".prefix(200) == "\(answer)".prefix(200))
    }
  }

  @Test(arguments: 0..<200) func `is itself again, or nothing, after any change`(seed: UInt64)
    throws
  {
    var random = Seeded(seed)
    for request in try random.personRequests() {
      let frame = random.mutated(frame: bytes(try #require(request.encoded())))
      if let read = PersonRequest.decode(try secret(frame)) {
        #expect(bytes(try #require(read.encoded())) == frame)
      }
    }
    for answer in try random.personAnswers() {
      let frame = random.mutated(frame: try #require(answer.encoded()))
      if let read = PersonAnswer.decode(frame) { #expect(read.encoded() == frame) }
    }
  }
}

@Suite struct `What is told of an enrollment` {
  // decisive
  // shows: self-secret
  @Test func `has neither its secrets nor the digests of its backup codes`() throws {
    let key = try secret(Array("12345678901234567890".utf8))
    let digests = [[UInt8](repeating: 0xaa, count: 32), [UInt8](repeating: 0xab, count: 32)]
    let enrollment = Enrollment(
      id: 5, user: try #require(UserName(Array("alice".utf8))), uid: 1000, created: UnixTime(1),
      authenticators: [
        Authenticator(
          id: 6, name: Label("phone"), parameters: .standard, secret: key,
          initialLastAccepted: nil, created: UnixTime(1))
      ],
      backupCodes: BackupCodeSet(
        id: 8, salt: [UInt8](repeating: 0xcc, count: 16), digests: digests))
    let text = try #require(enrollment.withoutSecrets?.written())
    let read = try Enrollment.read(text)
    #expect(read.authenticators.map(\.name) == [Label("phone")])
    #expect(read.authenticators[0].secret.bytes(in: 0..<20) == [UInt8](repeating: 0, count: 20))
    #expect(read.backupCodes?.count == 2)
    #expect(read.backupCodes?.salt == [UInt8](repeating: 0, count: 16))
    for digest in read.backupCodes?.digests ?? [] { #expect(digest[1...].allSatisfy { $0 == 0 }) }
  }
}
