import FleetProtocol
import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@Suite struct `The fields of a state alone` {
  @Test func `are read as they were written, of the largest one too`() throws {
    let state = try largestState()
    #expect(LoginState.read(try #require(state.written())) == state)
  }

  @Test func `are not written with more origins than are read`() {
    let place = KnownOrigin(origin: NetworkAddress(high: 1, low: 0), lastSeen: UnixTime(0))
    let many = LoginState(enrollmentID: 1, origins: [KnownOrigin](repeating: place, count: 33))
    #expect(many.written() == nil)
  }
}
