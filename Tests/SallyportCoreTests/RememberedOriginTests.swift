import SallyportCore
import Testing

@Suite struct `A remembered origin` {
  private let here = Origin.address(NetworkAddress(high: 0, low: 0xffff_c000_0207))
  private let there = Origin.address(NetworkAddress(high: 0x2001_0db8, low: 0))

  private func state(_ granted: Int64, service: String = "sshd") throws -> LoginState {
    var state = LoginState(enrollmentID: 1)
    state.grant(here, service: try label(service), at: UnixTime(granted))
    return state
  }

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

  @Test func `holds for its own address and service alone`() throws {
    let (state, now) = (try state(1000), UnixTime(1001))
    let sshd = try label("sshd")
    #expect(state.isRemembered(here, service: sshd, for: 60, at: now))
    #expect(!state.isRemembered(there, service: sshd, for: 60, at: now))
    #expect(!state.isRemembered(here, service: try label("cockpit"), for: 60, at: now))
    #expect(!state.isRemembered(here, service: nil, for: 60, at: now))
    for origin in [Origin.unknown, .local(own: true), .local(own: false)] {
      #expect(!state.isRemembered(origin, service: sshd, for: 60, at: now))
    }
  }

  @Test func `is never this machine, a name, or without a service`() throws {
    var state = LoginState(enrollmentID: 1)
    for origin in [Origin.unknown, .local(own: true), .local(own: false)] {
      state.grant(origin, service: try label("sshd"), at: UnixTime(1000))
    }
    state.grant(here, service: nil, at: UnixTime(1000))
    // 127.0.0.1 and ::1: everybody behind a tunnel comes from there.
    for low in [0xffff_7f00_0001, 1] as [UInt64] {
      let loopback = Origin.address(NetworkAddress(high: 0, low: low))
      state.grant(loopback, service: try label("sshd"), at: UnixTime(1000))
    }
    #expect(state.remembered.isEmpty)
  }

  @Test func `is granted anew in front of the others, once`() throws {
    var state = try state(1000)
    state.grant(there, service: try label("sshd"), at: UnixTime(1001))
    state.grant(here, service: try label("cockpit"), at: UnixTime(1002))
    state.grant(here, service: try label("sshd"), at: UnixTime(1003))
    #expect(state.remembered.map(\.granted.seconds) == [1003, 1002, 1001])
  }

  @Test func `makes room for the eleventh by being the oldest`() throws {
    var state = LoginState(enrollmentID: 1)
    for number in 1...12 as ClosedRange<Int64> {
      let origin = Origin.address(NetworkAddress(high: UInt64(number), low: 0))
      state.grant(origin, service: try label("sshd"), at: UnixTime(number))
    }
    #expect(state.remembered.map(\.granted.seconds) == (3...12).reversed())
  }

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
