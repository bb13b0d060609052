import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@Suite struct `A state record` {
  static let slot = StateRecord.slotSize

  /// The whole file of Tests/Vectors/state.txt.
  private func example() throws -> [UInt8] {
    var file = [UInt8](repeating: 0, count: StateRecord.fileSize)
    for line in try vectorLines("state.txt") {
      let words = line.split(separator: " ")
      let offset = try #require(Int(words[0], radix: 16))
      for (index, word) in words.dropFirst().enumerated() {
        file[offset + index] = try #require(UInt8(word, radix: 16))
      }
    }
    return file
  }

  private func states(_ seed: UInt64) -> (LoginState, LoginState, LoginState) {
    var random = Seeded(seed)
    return (random.loginState(), random.loginState(), random.loginState())
  }

  /// A file whose slots hold `first` under sequence number 2 and `second` under 3.
  private func file(_ first: LoginState, _ second: LoginState) throws -> [UInt8] {
    let fresh = try StateRecord.fresh(first)
    return try fresh[..<Self.slot] + StateRecord.next(second, after: StateRecord.read(fresh))
  }

  private func problem(_ file: [UInt8]) -> StateRecord.Problem? {
    do throws(StateRecord.Problem) {
      _ = try StateRecord.read(file)
      return nil
    } catch {
      return error
    }
  }

  @Test func `is read as the documented example says`() throws {
    let current = try StateRecord.read(example())
    let address = try #require(NetworkAddress([192, 0, 2, 7]))
    let (time, sudo) = (UnixTime(1_772_550_000), UnixTime(1_772_540_000))
    #expect(current.sequence == 4)
    #expect(current.nextOffset == Self.slot)
    #expect(
      try current.state
        == LoginState(
          enrollmentID: 0x9f3c_5a7e_1b2d_4f60,
          authenticators: [
            AuthenticatorState(
              id: 0x0123_4567_89ab_cdef, lastAccepted: 59_084_999, drift: -1,
              lastUse: Use(time: time, origin: .address(address), service: label("sshd"))),
            AuthenticatorState(id: 0xfedc_ba98_7654_3210, lastAccepted: nil),
          ],
          backupCodes: BackupCodeState(
            setID: 0x5ca1_ab1e_0ddb_a115, used: 1,
            lastUse: Use(time: sudo, origin: .local(own: true), service: label("sudo"))),
          known: Bucket(spent: .none, since: UnixTime(1_772_549_990)),
          other: Bucket(spent: GuessProbability(units: 22_000_000), since: UnixTime(1_772_541_000)),
          refunds: Refunds(last: time),
          origins: [KnownOrigin(origin: address, lastSeen: time)],
          remembered: [
            RememberedOrigin(
              origin: try #require(NumericAddress([192, 0, 2, 7])), service: label("sshd"),
              granted: time)
          ]))
  }

  @Test func `is written as the documented example is`() throws {
    var file = try example()
    let state = try StateRecord.read(file).state
    // With its first slot broken, the second counts: the first was written after it.
    file[0] ^= 1
    let older = try StateRecord.read(file)
    #expect(older.sequence == 3 && older.nextOffset == 0 && older.state.remembered.isEmpty)
    #expect(
      older.state.slip
        == Slip(
          authenticator: 0x0123_4567_89ab_cdef, position: 59_084_999,
          time: UnixTime(1_772_549_990), amount: GuessProbability(units: 11_000_000)))
    #expect(try StateRecord.next(state, after: older) == Array(example()[..<Self.slot]))
  }

  @Test func `is read as it was written, whatever it holds`() throws {
    var random = Seeded(20)
    for _ in 0..<500 {
      let (one, two) = (random.loginState(), random.loginState())
      let fresh = try StateRecord.fresh(one)
      #expect(fresh.count == StateRecord.fileSize)
      let current = try StateRecord.read(fresh)
      #expect(current.state == one)
      let slot = try StateRecord.next(two, after: current)
      #expect(slot.count == Self.slot)
      var file = fresh
      file.replaceSubrange(current.nextOffset..<current.nextOffset + Self.slot, with: slot)
      #expect(try StateRecord.read(file).state == two)
      #expect(try StateRecord.read(file).sequence == current.sequence + 1)
    }
  }

  @Test func `has no hole: each page of a fresh file begins and ends with content`() throws {
    let fresh = try StateRecord.fresh(LoginState(enrollmentID: 1))
    for page in [fresh[..<Self.slot], fresh[Self.slot...]] {
      #expect(page.prefix(8).elementsEqual(Array("SPSTATE1".utf8)))
      #expect(page.suffix(32).contains { $0 != 0 })
    }
  }

  @Test func `with the greater sequence number counts, and the next goes over the other`() throws {
    let (one, two, three) = states(21)
    var file = try file(one, two)
    var current = try StateRecord.read(file)
    #expect(current.state == two && current.sequence == 3 && current.nextOffset == 0)
    file = try StateRecord.next(three, after: current) + file[Self.slot...]
    current = try StateRecord.read(file)
    #expect(current.state == three && current.sequence == 4 && current.nextOffset == Self.slot)
  }

  @Test func `in the first slot counts where both have the same sequence number`() throws {
    let (one, two, _) = states(22)
    let file = try StateRecord.fresh(one)[..<Self.slot] + StateRecord.fresh(two)[..<Self.slot]
    let current = try StateRecord.read(Array(file))
    #expect(current.state == one && current.nextOffset == Self.slot)
  }

  @Test func `in one slot counts where the other is broken`() throws {
    let (one, two, _) = states(23)
    let zeros = [UInt8](repeating: 0, count: Self.slot)
    let whole = try file(one, two)
    let first = try StateRecord.read(whole[..<Self.slot] + zeros)
    #expect(first.state == one && first.sequence == 2 && first.nextOffset == Self.slot)
    let second = try StateRecord.read(zeros + whole[Self.slot...])
    #expect(second.state == two && second.sequence == 3 && second.nextOffset == 0)
    #expect(problem(zeros + zeros) == .bothSlotsBroken)
  }

  /// What lies between the state and the checksum decides nothing. Damage there loses no more than
  /// what the owner is told; falling back to the older slot would make the last code good again.
  @Test func `with any one byte changed does not count, unless it is one that is not read`() throws
  {
    let (one, two, _) = states(24)
    let whole = try file(one, two)
    let length = Int(whole[Self.slot + 16]) | Int(whole[Self.slot + 17]) << 8
    for place in 0..<Self.slot {
      for change: UInt8 in [1, 0x80, 0xff] {
        var damaged = whole
        damaged[Self.slot + place] ^= change
        let current = try StateRecord.read(damaged)
        let isRead = place < length || place >= Self.slot - 32
        var state = current.state
        state.notices = OwnerNotices()
        #expect(state == (isRead ? one : two), "byte \(place)")
        #expect(current.nextOffset == (isRead ? Self.slot : 0))
      }
    }
  }

  /// After each save the other slot holds the record before: anything else may have been a later
  /// one.
  // shows: lost-record
  @Test func `tells that a later one may be lost, from its first byte to its last`() throws {
    let (one, two, three) = states(28)
    #expect(try !StateRecord.read(StateRecord.fresh(one)).mayLackTheLatest)
    let before = try file(one, two)
    let current = try StateRecord.read(before)
    #expect(!current.mayLackTheLatest)
    let after = try StateRecord.next(three, after: current) + before[Self.slot...]
    #expect(try !StateRecord.read(after).mayLackTheLatest)
    let length = Int(after[16]) | Int(after[17]) << 8
    for place in Array(0..<length) + Array(Self.slot - 32..<Self.slot) {
      var damaged = after
      damaged[place] ^= 0xff
      let left = try StateRecord.read(damaged)
      #expect(left.state == two && left.mayLackTheLatest, "byte \(place)")
    }
    for sector in 0..<8 where sector * 512 < length || sector == 7 {
      for garbage: UInt8 in [0, 0xff, 0x5a] {
        var damaged = after
        let range = sector * 512..<(sector + 1) * 512
        damaged.replaceSubrange(range, with: [UInt8](repeating: garbage, count: 512))
        #expect(try StateRecord.read(damaged).mayLackTheLatest, "sector \(sector)")
      }
    }
  }

  /// A power cut in the middle of a save: the state before it or the one after it, nothing else.
  // shows: one-use, power-cut
  @Test func `torn at any byte while it is written leaves the last one`() throws {
    let (one, two, three) = states(25)
    let before = try file(one, two)
    let next = try StateRecord.next(three, after: StateRecord.read(before))
    var whole = 0
    for length in 0...Self.slot {
      var torn = before
      torn.replaceSubrange(0..<length, with: next[..<length])
      let state = try StateRecord.read(torn).state
      #expect(state == two || state == three)
      whole += state == three ? 1 : 0
      var tail = before
      tail.replaceSubrange(length..<Self.slot, with: next[length...])
      let other = try StateRecord.read(tail).state
      #expect(other == two || other == three)
    }
    #expect((1...2).contains(whole))
  }

  /// Sectors of 512 bytes reach the disk in any order.
  // shows: power-cut
  @Test func `with any sectors of it missing leaves the last one`() throws {
    let (one, two, three) = states(26)
    let before = try file(one, two)
    let next = try StateRecord.next(three, after: StateRecord.read(before))
    let length = Int(next[16]) | Int(next[17]) << 8
    let read = Array(0..<length) + Array(Self.slot - 32..<Self.slot)
    for written in 0..<256 {
      var torn = before
      for sector in 0..<8 where written >> sector & 1 == 1 {
        let range = sector * 512..<(sector + 1) * 512
        torn.replaceSubrange(range, with: next[range])
      }
      let state = try StateRecord.read(torn).state
      #expect(state == (read.allSatisfy { torn[$0] == next[$0] } ? three : two))
    }
  }

  @Test(arguments: [0, 1, 4095, 4096, 8191, 8193, 12288, 1 << 20])
  func `file of another size is refused`(size: Int) throws {
    let whole = try file(states(27).0, states(27).1)
    let text = Array(
      (whole + [UInt8](repeating: 0, count: max(size - whole.count, 0))).prefix(size))
    #expect(problem(text) == .size)
  }

  @Test func `file of random bytes is refused`() {
    var random = Seeded(28)
    for round in 0..<200 {
      var file = random.bytes(StateRecord.fileSize)
      if round > 100 { file.replaceSubrange(0..<8, with: Array("SPSTATE1".utf8)) }
      if round > 150 { file.replaceSubrange(16..<20, with: [random.byte(), 1, 0, 0]) }
      #expect(problem(file) == .bothSlotsBroken)
    }
  }

  /// Behind a right checksum too: a process that writes there is root, but must not crash sshd.
  @Test func `of any content with a right checksum is one state or none`() throws {
    var random = Seeded(29)
    var read = 0
    for _ in 0..<5000 {
      let state = random.loginState()
      var record = try Array(StateRecord.fresh(state)[..<Self.slot])
      let length = Int(record[16]) | Int(record[17]) << 8
      var body = Array(record[20..<length])
      for _ in 0..<random.number(1...3) { body[random.number(0...body.count - 1)] = random.byte() }
      if random.flip() { body.removeLast(random.number(0...body.count)) }
      if random.flip() { body += random.bytes(random.number(0...20)) }
      record = try Self.record(body, sequence: random.next())
      let zeros = [UInt8](repeating: 0, count: Self.slot)
      guard let current = try? StateRecord.read(record + zeros) else { continue }
      read += 1
      #expect(try StateRecord.read(StateRecord.fresh(current.state)).state == current.state)
      #expect(current.state.authenticators.count <= 8 && current.state.origins.count <= 32)
      #expect(current.state.remembered.count <= 10)
    }
    #expect((500..<5000).contains(read), "\(read)")
  }

  @Test(arguments: [UInt32(0), 8, 19, 4065, 4096, 0x7fff_ffff, 0xffff_ffff])
  func `with a length that no record has does not count`(length: UInt32) throws {
    var file = try file(states(30).0, states(30).1)
    for index in 0..<4 {
      file[Self.slot + 16 + index] = UInt8(truncatingIfNeeded: length >> (8 * index))
    }
    #expect(try StateRecord.read(file).state == states(30).0)
  }

  @Test func `with a state that does not fill its length does not count`() throws {
    let fresh = try StateRecord.fresh(LoginState(enrollmentID: 1))
    let body = Array(fresh[20..<Int(fresh[16])])
    let zeros = [UInt8](repeating: 0, count: Self.slot)
    #expect(problem(try Self.record(body, sequence: 9) + zeros) == nil)
    for other in [body + [0], body + [1], body.dropLast() + [1], Array(body.dropLast(2)), []] {
      #expect(problem(try Self.record(other, sequence: 9) + zeros) == .bothSlotsBroken)
    }
  }

  /// Somebody who measures a login must not learn that a code was nearly right.
  // shows: close-guess
  @Test func `has the same length with a slip and without`() throws {
    var random = Seeded(31)
    for _ in 0..<100 {
      var state = random.loginState()
      state.slip = nil
      let without = try StateRecord.fresh(state)
      state.slip = Slip(
        authenticator: random.id(), position: random.number64(), time: random.anyTime(),
        amount: GuessProbability(units: random.number64()))
      state.refunds = Refunds(last: random.anyTime(), second: random.anyTime())
      let with = try StateRecord.fresh(state)
      #expect(with[16..<20] == without[16..<20])
    }
  }

  @Test func `of a remembered origin without a service does not count`() throws {
    let fresh = try StateRecord.fresh(LoginState(enrollmentID: 1))
    let body = Array(fresh[20..<Int(fresh[16]) - 1])
    let zeros = [UInt8](repeating: 0, count: Self.slot)
    let address = [UInt8](repeating: 7, count: 8) + [UInt8](repeating: 0, count: 8)
    let time = [UInt8](repeating: 1, count: 8)
    let one = try Self.record(body + [1] + address + [1, 0x78] + time, sequence: 9)
    #expect(try StateRecord.read(one + zeros).state.remembered.count == 1)
    let none = try Self.record(body + [1] + address + [0] + time, sequence: 9)
    #expect(problem(none + zeros) == .bothSlotsBroken)
  }

  @Test func `of more authenticators or origins than there may be is neither read nor written`()
    throws
  {
    let eight = (1...8).map { AuthenticatorState(id: $0, lastAccepted: nil) }
    let fresh = try StateRecord.fresh(LoginState(enrollmentID: 1, authenticators: eight))
    var body = Array(fresh[20..<Int(fresh[16])])
    let zeros = [UInt8](repeating: 0, count: Self.slot)
    #expect(problem(try Self.record(body, sequence: 9) + zeros) == nil)
    // Once more the 14 bytes of an authenticator that was never used, and their number.
    body.insert(contentsOf: body[9..<23], at: 9)
    body[8] = 9
    #expect(problem(try Self.record(body, sequence: 9) + zeros) == .bothSlotsBroken)
    let nine = LoginState(enrollmentID: 1, authenticators: eight + eight[..<1])
    #expect(throws: StateRecord.Problem.size) { try StateRecord.fresh(nine) }
    let place = KnownOrigin(origin: NetworkAddress(high: 1, low: 0), lastSeen: UnixTime(0))
    let many = LoginState(enrollmentID: 1, origins: [KnownOrigin](repeating: place, count: 33))
    #expect(throws: StateRecord.Problem.size) { try StateRecord.fresh(many) }
    let pair = RememberedOrigin(
      origin: NumericAddress(high: 1, low: 0), service: try label("sshd"), granted: UnixTime(0))
    let pairs = LoginState(
      enrollmentID: 1, remembered: [RememberedOrigin](repeating: pair, count: 11))
    #expect(throws: StateRecord.Problem.size) { try StateRecord.fresh(pairs) }
  }

  @Test func `at the last sequence number has no next`() throws {
    let state = LoginState(enrollmentID: 1)
    let body = try Array(StateRecord.fresh(state)[20..<Self.slot])
    let length = try Int(StateRecord.fresh(state)[16])
    let record = try Self.record(Array(body.prefix(length - 20)), sequence: .max)
    let current = try StateRecord.read(record + StateRecord.fresh(state)[Self.slot...])
    #expect(current.sequence == .max)
    #expect(throws: StateRecord.Problem.exhausted) { try StateRecord.next(state, after: current) }
  }

  @Test func `of the largest state fits`() throws {
    let state = try largestState()
    #expect(try StateRecord.read(StateRecord.fresh(state)).state == state)
  }

  /// A slot made here, by the document: magic, sequence number, length, body, zeros, checksum.
  static func record(_ body: [UInt8], sequence: UInt64) throws -> [UInt8] {
    let length = UInt32(20 + body.count)
    let covered =
      Array("SPSTATE1".utf8) + (0..<8).map { UInt8(truncatingIfNeeded: sequence >> (8 * $0)) }
      + (0..<4).map { UInt8(truncatingIfNeeded: length >> (8 * $0)) } + body
    let zeros = [UInt8](repeating: 0, count: slot - 32 - covered.count)
    return covered + zeros + (try SHA256.digest(covered))
  }
}
