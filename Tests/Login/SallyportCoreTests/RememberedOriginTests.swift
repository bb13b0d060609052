import SallyportCore
import Testing

@Suite struct `A remembered origin` {
  private let here = NumericAddress(high: 0, low: 0xffff_c000_0207)
  private let there = NumericAddress(high: 0x2001_0db8 << 32, low: 0)

  private func state(_ granted: Int64, service: String = "sshd") throws -> LoginState {
    var state = LoginState(enrollmentID: 1)
    state.grant(here, service: try label(service), at: UnixTime(granted))
    return state
  }

  // shows: remembered-place
  @Test(arguments: [
    (Int64(1000), UInt64(60), Int64(1000), true), (1000, 60, 1059, true), (1000, 60, 1060, false),
    (1000, 60, 999, false), (1000, 0, 1000, false), (1000, .max, .max, true),
    (.max, 60, 1000, false), (.min, .max, .max, true), (.max, 1, .max, true),
  ]) func `holds from its granting for as long as the policy says, and not before`(
    _ granted: Int64, _ seconds: UInt64, _ now: Int64, _ holds: Bool
  ) throws {
    let found = try state(granted).isRemembered(
      here, service: label("sshd"), for: seconds, at: UnixTime(now))
    #expect(found == holds)
  }

  // shows: remembered-place
  @Test func `holds for its own address and service alone`() throws {
    let (state, now) = (try state(1000), UnixTime(1001))
    let sshd = try label("sshd")
    #expect(state.isRemembered(here, service: sshd, for: 60, at: now))
    #expect(!state.isRemembered(there, service: sshd, for: 60, at: now))
    #expect(!state.isRemembered(here, service: try label("cockpit"), for: 60, at: now))
    #expect(!state.isRemembered(here, service: nil, for: 60, at: now))
  }

  /// In an IPv6 network everybody has the same /64.
  // shows: remembered-place
  @Test(arguments: [UInt64(1), 1 << 63]) func `of IPv6 is one address and no network`(
    _ bit: UInt64
  ) throws {
    var state = LoginState(enrollmentID: 1)
    state.grant(there, service: try label("sshd"), at: UnixTime(1000))
    let neighbour = NumericAddress(high: 0x2001_0db8 << 32, low: bit)
    let sshd = try label("sshd")
    #expect(!state.isRemembered(neighbour, service: sshd, for: 60, at: UnixTime(1001)))
    state.grant(neighbour, service: sshd, at: UnixTime(1001))
    #expect(state.remembered.map(\.origin) == [neighbour, there])
  }

  /// This machine, and addresses that name another machine on each link.
  private static let nowhere: [[UInt8]] = [
    [127, 0, 0, 1], [127, 8, 8, 8], [169, 254, 0, 1], [169, 254, 255, 255],
    [UInt8](repeating: 0, count: 15) + [1], [UInt8](repeating: 0, count: 16),
    [0xfe, 0x80] + [UInt8](repeating: 1, count: 14),
    [0xfe, 0xbf] + [UInt8](repeating: 1, count: 14),
  ]

  // decisive
  // shows: remembered-place
  @Test(arguments: nowhere) func `is never this machine or on a link alone`(_ bytes: [UInt8]) throws
  {
    let address = try #require(NumericAddress(bytes))
    var state = LoginState(enrollmentID: 1)
    state.grant(address, service: try label("sshd"), at: UnixTime(1000))
    #expect(state.remembered.isEmpty)
    // Nor where it stands in a file.
    state.remembered = [
      RememberedOrigin(origin: address, service: try label("sshd"), granted: UnixTime(1000))
    ]
    #expect(!state.isRemembered(address, service: try label("sshd"), for: 60, at: UnixTime(1000)))
  }

  @Test(
    arguments: [
      [126, 255, 255, 255], [128, 0, 0, 1], [169, 253, 255, 255], [169, 255, 0, 0],
      [254, 128, 0, 1],
      [0xfe, 0x7f] + [UInt8](repeating: 1, count: 14),
      [0xfe, 0xc0] + [UInt8](repeating: 1, count: 14),
      [0, 0, 0, 0, 0, 0, 0, 1] + [UInt8](repeating: 0, count: 8),
    ] as [[UInt8]]) func `may be any other address`(_ bytes: [UInt8]) throws
  {
    var state = LoginState(enrollmentID: 1)
    let address = try #require(NumericAddress(bytes))
    state.grant(address, service: try label("sshd"), at: UnixTime(1000))
    #expect(state.isRemembered(address, service: try label("sshd"), for: 60, at: UnixTime(1000)))
  }

  @Test func `is nothing without a service`() throws {
    var state = LoginState(enrollmentID: 1)
    state.grant(here, service: nil, at: UnixTime(1000))
    #expect(state.remembered.isEmpty)
  }

  // decisive
  @Test func `is granted again in front of the others, once`() throws {
    var state = try state(1000)
    state.grant(there, service: try label("sshd"), at: UnixTime(1001))
    state.grant(here, service: try label("cockpit"), at: UnixTime(1002))
    state.grant(here, service: try label("sshd"), at: UnixTime(1003))
    #expect(state.remembered.map(\.granted.seconds) == [1003, 1002, 1001])
  }

  @Test func `makes room for the eleventh by being the oldest`() throws {
    var state = LoginState(enrollmentID: 1)
    for number in 1...12 as ClosedRange<Int64> {
      let origin = NumericAddress(high: UInt64(number), low: 0)
      state.grant(origin, service: try label("sshd"), at: UnixTime(number))
    }
    #expect(state.remembered.map(\.granted.seconds) == (3...12).reversed())
  }

  // shows: remembered-place
  @Test func `of a time to come is forgotten`() throws {
    var state = try state(1000)
    state.grant(there, service: try label("sshd"), at: UnixTime(1001))
    state.distrustFuture(UnixTime(1000))
    #expect(state.remembered.map(\.granted.seconds) == [1000])
  }

  @Test func `is forgotten when asked`() throws {
    var state = try state(1000)
    state.forgetRemembered()
    #expect(state == LoginState(enrollmentID: 1))
  }
}
