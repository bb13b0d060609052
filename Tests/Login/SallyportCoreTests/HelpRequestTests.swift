import OneTimePassword
import SallyportCore
import TestSupport
import Testing

extension Seeded {
  fileprivate mutating func helpRequests() -> [HelpRequest] {
    let created = Int64(number64() >> 2)
    let pass = Pass(
      id: id(), digest: bytes(32), created: UnixTime(created),
      expires: UnixTime(created + 1 + Int64(number64() >> 2)), uses: UInt8(number(1...5)),
      enrolls: flip())
    let verbs: [HelpOrder.Verb] = [
      .show, .lend(under: policy(), id: id()), .give(pass, id: id()), .block(until: nil),
      .block(until: pastTime()), .unblock,
    ]
    return verbs.map { HelpRequest(HelpOrder($0, by: userName()), for: userName()) }
  }

  fileprivate mutating func helpAnswers() throws -> [HelpAnswer] {
    let enrollment = try enrollment()
    var state = LoginState(initialFor: enrollment)
    state.known = Bucket(spent: GuessProbability(units: 5), since: UnixTime(7))
    let blocks: [BlockSetter] = [.nobody, .helper, .root]
    let told = blocks.flatMap { block in
      [
        HelpedPerson(nil, block: block, hasEnough: (flip(), flip())),
        HelpedPerson((enrollment, state), block: block, hasEnough: (flip(), flip())),
      ].map { HelpAnswer.told($0) }
    }
    return told + [.done, .notServed, .trouble, .lent(UInt8(number(0...255)))]
      + HelpAnswer.Refusal.allCases.map { .refused($0) }
  }
}

@Suite struct `What a helper asks a fleet to do for somebody` {
  @Test(arguments: 0..<30) func `is read as it was written, and is no question of a login`(
    seed: UInt64
  ) throws {
    var random = Seeded(seed)
    for request in random.helpRequests() {
      let frame = try #require(request.encoded())
      #expect(HelpRequest.decode(frame) == request)
      #expect(LoginQuestion.decode(frame) == nil)
    }
    for question in try random.requests() {
      #expect(HelpRequest.decode(try #require(question.encoded())) == nil)
    }
    for answer in try random.helpAnswers() {
      let frame = try #require(answer.encoded())
      let read = try #require(HelpAnswer.decode(frame))
      #expect(read.encoded() == frame)
      #expect("\(read)".prefix(60) == "\(answer)".prefix(60))
    }
  }

  @Test(arguments: 0..<100) func `is itself again, or nothing, whatever is changed`(seed: UInt64)
    throws
  {
    var random = Seeded(seed)
    for request in random.helpRequests() {
      let frame = random.mutated(frame: bytes(try #require(request.encoded())))
      if let read = HelpRequest.decode(try secret(frame)) {
        #expect(bytes(try #require(read.encoded())) == frame)
      }
    }
    for answer in try random.helpAnswers() {
      let frame = random.mutated(frame: try #require(answer.encoded()))
      if let read = HelpAnswer.decode(frame) { #expect(read.encoded() == frame) }
    }
  }

  @Test func `is for no enrollment without an id, and gives no pass that is over`() throws {
    let (carol, bob) = (try #require(UserName("carol".utf8)), try #require(UserName("bob".utf8)))
    let digest = [UInt8](repeating: 1, count: 32)
    func pass(_ id: UInt64, _ from: Int64, _ to: Int64, _ uses: UInt8) -> HelpOrder.Verb {
      .give(
        Pass(
          id: id, digest: digest, created: UnixTime(from), expires: UnixTime(to), uses: uses),
        id: 7)
    }
    let wrong: [HelpOrder.Verb] = [
      .lend(under: Policy(), id: 0), pass(0, 5, 6, 1), pass(1, 5, 5, 1), pass(1, -1, 5, 1),
      pass(1, 5, 6, 0), pass(1, 5, 6, 6), .block(until: UnixTime(-1)),
    ]
    for verb in wrong {
      #expect(HelpRequest(HelpOrder(verb, by: carol), for: bob).encoded() == nil, "\(verb)")
    }
    #expect(HelpRequest(HelpOrder(pass(1, 5, 6, 1), by: carol), for: bob).encoded() != nil)
  }
}
