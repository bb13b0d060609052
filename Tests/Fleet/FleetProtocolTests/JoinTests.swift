import FleetProtocol
import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@Suite struct `Joining a fleet` {
  private func token(_ addresses: [String] = ["192.0.2.1:7353", "[2001:db8::1]:7353"]) throws
    -> JoinToken
  {
    try #require(
      JoinToken(
        pin: (0..<32).map { UInt8($0) }, secret: try secret((0..<16).map { UInt8(100 + $0) }),
        verifiers: addresses.map { Array($0.utf8) }))
  }

  private func flaw(_ text: String) throws -> JoinToken.Flaw? {
    let typed = try secret(text)
    do throws(JoinToken.Flaw) {
      _ = try JoinToken.read(typed)
      return nil
    } catch {
      return error
    }
  }

  // MARK: the token

  @Test func `its token is read as it was written, with blanks around it too`() throws {
    for count in 1...8 {
      let token = try token((1...count).map { "192.0.2.\($0):7353" })
      let written = text(try token.written())
      for typed in [written, " \(written)\r\n", "\t\(written)"] {
        let again = try JoinToken.read(try secret(typed))
        #expect(again.pin == token.pin && again.verifiers == token.verifiers)
        #expect(bytes(again.secret) == bytes(token.secret))
      }
      #expect(written.count <= JoinToken.longest)
    }
  }

  @Test func `its longest token fits a line`() throws {
    let longest = "[" + String(repeating: "f", count: 62) + "]"
    let token = try token([String](repeating: longest, count: 8))
    #expect(try token.written().count <= JoinToken.longest)
    #expect(try JoinToken.read(token.written()).verifiers == token.verifiers)
  }

  @Test func `a token that lacks a character, or has another one, is not whole`() throws {
    let written = Array(text(try token().written()))
    for index in 10..<written.count {
      var lacking = written
      lacking.remove(at: index)
      let lack = try flaw(String(lacking))
      #expect(lack == .notWhole || lack == .notAToken, "without \(index)")
      var other = written
      other[index] = other[index] == "A" ? "B" : "A"
      let change = try flaw(String(other))
      #expect(change == .notWhole || change == .otherForm || change == .notAToken, "\(index)")
    }
    for count in 0..<written.count { #expect(try flaw(String(written.prefix(count))) != nil) }
  }

  @Test func `other texts are no tokens`() throws {
    for text in ["", " ", "sallyport", "hello", "sallyport-", "sallyport-!", "sallyport-\u{e4}"] {
      let found = try flaw(text)
      #expect(found == .notAToken || found == .notWhole, "\(text)")
    }
  }

  @Test func `a token has 1 to 8 addresses of characters that addresses have`() throws {
    let key = try secret([UInt8](repeating: 1, count: 16))
    let pin = [UInt8](repeating: 2, count: 32)
    func isMade(_ addresses: [String]) -> Bool {
      JoinToken(pin: pin, secret: key, verifiers: addresses.map { Array($0.utf8) }) != nil
    }
    #expect(isMade(["192.0.2.1:1"]))
    #expect(!isMade([]))
    #expect(!isMade([String](repeating: "192.0.2.1:1", count: 9)))
    for bad in ["", "host.example:1", "192.0.2.1 :1", "\u{1b}", String(repeating: "1", count: 65)] {
      #expect(!isMade([bad]), "\(bad)")
    }
  }

  // MARK: the request

  @Test(arguments: 0..<30)
  func `a request is read as it was written`(seed: UInt64) throws {
    var random = Seeded(seed)
    let names = (0..<random.number(0...200)).compactMap { _ in name(&random) }
    let purpose: JoinRequest.Purpose = random.flip() ? .look : .join
    let key = random.bytes(16)
    let request = JoinRequest(purpose, try secret(key), names: names)
    let again = try #require(request.encoded().flatMap { JoinRequest.decode($0) })
    #expect(again.purpose == purpose && again.names == names && bytes(again.secret) == key)
  }

  private func name(_ random: inout Seeded) -> UserName? {
    let letters = (0..<random.number(1...20)).map { _ in UInt8(random.number(97...122)) }
    return UserName(letters)
  }

  // decisive
  @Test func `a request has at most 200 names and a secret of 16 bytes`() throws {
    let alice = try #require(UserName(Array("alice".utf8)))
    let key = try secret([UInt8](repeating: 1, count: 16))
    func isWritten(_ count: Int, _ key: Secret) -> Bool {
      JoinRequest(.look, key, names: [UserName](repeating: alice, count: count)).encoded() != nil
    }
    #expect(isWritten(200, key))
    #expect(!isWritten(201, key))
    #expect(!isWritten(0, try secret([UInt8](repeating: 1, count: 15))))
  }

  @Test func `no request is cut off or goes on`() throws {
    let alice = try #require(UserName(Array("alice".utf8)))
    let key = try secret([UInt8](repeating: 1, count: 16))
    let frame = bytes(try #require(JoinRequest(.join, key, names: [alice]).encoded()))
    for count in 0..<frame.count {
      #expect(JoinRequest.decode(try secret(frame.prefix(count))) == nil)
    }
    #expect(JoinRequest.decode(try secret(frame + [0])) == nil)
    for purpose in 0...UInt8.max where purpose != 0x55 && purpose != 0x33 {
      var other = frame
      other[1] = purpose
      #expect(JoinRequest.decode(try secret(other)) == nil)
    }
  }

  // MARK: the answer

  @Test(arguments: 0..<30)
  func `an answer is read as it was written, and not cut off`(seed: UInt64) throws {
    var random = Seeded(seed)
    var answers: [JoinAnswer] = [.trouble, .welcome(try welcome(&random))]
    answers += JoinAnswer.Refusal.allCases.map { .refused($0) }
    for answer in answers {
      let frame = try #require(answer.encoded())
      #expect(JoinAnswer.decode(frame) == answer)
      #expect(JoinAnswer.decode(frame + [0]) == nil)
      for count in 0..<min(frame.count, 80) {
        #expect(JoinAnswer.decode([UInt8](frame.prefix(count))) == nil)
      }
    }
  }

  private func welcome(_ random: inout Seeded) throws -> JoinAnswer.Welcome {
    let host = try #require(FleetHostName(Array("web-1.example.org".utf8)))
    return JoinAnswer.Welcome(
      host: host, enrolls: random.flip(),
      verifiers: (0..<random.number(0...8)).map { Array("192.0.2.\($0):7353".utf8) },
      pins: (0..<random.number(1...2)).map { _ in random.bytes(32) },
      known: (0..<random.number(0...200)).compactMap { _ in name(&random) })
  }

  @Test func `a name of a host is one that DNS could have`() {
    for name in ["web1", "WEB-1.example.org", "1", "a_b", String(repeating: "a", count: 253)] {
      #expect(FleetHostName(Array(name.utf8))?.text == name)
    }
    for name in ["", "-a", ".a", "a b", "a/b", "\u{e4}", "a\n", String(repeating: "a", count: 254)]
    {
      #expect(FleetHostName(Array(name.utf8)) == nil, "\(name)")
    }
  }

  // MARK: the status

  @Test(arguments: 0..<30)
  func `the status of a fleet is read as it was written, and not cut off`(seed: UInt64) throws {
    var random = Seeded(seed)
    let peers = (0..<random.number(0...16)).map { _ in
      FleetStatusAnswer.Peer(
        name: Label("two"),
        address: random.flip() ? nil : Array("192.0.2.1:7353".utf8),
        seen: random.flip() ? nil : UnixTime(Int64(random.number(0...2_000_000_000))))
    }
    let status = FleetStatusAnswer(
      verifier: Label("one"), host: try #require(FleetHostName(Array("web1".utf8))),
      enrolls: random.flip(), now: UnixTime(1_772_530_000), started: UnixTime(1_772_520_000),
      awaySince: random.flip() ? nil : UnixTime(1_772_529_000), peers: peers)
    let frame = try #require(status.encoded())
    #expect(FleetStatusAnswer.decode(frame) == status)
    #expect(FleetStatusAnswer.decode(frame + [0]) == nil)
    for count in 0..<frame.count {
      #expect(FleetStatusAnswer.decode([UInt8](frame.prefix(count))) == nil)
    }
  }
}
