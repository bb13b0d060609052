import FleetProtocol
import OneTimePassword
import SallyportCore
import TestSupport
import Testing

extension Seeded {
  fileprivate mutating func events() throws -> (EventsRequest, EventsAnswer) {
    let since = UnixTime(Int64(number(0...1_795_000_000)))
    let request = EventsRequest(
      since: since, upTo: flip() ? .max : since.microseconds + UInt64(number(0...1_000_000)),
      pick([.accepted, .refused, .both, .acts]), of: (0..<number(0...2)).map { _ in userName() })
    var (last, found): (UInt64, [EventsAnswer.Entry]) = (request.upTo, [])
    for _ in 0..<number(0...EventsAnswer.most) {
      last = max(request.since, last - min(last, UInt64(number(0...5))))
      let texts = (0..<5).map { _ in bytes(number(0...255)) }
      found.append(try #require(EventsAnswer.Entry(at: last, texts: texts)))
    }
    let next = last > request.since && last < request.upTo && flip() ? last : nil
    return (request, .told(found, next: next))
  }
}

extension UnixTime {
  fileprivate var microseconds: UInt64 { UInt64(seconds) * 1_000_000 }
}

@Suite struct `What a host asks about logins of the fleet` {
  // decisive
  @Test func `has the bytes that are written down`() throws {
    let name = try #require(UserName("bob".utf8))
    let request = EventsRequest(since: UnixTime(1), upTo: 0x1_0000_0002, .both, of: [name])
    #expect(
      bytes(try #require(request.encoded())) == [
        1, 0xcc, 0x40, 0x42, 0x0f, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0x66, 1, 3, 0x62, 0x6f,
        0x62,
      ])
    let entry = EventsAnswer.Entry(
      at: 258, texts: ["web1", "", "sshd", "local", "accepted"].map { Array($0.utf8) })
    let told = EventsAnswer.told([try #require(entry)], next: 257)
    let texts: [[UInt8]] = [[4], Array("web1".utf8), [0, 4], Array("sshd".utf8), [5]]
    let more: [[UInt8]] = [Array("local".utf8), [8], Array("accepted".utf8)]
    #expect(
      told.encoded()
        == [1, 0x5a, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 2, 1, 0, 0, 0, 0, 0, 0]
        + (texts + more).flatMap { $0 })
    #expect(EventsAnswer.told([], next: nil).encoded() == [1, 0x5a, 0, 0])
    #expect(EventsAnswer.other(.notAllowed).encoded() == MoveAnswer.notAllowed.encoded())
  }

  @Test(arguments: 0..<60) func `is read as it was written, and is no other question`(seed: UInt64)
    throws
  {
    var random = Seeded(seed)
    let (request, answer) = try random.events()
    let frame = try #require(request.encoded())
    #expect(EventsRequest.decode(frame) == request)
    #expect(MoveRequest.decode(frame) == nil && PersonRequest.decode(frame) == nil)
    #expect(RosterRequest.decode(frame) == nil && PeopleRequest.decode(frame) == nil)
    #expect(EventsAnswer.decode(try #require(answer.encoded()), to: request) == answer)
  }

  @Test(arguments: 0..<200) func `is that again, or nothing, after any change`(seed: UInt64)
    throws
  {
    var random = Seeded(seed)
    let (request, answer) = try random.events()
    let frame = random.mutated(frame: bytes(try #require(request.encoded())))
    if let read = EventsRequest.decode(try secret(frame)) {
      #expect(bytes(try #require(read.encoded())) == frame)
    }
    let told = random.mutated(frame: try #require(answer.encoded()))
    if let read = EventsAnswer.decode(told) { #expect(read.encoded() == told) }
  }

  @Test func `has room for as many as there may be, and for no more`() throws {
    let long = try #require(UserName([UInt8](repeating: 0x78, count: 255)))
    let request = EventsRequest(since: UnixTime(0), upTo: .max, .both, of: [long, long])
    #expect(try #require(request.encoded()).count == EventsRequest.longest)
    let texts = [[UInt8]](repeating: [UInt8](repeating: 1, count: 300), count: 5)
    let entry = try #require(EventsAnswer.Entry(at: 1, texts: texts))
    let answer = EventsAnswer.told(Array(repeating: entry, count: EventsAnswer.most), next: 1)
    #expect(EventsAnswer.decode(try #require(answer.encoded()), to: request) == answer)
    let more = Array(repeating: entry, count: EventsAnswer.most + 1)
    #expect(EventsAnswer.told(more, next: nil).encoded() == nil)
  }

  // decisive
  @Test func `comes to an end whatever is answered`() throws {
    let request = EventsRequest(since: UnixTime(1), upTo: 2_000_000, .both, of: [])
    let wrong: [([UInt64], UInt64?)] = [
      ([2_000_001], nil), ([1_500_000, 1_500_001], nil), ([999_999], nil), ([], 2_000_000),
      ([], 999_999), ([], .max),
    ]
    for (times, next) in wrong {
      let entries = times.compactMap { EventsAnswer.Entry(at: $0, texts: [[], [], [], [], []]) }
      let told = try #require(EventsAnswer.told(entries, next: next).encoded())
      #expect(EventsAnswer.decode(told, to: request) == nil, "\(times)")
    }
  }
}
