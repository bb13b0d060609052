import FleetTransport
import OneTimePassword
import Testing

@testable import SallyportVerifier

@Suite struct `The list of hosts` {
  private func host(_ number: UInt8) throws -> HostIdentity {
    let pin = try #require(Pin([UInt8](repeating: number, count: Pin.length)))
    return HostIdentity(pin, host: [number])
  }

  @Test func `keeps a host that joined while an older answer was on its way`() throws {
    var list = HostList()
    let (web, mail) = (try host(1), try host(2))
    let taken = [
      list.take([web, mail], asOf: 20), list.take([web], asOf: 10),
      list.take([web, mail], asOf: 30),
    ]
    #expect(taken == [true, false, true])
    #expect(Set(list.hosts.keys) == [web.pin, mail.pin])
  }
}
