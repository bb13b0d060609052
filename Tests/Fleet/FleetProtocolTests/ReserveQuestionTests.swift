import FleetProtocol
import OneTimePassword
import SallyportCore
import TestSupport
import Testing

extension Seeded {
  fileprivate mutating func entry() -> ReserveQuestion.Entry {
    ReserveQuestion.Entry(
      name: userName(), enrollmentID: id(), receipt: bytes(32), setID: id(), used: number64())
  }

  fileprivate mutating func question() -> ReserveQuestion {
    if flip() { return .fetch(userName(), receipt: flip() ? bytes(32) : nil) }
    if number(0...3) == 0 {
      var start = HostStart(random: bytes(HostStart.randomLength), number: number64())
      if flip() { start.confirmed = number64() }
      return .start(start)
    }
    return .confirm((0..<number(0...200)).map { _ in entry() })
  }

  fileprivate mutating func answer(to question: ReserveQuestion) -> ReserveAnswer {
    if number(0...9) == 0 { return .busy }
    switch question {
    case .fetch:
      if flip() { return ReserveAnswer.none }
      let set = BackupCodeSet(
        id: id(), salt: bytes(16), digests: (0..<number(0...32)).map { _ in bytes(32) })
      return .section(
        ReserveAnswer.Section(
          enrollmentID: id(), receipt: bytes(32), set: set, used: number64()))
    case .confirm(let entries):
      let count = entries.isEmpty ? 0 : number(1...entries.count)
      return .confirmed(
        (0..<count).map { _ in pick([.keep(used: number64()), .replace, .delete]) })
    case .start: return .start(pick(HostStartReply.allCases))
    }
  }
}

@Suite struct `A question about a reserve, and its answer` {
  @Test(arguments: 0..<100) func `are read as they were written`(seed: UInt64) throws {
    var random = Seeded(seed)
    let question = random.question()
    let frame = try #require(question.encoded())
    #expect(ReserveQuestion.decode(frame) == question)
    let answer = random.answer(to: question)
    let body = try #require(answer.encoded())
    #expect(ReserveAnswer.decode(body, to: question) == answer)
  }

  @Test func `are short enough for a frame, whatever they hold`() throws {
    let name = try #require(UserName([UInt8](repeating: 0x61, count: 255)))
    let entry = ReserveQuestion.Entry(
      name: name, enrollmentID: 1, receipt: [UInt8](repeating: 1, count: 32), setID: 1, used: 0)
    let most = [ReserveQuestion.Entry](repeating: entry, count: ReserveQuestion.most)
    #expect(try #require(ReserveQuestion.confirm(most).encoded()).count <= 65_535)
    #expect(ReserveQuestion.confirm(most + [entry]).encoded() == nil)
  }

  @Test(arguments: 0..<300) func `are themselves again, or nothing, after any change`(seed: UInt64)
    throws
  {
    var random = Seeded(seed)
    let question = random.question()
    let frame = random.mutated(bytes(try #require(question.encoded())))
    if let read = ReserveQuestion.decode(try secret(frame)) {
      #expect(bytes(try #require(read.encoded())) == frame)
    }
    let body = random.mutated(try #require(random.answer(to: question).encoded()))
    if let read = ReserveAnswer.decode(body, to: question) {
      #expect(read.encoded() == body)
    }
  }

  @Test func `belong together`() throws {
    let name = try #require(UserName(Array("alice".utf8)))
    let entry = ReserveQuestion.Entry(
      name: name, enrollmentID: 1, receipt: [UInt8](repeating: 1, count: 32), setID: 1, used: 0)
    let none = try #require(ReserveAnswer.none.encoded())
    #expect(ReserveAnswer.decode(none, to: .confirm([entry])) == nil)
    let two = try #require(ReserveAnswer.confirmed([.delete, .delete]).encoded())
    #expect(ReserveAnswer.decode(two, to: .confirm([entry])) == nil)
    #expect(ReserveAnswer.decode(two, to: .fetch(name, receipt: nil)) == nil)
    // Of none, it would be asked again for ever.
    let nothing = try #require(ReserveAnswer.confirmed([]).encoded())
    #expect(ReserveAnswer.decode(nothing, to: .confirm([entry])) == nil)
    #expect(ReserveAnswer.decode(nothing, to: .confirm([])) == .confirmed([]))
  }
}
