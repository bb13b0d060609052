import FleetProtocol
import OneTimePassword
import SallyportCore
import TestSupport
import Testing

extension Seeded {
  private mutating func enrolled() -> PeopleAnswer.Enrolled {
    PeopleAnswer.Enrolled(
      (0..<number(1...8)).map { _ in label() }, backupCodesLeft: number(0...64),
      since: UnixTime(Int64(bitPattern: number64())), lastUse: flip() ? nil : pastTime(),
      openPasses: number(0...3), lock: pick([.none, .until(pastTime()), .forGood]))
  }

  private mutating func entry() throws -> PeopleAnswer.Entry {
    let host = try #require(FleetHostName(Array("web1".utf8)))
    let helper = flip() ? nil : Optional(userName())
    let block = FleetBlock(since: pastTime(), until: flip() ? nil : pastTime(), helper: helper)
    return PeopleAnswer.Entry(
      flip() ? userName().bytes : bytes(number(1...255)),
      pick([.enrolled(enrolled()), .notEnrolled, .taken(by: host), .unreadable]),
      level: pick([
        nil, .exempt(until: nil), .exempt(until: pastTime()), .required(from: nil),
        .required(from: pastTime()),
      ]), block: flip() ? nil : block)
  }

  fileprivate mutating func people() throws -> (PeopleRequest, PeopleAnswer) {
    let request = PeopleRequest(after: flip() ? [] : bytes(number(1...255)), count: 60)
    var found: [PeopleAnswer.Entry] = []
    for _ in 0..<number(0...60) { found.append(try entry()) }
    var names: Set<[UInt8]> = []
    let ordered = found.filter {
      request.after.lexicographicallyPrecedes($0.name) && names.insert($0.name).inserted
    }.sorted { $0.name.lexicographicallyPrecedes($1.name) }
    return (request, .told(ordered, isLast: ordered.isEmpty || flip()))
  }
}

@Suite struct `What a host asks about all people of a fleet` {
  // decisive
  @Test func `has the bytes that are written down`() throws {
    let request = PeopleRequest(after: Array("bob".utf8), count: 2)
    #expect(bytes(try #require(request.encoded())) == [1, 0xaa, 3] + Array("bob".utf8) + [2])
    let host = try #require(FleetHostName(Array("web1".utf8)))
    let carol = PeopleAnswer.Enrolled(
      [try label("phone")], backupCodesLeft: 9, since: UnixTime(258), lastUse: UnixTime(259),
      openPasses: 1, lock: .until(UnixTime(260)))
    let dave = PeopleAnswer.Enrolled(
      [try label("a")], backupCodesLeft: 0, since: UnixTime(0), lastUse: nil, openPasses: 0,
      lock: .none)
    let block = FleetBlock(
      since: UnixTime(257), until: nil, helper: UserName(Array("eve".utf8)))
    let told = PeopleAnswer.told(
      [
        .init(Array("carol".utf8), .enrolled(carol)), .init(Array("dave".utf8), .enrolled(dave)),
        .init(Array("f".utf8), .taken(by: host), level: .exempt(until: nil)),
        .init(Array("g".utf8), .notEnrolled, block: block), .init([0x2d], .unreadable),
      ], isLast: true)
    let zeros = [UInt8](repeating: 0, count: 6)
    let enrolled: [UInt8] =
      [5] + Array("carol".utf8) + [0, 0x55, 0x55, 1, 5] + Array("phone".utf8) + [9, 2, 1] + zeros
      + [0x33, 3, 1] + zeros + [1, 0x33, 4, 1] + zeros
    let bare: [UInt8] =
      [4] + Array("dave".utf8) + [0, 0x55, 0x55, 1, 1, 0x61, 0, 0, 0] + zeros + [0x55, 0, 0x55]
    let taken: [UInt8] = [1, 0x66, 3, 0x55, 0x66, 4] + Array("web1".utf8)
    let blocked: [UInt8] =
      [1, 0x67, 0, 0x33, 1, 1] + zeros + [0x55, 3] + Array("eve".utf8) + [0x33]
    #expect(
      told.encoded()
        == [1, 0x5a, 1, 5] + enrolled + bare + taken + blocked + [1, 0x2d, 0, 0x55, 0x0f])
    #expect(PeopleAnswer.other(.notAllowed).encoded() == MoveAnswer.notAllowed.encoded())
  }

  @Test(arguments: 0..<60) func `is read as it was written, and is no other question`(seed: UInt64)
    throws
  {
    var random = Seeded(seed)
    let (request, answer) = try random.people()
    let frame = try #require(request.encoded())
    #expect(PeopleRequest.decode(frame) == request)
    #expect(MoveRequest.decode(frame) == nil && PersonRequest.decode(frame) == nil)
    #expect(RosterRequest.decode(frame) == nil)
    #expect(PeopleAnswer.decode(try #require(answer.encoded()), to: request) == answer)
  }

  @Test(arguments: 0..<200) func `is that again, or nothing, after any change`(seed: UInt64)
    throws
  {
    var random = Seeded(seed)
    let (request, answer) = try random.people()
    let frame = random.mutated(frame: bytes(try #require(request.encoded())))
    if let read = PeopleRequest.decode(try secret(frame)) {
      #expect(bytes(try #require(read.encoded())) == frame)
    }
    let told = random.mutated(frame: try #require(answer.encoded()))
    if let read = PeopleAnswer.decode(told) { #expect(read.encoded() == told) }
  }

  /// The longest of each.
  @Test func `has room for as many as there may be, and for no more`() throws {
    let long = try #require(UserName([UInt8](repeating: 0x78, count: 255)))
    let block = FleetBlock(since: UnixTime(1), until: UnixTime(2), helper: long)
    let enrolled = PeopleAnswer.Enrolled(
      Array(repeating: try label(String(repeating: "x", count: 64)), count: 8),
      backupCodesLeft: 64, since: UnixTime(1), lastUse: UnixTime(2), openPasses: 3,
      lock: .until(UnixTime(3)))
    let entries = (0..<PeopleRequest.most).map { index in
      PeopleAnswer.Entry(
        [UInt8](repeating: UInt8(index), count: 255), .enrolled(enrolled),
        level: .exempt(until: UnixTime(1)), block: block)
    }
    let answer = PeopleAnswer.told(entries, isLast: false)
    #expect(
      PeopleAnswer.decode(try #require(answer.encoded()), to: PeopleRequest(after: [])) == answer)
    for count in [0, PeopleRequest.most + 1] {
      #expect(PeopleRequest(after: [], count: count).encoded() == nil)
    }
    #expect(PeopleRequest(after: [UInt8](repeating: 1, count: 256)).encoded() == nil)
  }

  // decisive
  @Test func `comes to an end whatever is answered`() throws {
    let request = PeopleRequest(after: [0x62], count: 2)
    let wrong: [([String], Bool)] = [
      ([], false), (["b"], true), (["a"], true), (["d", "c"], true), (["c", "c"], true),
      (["c", "d", "e"], true),
    ]
    for (names, isLast) in wrong {
      let entries = names.map { PeopleAnswer.Entry(Array($0.utf8), .notEnrolled) }
      let told = try #require(PeopleAnswer.told(entries, isLast: isLast).encoded())
      #expect(PeopleAnswer.decode(told, to: request) == nil, "\(names)")
    }
  }
}
