import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportSystem
import TestSupport
import Testing

@Suite struct `A token's file` {
  private func sample(
    _ serial: String = "2600123456", holder: Token.Holder? = nil, last: UInt64? = nil,
    _ parameters: CodeParameters = .standard, offset: Int32? = 0
  ) throws -> Token {
    let serial = try #require(TokenSerial(serial.utf8))
    return Token(
      serial,
      Authenticator(
        id: 7, name: try #require(Label(serial.bytes)), parameters: parameters,
        secret: try example(20), initialLastAccepted: last, created: UnixTime(1_772_528_400),
        clockOffset: offset), holder: holder)
  }

  private func text(_ token: Token) throws -> String {
    TestSupport.text(try #require(token.written()))
  }

  private func holder(_ user: String, _ authority: Token.Authority?) throws -> Token.Holder {
    Token.Holder(user: try userName(user), uid: 1003, authority: authority)
  }

  @Test func `comes back as it was written`() throws {
    let alice = try holder("alice", .files)
    let nobodys = Token.Holder(user: alice.user, uid: nil, authority: nil)
    let counted = try #require(CodeParameters(type: .hotp, algorithm: .sha256, digits: .eight))
    for token in [
      try sample(), try sample(holder: alice, last: 41), try sample(holder: holder("bob", .fleet)),
      try sample("a b%", holder: nobodys),
      try sample("X", counted, offset: nil), try sample(offset: -420),
    ] {
      let read = try Token.read(try secret(text(token)))
      #expect(read.serial == token.serial && read.holder == token.holder && read.isSame(as: token))
      #expect(try text(read) == text(token))
    }
  }

  @Test func `is text of these keys`() throws {
    let alice = try holder("alice", .files)
    #expect(
      try text(sample(holder: alice)) == """
        # Sallyport token: holds a secret. Change it with sallyport(1) only.
        version = 1
        serial = 2600123456
        assigned = alice
        uid = 1003
        authority = files

        [authenticator]
        id = 0000000000000007
        name = 2600123456
        type = totp
        period = 30
        algorithm = SHA1
        digits = 6
        last_accepted = none
        secret = GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ
        created = 1772528400
        clock_offset = 0

        [end]

        """)
  }

  @Test func `is refused with its line where it is anything else`() throws {
    let whole = try text(sample(holder: holder("alice", .fleet)))
    for (old, new, line) in [
      ("version = 1\n", "", 1), ("version = 1", "version = 2", 2), ("serial = 2", "serial = .", 3),
      ("serial = 2600123456\n", "", 1), ("assigned = alice\n", "", 1), ("uid = 1003\n", "", 1),
      ("uid = 1003", "uid = 03", 5), ("uid = 1003", "uid = 1003\nuid = 1003", 6),
      ("uid = 1003", "id = 1003", 5), ("authority = fleet", "authority = other", 6),
      ("authority = fleet", "authority = fleet\nauthority = files", 7),
      ("assigned = alice", "assigned = a/b", 4),
      ("[authenticator]", "[pass]", 8), ("digits = 6", "digits = 9", 14), ("\n[end]\n", "", 8),
      ("[end]", "[backup_codes]\nid = 1\n[end]", 20), ("type = totp", "kind = totp", 11),
      ("# Sallyport token", "\n# Sallyport token", 8),
    ] {
      #expect(whole.contains(old))
      let text = try secret(whole.replacingOccurrences(of: old, with: new))
      if old.hasPrefix("#") {
        _ = try Token.read(text)
        continue
      }
      do throws(SettingsError) {
        _ = try Token.read(text)
        Issue.record("read: \(new)")
      } catch {
        #expect(error.line == line, "\(new): \(error)")
      }
    }
    for count in stride(from: 0, to: whole.utf8.count - 1, by: 7) {
      #expect(throws: SettingsError.self) {
        try Token.read(secret(Array(whole.utf8.prefix(count))))
      }
    }
  }

  @Test func `has a name that leaves no directory`() {
    for name in ["", ".", "..", ".a", "-a", "a/b", " a", "a ", "é", "a\n", "a\u{7f}"] {
      #expect(TokenSerial(name.utf8) == nil, "\(name)")
    }
    #expect(TokenSerial(String(repeating: "1", count: 65).utf8) == nil)
    for name in ["1", "C200-1", "508326:1", "a b", String(repeating: "%", count: 64)] {
      #expect(TokenSerial(name.utf8).map { (1...200).contains($0.fileName.count) } == true)
    }
  }

  // MARK: from hand to hand

  // shows: token-hands
  @Test func `gives nothing back that was shown`() throws {
    let now = UnixTime(1_772_530_000)
    let step = timeStep(at: now.seconds, period: 30)
    let token = try sample(last: 3, offset: 420)
    let used = token.returned(
      AuthenticatorState(
        id: 7, lastAccepted: step + 40, clock: TokenClock(offset: 450, since: now)), at: now,
      under: Policy())
    #expect(used.authenticator.initialLastAccepted == step + 40)
    #expect(used.authenticator.clockOffset == 450 && used.holder == nil)
    // By its own time, also where it was not used.
    let unused = token.returned(
      AuthenticatorState(id: 7, lastAccepted: nil, clock: TokenClock(offset: 420, since: now)),
      at: now, under: Policy())
    #expect(unused.authenticator.initialLastAccepted == step + 19)
    let lost = token.distrusted(at: now)
    #expect(try #require(lost.authenticator.initialLastAccepted) >= step + 24)
    #expect(lost.authenticator.clockOffset == 420)
    let given = lost.given(as: Label("x"), id: 9, at: now, confirmed: false)
    // What its clock was by then may have been lost with the record: it may be 200 steps ahead.
    #expect(given.initialLastAccepted == step + 210)
    let unseen = try sample().given(as: Label("x"), id: 9, at: now, confirmed: false)
    #expect(unseen.initialLastAccepted == step + 210)
    #expect(unseen.firstUse(after: now) == UnixTime((Int64(step) + 211) * 30))
    #expect(try sample().authenticator.firstUse(after: now) == nil)
  }

  @Test func `of a counter needs a code once somebody has had it`() throws {
    let counted = try #require(CodeParameters(type: .hotp, algorithm: .sha1, digits: .six))
    let token = try sample(last: 4, counted, offset: nil)
    #expect(token.needsCode)
    let now = UnixTime(1_772_530_000)
    for back in [
      token.returned(AuthenticatorState(id: 7, lastAccepted: 9), at: now, under: Policy()),
      token.distrusted(at: now),
      token.returned(AuthenticatorState(id: 7, lastAccepted: nil), at: now, under: Policy()),
    ] {
      #expect(HeldCounter.isHeld(back.authenticator.initialLastAccepted) && back.needsCode)
    }
    let back = token.returned(
      AuthenticatorState(id: 7, lastAccepted: 9), at: now, under: Policy())
    let last = back.authenticator.initialLastAccepted
    #expect(HeldCounter.next(after: last) == 10)
  }

  // MARK: the inventory

  @Test func `is there whole, or not at all, and none takes another's place`() throws {
    let scratch = try Scratch()
    let store = scratch.store
    #expect(try store.token(sample().serial) == nil)
    let many = try (0..<5).map { try sample("T\($0)") }
    try store.add(many)
    #expect(throws: StoreTrouble.self) { try store.add([self.sample("U"), self.sample("T3")]) }
    var found: [String] = []
    try store.eachToken { file, read in
      if case .success(let token) = read { found.append("\(file) \(token.serial.text)") }
    }
    #expect(found == (0..<5).map { "T\($0) T\($0)" })
    #expect(try scratch.names().isEmpty)
    var held = many[1]
    held.holder = Token.Holder(user: try userName("alice"), uid: nil, authority: .files)
    try store.replace(held)
    #expect(try store.token(held.serial)?.holder == held.holder)
    #expect(throws: StoreTrouble.self) { try store.replace(self.sample("U")) }
    #expect(try store.forget([many[0].serial, held.serial])?.serial == held.serial)
    #expect(try store.token(many[0].serial) != nil)
    #expect(try store.forget([many[0].serial, many[2].serial]) == nil)
    #expect(try store.token(many[0].serial) == nil)
    let files = try FileManager.default.contentsOfDirectory(atPath: scratch.root + "/tokens")
    #expect(Set(files) == ["T1", "T3", "T4"])
  }

  @Test func `that is broken is removed only unchecked, and one that somebody has never`() throws {
    let scratch = try Scratch()
    let store = scratch.store
    try store.add([sample("A"), sample("B"), sample("C")])
    func put(_ text: String, _ name: String) throws {
      let path = scratch.root + "/tokens/" + name
      try Data(text.utf8).write(to: URL(fileURLWithPath: path))
      #expect(unsafe chmod(path, 0o600) == 0)
    }
    let held = Token.Holder(user: try userName("alice"), uid: nil, authority: .files)
    try put("", "A")
    try put(text(sample("B", holder: held)).replacingOccurrences(of: "[end]", with: ""), "B")
    try store.replace(sample("C", holder: held))
    // A may have lost the line by which B tells.
    for broken in ["A", "B"] {
      #expect(throws: StoreTrouble.self) { try store.forget([self.sample(broken).serial]) }
    }
    let all = try ["A", "B", "C"].map { try sample($0).serial }
    #expect(try store.forget(all, unchecked: true)?.serial == all[2])
    func files() throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: scratch.root + "/tokens").sorted()
    }
    #expect(try files() == ["A", "B", "C"])
    #expect(try store.forget(all[..<2], unchecked: true) == nil)
    #expect(try files() == ["C"])
    #expect(try scratch.names().isEmpty)
  }

  @Test func `is read by nobody else's name, and all count as used in a copy`() throws {
    let scratch = try Scratch()
    let store = scratch.store
    try store.add([sample("A"), sample("B")])
    let path = scratch.root + "/tokens/"
    try Data(contentsOf: URL(fileURLWithPath: path + "A"))
      .write(to: URL(fileURLWithPath: path + "C"))
    #expect(unsafe chmod(path + "C", 0o600) == 0)
    let serial = try #require(TokenSerial("C".utf8))
    #expect(throws: StoreTrouble.self) { try store.token(serial) }
    let done = try store.distrustTokens(at: UnixTime(1_772_530_000))
    #expect(done.done == 2 && done.failed.map(\.file) == ["C"])
    #expect(try store.distrustTokens(named: ["C"], at: UnixTime(1_772_539_999)).done == 0)
    #expect(try store.token(sample("A").serial)?.authenticator.initialLastAccepted != nil)
    #expect(unsafe chmod(path + "A", 0o644) == 0)
    #expect(throws: StoreTrouble.self) { try store.token(self.sample("A").serial) }
    try store.empty()
    #expect(!FileManager.default.fileExists(atPath: path))
  }
}
