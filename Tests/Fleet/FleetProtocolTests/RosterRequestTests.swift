import FleetProtocol
import OneTimePassword
import SallyportCore
import TestSupport
import Testing

extension Seeded {
  private mutating func factors() -> Factors {
    var factors = Factors()
    for kind in FactorKind.allCases where flip() { factors.insert(kind) }
    return factors
  }

  private mutating func entries(_ count: Int) throws -> [RosterAnswer.Entry] {
    let host = try #require(FleetHostName(Array("web1".utf8)))
    return (0..<count).map { _ in
      RosterAnswer.Entry(
        pick([.enrolled(factors()), .notEnrolled, .taken(by: host), .unreadable]),
        pick([
          nil, .exempt(until: nil), .required(from: nil), .required(from: UnixTime(1_795_219_200)),
        ]))
    }
  }

  fileprivate mutating func roster() throws -> (RosterRequest, RosterAnswer) {
    let request = RosterRequest((0..<number(1...RosterRequest.most)).map { _ in userName() })
    return (request, .told(try entries(request.names.count)))
  }
}

private func name(_ text: String) throws -> UserName { try #require(UserName(Array(text.utf8))) }

@Suite struct `What a host asks about many people of a fleet` {
  // decisive
  @Test func `has the bytes that are written down`() throws {
    let request = RosterRequest([try name("alice"), try name("bob")])
    #expect(
      bytes(try #require(request.encoded())) == [1, 0x69, 2, 5] + Array("alice".utf8) + [3]
        + Array("bob".utf8))
    var both = Factors()
    both.insert(.totp)
    both.insert(.backupCode)
    let host = try #require(FleetHostName(Array("web1".utf8)))
    let told = RosterAnswer.told([
      .init(.enrolled(both), nil), .init(.notEnrolled, .required(from: UnixTime(258))),
      .init(.taken(by: host), .required(from: nil)), .init(.unreadable, .exempt(until: nil)),
    ])
    let level: [UInt8] = [2, 2, 1, 0, 0, 0, 0, 0, 0]
    #expect(
      told.encoded() == [1, 0x5a, 4, 0, 0x55, 5] + level + [0x33, 1, 0x66, 4]
        + Array("web1".utf8) + [3, 0x0f])
    #expect(RosterAnswer.other(.notAllowed).encoded() == MoveAnswer.notAllowed.encoded())
  }

  @Test(arguments: 0..<60) func `is read as it was written, and is no other question`(seed: UInt64)
    throws
  {
    var random = Seeded(seed)
    let (request, answer) = try random.roster()
    let frame = try #require(request.encoded())
    #expect(RosterRequest.decode(frame) == request)
    #expect(MoveRequest.decode(frame) == nil && PersonRequest.decode(frame) == nil)
    #expect(RosterAnswer.decode(try #require(answer.encoded()), to: request) == answer)
  }

  @Test(arguments: 0..<200) func `is that again, or nothing, after any change`(seed: UInt64)
    throws
  {
    var random = Seeded(seed)
    let (request, answer) = try random.roster()
    let frame = random.mutated(frame: bytes(try #require(request.encoded())))
    if let read = RosterRequest.decode(try secret(frame)) {
      #expect(bytes(try #require(read.encoded())) == frame)
    }
    let told = random.mutated(frame: try #require(answer.encoded()))
    if let read = RosterAnswer.decode(told) { #expect(read.encoded() == told) }
  }

  /// The longest names, and the longest name of a host for each.
  @Test func `has room for as many as there may be, and for no more`() throws {
    let long = try name(String(repeating: "x", count: 255))
    let request = RosterRequest(Array(repeating: long, count: RosterRequest.most))
    #expect(try #require(request.encoded()).count == RosterRequest.longest)
    let host = try #require(FleetHostName([UInt8](repeating: 0x61, count: 253)))
    let entry = RosterAnswer.Entry(.taken(by: host), .required(from: UnixTime(1)))
    let answer = RosterAnswer.told(Array(repeating: entry, count: RosterRequest.most))
    #expect(RosterAnswer.decode(try #require(answer.encoded()), to: request) == answer)
    #expect(RosterRequest([]).encoded() == nil)
    #expect(RosterRequest(Array(repeating: long, count: RosterRequest.most + 1)).encoded() == nil)
  }

  // decisive
  @Test func `is answered for each name, or not at all`() throws {
    let request = RosterRequest([try name("alice"), try name("bob")])
    for count in [1, 3] {
      let told = RosterAnswer.told(Array(repeating: .init(.notEnrolled, nil), count: count))
      #expect(RosterAnswer.decode(try #require(told.encoded()), to: request) == nil)
    }
  }
}
