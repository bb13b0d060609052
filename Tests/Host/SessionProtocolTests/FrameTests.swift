import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@testable import SessionProtocol

@Suite struct `The frames of a session` {
  private func secret(_ bytes: [UInt8]) throws -> Secret { try #require(Secret(bytes)) }

  private func bytes(_ secret: Secret?) throws -> [UInt8] {
    let secret = try #require(secret)
    return secret.bytes(in: 0..<secret.count)
  }

  private func fromUser() throws -> [[UInt8]] {
    let counted = try #require(
      CodeParameters(type: .hotp, algorithm: .sha512, digits: .eight))
    let bob = try #require(UserName("bob".utf8))
    let requests: [ChangeRequest] =
      [
        .status, .renew, .enroll(name: nil, .standard, backupCodes: 0),
        .enroll(name: Label("a"), counted, backupCodes: 32), .add(name: nil, counted),
        .add(name: Label("laptop"), .standard), .remove(Label("phone")),
        .rename(Label("phone"), to: Label("x")),
      ]
      + [
        HelpAct.status, .unlock, .pass, .passEnroll, .block(until: nil),
        .block(until: UnixTime(1 << 40)), .unblock,
      ].map { .help($0, bob) }
    for request in requests {
      let packet = try #require(FromUser.change(request).encoded())
      guard case .change(let read)? = FromUser.decode(packet) else {
        Issue.record("\(request)")
        continue
      }
      #expect(read == request)
    }
    return try requests.map { try bytes(FromUser.change($0).encoded()) }
      + [try bytes(FromUser.answer(secret([1, 2, 3])).encoded())]
  }

  private func fromSession() throws -> [[UInt8]] {
    let user = try #require(UserName(Array("alice".utf8)))
    let said: [FromSession] = [
      .prompt([65], echo: true), .prompt([], echo: false), .text([66, 10]),
      .secret(of: user, name: Label("phone"), try secret([UInt8](repeating: 7, count: 20))),
      .done(of: user, backupCodes: [try secret([9])], names: [Label("a"), Label("b")]),
      .done(of: user, backupCodes: [], names: []),
      .status(enrollment: try secret([1]), state: try secret([UInt8](repeating: 2, count: 8192))),
      .refused(.code, [67]), .passed(to: user, try secret([80, 65]), until: UnixTime(1 << 40)),
      .lent(to: user, tries: 5),
    ]
    return try said.map { try bytes($0.encoded()) }
  }

  @Test func `are read as they were written`() throws {
    _ = try fromUser()
    let packets = try fromSession()
    for packet in packets {
      let read = try #require(FromSession.decode(secret(packet)))
      #expect(try bytes(read.encoded()) == packet)
    }
    for refusal in ChangeRefusal.allCases {
      let packet = try #require(FromSession.refused(refusal, []).encoded())
      guard case .refused(refusal, _)? = FromSession.decode(packet) else {
        Issue.record("\(refusal)")
        continue
      }
    }
  }

  @Test func `have the form of version 1`() throws {
    #expect(
      try bytes(FromUser.change(.remove(Label("ab"))).encoded()) == [1, 0x14, 1, 2, 0, 97, 98])
    #expect(
      try bytes(FromUser.change(.add(name: nil, .standard)).encoded())
        == [1, 0x13, 2, 0, 0, 4, 0, 30, 0, 1, 6])
    let block = ChangeRequest.help(.block(until: UnixTime(258)), try #require(UserName("b".utf8)))
    #expect(
      try bytes(FromUser.change(block).encoded())
        == [1, 0x17, 3, 1, 0, 5, 1, 0, 98, 8, 0, 2, 1, 0, 0, 0, 0, 0, 0])
    #expect(
      try bytes(FromSession.prompt([65], echo: false).encoded())
        == [1, 0x31, 2, 1, 0, 65, 1, 0, 0])
  }

  @Test func `ask for no more backup codes than there can be`() throws {
    for (count, isFrame): (UInt8, Bool) in [(0, true), (32, true), (33, false), (255, false)] {
      let packet = try secret([1, 0x12, 3, 0, 0, 4, 0, 30, 0, 1, 6, 1, 0, count])
      #expect((FromUser.decode(packet) != nil) == isFrame)
    }
  }

  @Test func `name the end of a block, and of nothing else`() throws {
    for act in UInt8(0)...7 {
      for (end, isFrame): (UInt8, Bool) in [(0, (1...6).contains(act)), (1, act == 5)] {
        let packet = try secret(
          [1, 0x17, 3, 1, 0, act, 1, 0, 98, 8, 0, end] + [0, 0, 0, 0, 0, 0, 0])
        #expect((FromUser.decode(packet) != nil) == isFrame, "\(act) \(end)")
      }
    }
    let late = try secret(
      [1, 0x17, 3, 1, 0, 5, 1, 0, 98, 8, 0] + [UInt8](repeating: 255, count: 8))
    #expect(FromUser.decode(late) == nil)
  }

  @Test func `of one side are none of the other`() throws {
    for packet in try fromUser() { #expect(try FromSession.decode(secret(packet)) == nil) }
    for packet in try fromSession() { #expect(try FromUser.decode(secret(packet)) == nil) }
  }

  private func isNone(_ packet: [UInt8]) throws -> Bool {
    let packet = try secret(packet)
    return FromUser.decode(packet) == nil && FromSession.decode(packet) == nil
  }

  @Test func `cut short or with more behind are none`() throws {
    for packet in try fromUser() + fromSession() {
      for count in Set([0, 1, 2, packet.count / 2, packet.count - 1]) where count < packet.count {
        #expect(try isNone(Array(packet[..<count])))
      }
      #expect(try isNone(packet + [0]))
      #expect(try isNone([2] + packet[1...]))
    }
  }

  // shows: self-frames
  @Test func `of any bytes are read whole or not at all`() throws {
    var random = Seeded(14)
    let packets = try fromUser() + fromSession().filter { $0.count < 200 }
    var read = 0
    for turn in 0..<20_000 {
      var packet = packets[turn % packets.count]
      for _ in 0..<random.number(1...3) {
        let place = random.number(0...packet.count - 1)
        packet[place] = random.byte()
      }
      if turn % 7 == 0 { packet.removeLast(random.number(0...packet.count)) }
      if let one = try FromUser.decode(secret(packet)) {
        #expect(try bytes(one.encoded()) == packet)
        read += 1
      }
      if let one = try FromSession.decode(secret(packet)) {
        #expect(try bytes(one.encoded()) == packet)
        read += 1
      }
    }
    #expect(read > 1000)
  }

  // decisive
  @Test func `are never longer than the longest`() throws {
    let whole = try secret([UInt8](repeating: 1, count: SessionFrame.longest - 5))
    #expect(FromUser.answer(whole).encoded() != nil)
    let long = try secret([UInt8](repeating: 1, count: SessionFrame.longest - 4))
    #expect(FromUser.answer(long).encoded() == nil)
  }

  @Test func `have at most 80 fields`() throws {
    let user = try #require(UserName(Array("alice".utf8)))
    let one = try secret([1])
    for (codes, isFrame) in [(77, true), (78, false)] {
      let done = FromSession.done(
        of: user, backupCodes: [Secret](repeating: one, count: codes), names: [Label("a")])
      #expect((done.encoded() != nil) == isFrame)
    }
  }

  @Test func `give nothing a name with a character that nobody sees`() throws {
    let name = try #require(Label([0xe2, 0xa0, 0x80]))
    #expect(FromUser.change(.rename(Label("a"), to: name)).encoded() == nil)
    for kind in [[0x15, 2, 1, 0, 97], [0x13, 2]] as [[UInt8]] {
      let more: [UInt8] = kind[0] == 0x13 ? [4, 0, 30, 0, 1, 6] : []
      #expect(try FromUser.decode(secret([1] + kind + [1, 0, 98] + more)) != nil)
      #expect(try FromUser.decode(secret([1] + kind + [3, 0] + name.bytes + more)) == nil)
    }
  }
}
