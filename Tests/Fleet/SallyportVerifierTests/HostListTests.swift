import FleetTransport
import OneTimePassword
import Testing

@testable import SallyportVerifier

@Suite struct `The list of hosts` {
  private func line(_ number: UInt8, _ seal: UInt8) throws -> HostList.Line {
    let pin = try #require(Pin([UInt8](repeating: number, count: Pin.length)))
    return HostList.Line([seal], HostIdentity(pin, host: [number]))
  }

  @Test func `keeps a host that joined while an older answer was on its way`() throws {
    var list = HostList()
    let (web, mail) = (try line(1, 1), try line(2, 2))
    #expect(list.take([web, mail], asOf: 20) == [])
    #expect(list.take([web], asOf: 10) == nil)
    #expect(list.take([web, mail], asOf: 30) == [])
    #expect(Set(list.hosts.keys) == [web.asker.pin, mail.asker.pin])
  }

  @Test func `takes no row that was put back`() throws {
    var list = HostList()
    let (web, mail) = (try line(1, 1), try line(2, 2))
    #expect(list.take([web, mail], asOf: 10) == [])
    #expect(list.take([web], asOf: 20) == [])
    #expect(list.take([web, mail], asOf: 30) == [[2]])
    #expect(Array(list.hosts.keys) == [web.asker.pin])
    // One that joined again has a row of its own.
    #expect(list.take([web, try line(2, 3)], asOf: 40) == [])
    #expect(list.hosts.count == 2)
  }
}
