import FleetProtocol
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportVerifier
import TestSupport
import Testing

private let alice = Array("alice".utf8)
private let bob = Array("bob".utf8)

private func key(_ byte: UInt8 = 7, id: UInt32 = 0x0102_0304) throws -> FleetKey {
  FleetKey(id: id, try secret([UInt8](repeating: byte, count: FleetKey.length)))
}

@Suite struct `A sealed column` {
  @Test(arguments: [0, 1, 100, 65_551])
  func `gives back what was sealed, and looks like nothing`(count: Int) throws {
    let text = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
    let sealed = try key().seal(try secret(text), .enrollment, of: alice)
    #expect(sealed.count == count + 33)
    #expect(sealed.prefix(5) == [1, 4, 3, 2, 1])
    #expect(bytes(try key().open(sealed, .enrollment, of: alice)) == text)
    #expect(try key().seal(try secret(text), .enrollment, of: alice) != sealed)
  }

  /// By the key, the algorithm and the associated data as docs/fleet-format.md has them, with
  /// Python's hmac and AESGCM of its package cryptography 48.
  @Test func `is what another program seals`() throws {
    let sealed = hex(
      "0104030201000102030405060708090a0bc7d839a3407c58cf287ee81b394bfd"
        + "36a2654aac155dc6398a83df9f0ec5a2332aab")
    #expect(text(try key().open(sealed, .state(version: 5), of: alice)) == "the state of alice")
  }

  // shows: db-forged
  @Test func `is refused for another user, column, version or key`() throws {
    let sealed = try key().seal(try secret("text"), .state(version: 5), of: alice)
    #expect(throws: SealFault.forged) { try key().open(sealed, .state(version: 5), of: bob) }
    #expect(throws: SealFault.forged) { try key().open(sealed, .state(version: 4), of: alice) }
    #expect(throws: SealFault.forged) { try key().open(sealed, .enrollment, of: alice) }
    #expect(throws: SealFault.forged) { try key(8).open(sealed, .state(version: 5), of: alice) }
    #expect(throws: SealFault.otherKey(0x0102_0304)) {
      try key(id: 9).open(sealed, .state(version: 5), of: alice)
    }
  }

  @Test func `is refused with any bit changed, and at any other length`() throws {
    let sealed = try key().seal(try secret("text"), .enrollment, of: alice)
    for bit in 0..<sealed.count * 8 {
      var changed = sealed
      changed[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(throws: SealFault.self) { try key().open(changed, .enrollment, of: alice) }
    }
    for count in 0..<sealed.count {
      #expect(throws: SealFault.self) {
        try key().open([UInt8](sealed.prefix(count)), .enrollment, of: alice)
      }
    }
    #expect(throws: SealFault.forged) { try key().open(sealed + [0], .enrollment, of: alice) }
  }
}

@Suite struct `The seal of a row` {
  private func host(
    _ name: String = "web1", _ byte: UInt8 = 9, enrolls: Bool = true, joined: Int64 = 1_700_000_000
  ) -> HostRow {
    HostRow(
      name: Array(name.utf8), key: [UInt8](repeating: byte, count: 32), enrolls: enrolls,
      joined: joined)
  }

  /// With Python's hmac, as docs/fleet-format.md has it.
  @Test func `is what another program computes`() throws {
    #expect(
      try host().seal(under: key()) == [4, 3, 2, 1]
        + hex("7b0e2daac5e31eace23bbf0a2da631be6ace61db28d05fb2952e2e28d4064438"))
  }

  @Test func `is another one for each value, table and key`() throws {
    let invite = InviteRow(digest: alice, host: bob, enrolls: false, until: 5)
    let fleet = FleetRow(needs: 2, writes: 2)
    var seals = [
      try host().seal(under: key()), try host("web2").seal(under: key()),
      try host("web1", 8).seal(under: key()), try host(enrolls: false).seal(under: key()),
      try host(joined: 1).seal(under: key()), try host().seal(under: key(8)),
      try host().seal(under: key(id: 9)), try invite.seal(under: key()),
      try InviteRow(digest: alice, host: bob, enrolls: true, until: 5).seal(under: key()),
      try InviteRow(digest: alice, host: bob, enrolls: false, until: 6).seal(under: key()),
      try fleet.seal(under: key()), try key().canary(), try key(8).canary(),
    ]
    for change: (inout FleetRow) -> Void in [
      { $0.needs = 3 }, { $0.writes = 3 }, { $0.distrust = 1 }, { $0.distrusted = 1 },
    ] {
      var other = fleet
      change(&other)
      seals.append(try other.seal(under: key()))
    }
    #expect(Set(seals).count == seals.count)
  }
}

@Suite struct `The document of a user` {
  private func enrolled() throws -> Enrollment {
    let codes = try backupCodes(["7KMF2X9QD4TW0HZA"])
    let made = try enrollment([try authenticator()], backupCodes: codes)
    return Enrollment(
      id: made.id, user: made.user, uid: nil, created: made.created,
      authenticators: made.authenticators, backupCodes: made.backupCodes)
  }

  @Test func `is read as it was written`() throws {
    let notes = [
      UserNote(), UserNote(level: .exempt(until: nil)), UserNote(level: .required(from: nil)),
      UserNote(level: .required(from: UnixTime(0))), UserNote(level: .exempt(until: UnixTime(0))),
    ]
    for note in notes {
      for (standing, ended) in [
        (FleetDocument.EnrollmentPlace.notEnrolled, []), (.removed(9), [8]),
        (.enrolled(try enrolled()), [7, 8]), (.enrolled(try enrolled()), Array(1...16)),
      ] as [(FleetDocument.EnrollmentPlace, [UInt64])] {
        let written = try #require(
          FleetDocument(standing, note: note, logins: 77, serial: 88, ended: ended).written())
        #expect(written[0] == (ended.isEmpty ? 1 : 2), "a former verifier reads the first form")
        let read = try #require(FleetDocument.read(written))
        try isReadBlocked(read)
        #expect(read.ended == ended)
        #expect(read.note == note)
        #expect(read.logins == 77)
        #expect(read.serial == 88)
        #expect(bytes(try #require(read.written())) == bytes(written))
      }
    }
  }

  /// The same document with a block.
  private func isReadBlocked(_ document: FleetDocument) throws {
    for (until, helper) in [(nil, "carol"), (UnixTime(0), ""), (UnixTime(1 << 40), "c")] {
      var blocked = document
      blocked.block = FleetBlock(
        since: UnixTime(5), until: until, helper: UserName(Array(helper.utf8)))
      let written = try #require(blocked.written())
      #expect(written[0] == 3)
      let read = try #require(FleetDocument.read(written))
      #expect(read.block == blocked.block && read.ended == document.ended)
      #expect(bytes(try #require(read.written())) == bytes(written))
      for (index, byte): (Int, UInt8) in [
        (24 + 8 * document.ended.count, 0), (24 + 8 * document.ended.count, 4),
        (24 + 8 * document.ended.count, 8), (24 + 8 * document.ended.count, 9),
        (32 + 8 * document.ended.count, 0x80), (41 + 8 * document.ended.count, 0xff), (23, 17),
      ] {
        var changed = bytes(written)
        changed[index] = byte
        #expect(FleetDocument.read(try secret(changed)) == nil, "byte \(index)")
      }
    }
  }

  @Test func `has what a pass has replaced, as long as the enrollment names it`() throws {
    let former = try enrolled()
    var state = LoginState(initialFor: former)
    state.backupCodes?.used = 1
    for (count, block) in [(1, nil), (8, FleetBlock(since: UnixTime(5), until: nil))] {
      var present = former
      present.suspended = (1...UInt64(count)).map { Suspension(id: $0, since: UnixTime(5)) }
      var document = FleetDocument(.enrolled(present), ended: [7], block: block)
      document.suspended = (1...UInt64(count)).map { SuspendedEnrollment($0, former, state) }
      let written = try #require(document.written())
      let read = try #require(FleetDocument.read(written))
      #expect(bytes(try #require(read.written())) == bytes(written))
      #expect(read.suspended.map(\.id) == (1...UInt64(count)).map { $0 })
      #expect(read.suspended[0].state == state && read.block == block)
      for cut in stride(from: written.count - 2, through: 0, by: -31) {
        #expect(FleetDocument.read(try secret(bytes(written).prefix(cut))) == nil)
      }
      present.suspended.removeFirst()
      document.place = .enrolled(present)
      let less = try #require(document.written())
      #expect(FleetDocument.read(less)?.suspended.count == count - 1)
      document.place = .removed(9)
      let none = try #require(document.written())
      #expect(FleetDocument.read(none)?.suspended.isEmpty == true)
    }
  }

  @Test func `has what helpers did, and nothing of it where they did nothing`() throws {
    let week = HelpCounts([(.pass, UnixTime(5)), (.pass, UnixTime(6)), (.unlock, UnixTime(0))])
    let block = FleetBlock(since: UnixTime(5), until: nil)
    for helped in [week, HelpCounts([(.unlock, UnixTime(1 << 40))])] {
      for (place, block) in [
        (.removed(9), nil), (.notEnrolled, block), (.enrolled(try enrolled()), block),
      ] as [(FleetDocument.EnrollmentPlace, FleetBlock?)] {
        var document = FleetDocument(place, ended: [7], block: block)
        document.helped = helped
        let written = try #require(document.written())
        let read = try #require(FleetDocument.read(written))
        #expect(written[0] == 3)
        #expect(bytes(try #require(read.written())) == bytes(written))
        #expect(read.helped == helped && read.block == block)
        let start = 33 + (block == nil ? 0 : 17)
        for (index, byte): (Int, UInt8) in [
          (start, 0), (start, 4), (start + 1, 0), (start + 1, 3), (start + 9, 0x80),
        ] {
          var changed = bytes(written)
          changed[index] = byte
          #expect(FleetDocument.read(try secret(changed)) == nil, "byte \(index)")
        }
        for count in 0..<start + 9 * helped.acts.count {
          #expect(FleetDocument.read(try secret(bytes(written).prefix(count))) == nil)
        }
        document.helped = HelpCounts()
        #expect(try #require(document.written())[0] == (block == nil ? 2 : 3))
      }
    }
  }

  @Test func `with a uid, of another form or cut off is none`() throws {
    let written = bytes(try #require(FleetDocument(.enrolled(try enrolled())).written()))
    let other = try enrollment([try authenticator()])
    let withUID = try #require(FleetDocument(.enrolled(other)).written())
    #expect(FleetDocument.read(withUID) == nil)
    // The last line feed carries nothing.
    for count in stride(from: written.count - 2, through: 0, by: -17) {
      #expect(FleetDocument.read(try secret(written.prefix(count))) == nil)
    }
    for (index, byte): (Int, UInt8) in [(0, 2), (1, 0), (1, 4), (1, 2), (2, 3), (3, 0)] {
      var changed = written
      changed[index] = byte
      #expect(FleetDocument.read(try secret(changed)) == nil, "byte \(index)")
    }
    #expect(FleetDocument.read(try secret(bytes(try removed()) + [0])) == nil)
    let long = bytes(
      try #require(FleetDocument(.removed(9), ended: [UInt64](repeating: 1, count: 17)).written()))
    let ended = bytes(try #require(FleetDocument(.removed(9), ended: [7, 8]).written()))
    let none = ended.prefix(23) + [0] + ended.dropFirst(40)
    for other in [long, Array(none)] + (0..<ended.count).map({ Array(ended.prefix($0)) }) {
      #expect(FleetDocument.read(try secret(other)) == nil)
    }
  }

  private func removed() throws -> Secret {
    try #require(FleetDocument(.removed(9)).written())
  }
}

private func hex(_ text: String) -> [UInt8] {
  let digits = Array(text)
  return stride(from: 0, to: digits.count - 1, by: 2).compactMap {
    UInt8(String(digits[$0...$0 + 1]), radix: 16)
  }
}
