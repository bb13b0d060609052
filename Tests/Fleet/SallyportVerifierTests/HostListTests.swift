import FleetTransport
import OneTimePassword
import SallyportSupport
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

  @Test func `is noted once a minute for each host that asks`() throws {
    var noted = NotedHosts()
    let (web, mail) = (try host(1).pin, try host(2).pin)
    let second: UInt64 = 1_000_000_000
    let found = [
      noted.add([web], at: 100 * second), noted.add([web, mail], at: 102 * second),
      noted.add([web, mail], at: 159 * second), noted.add([web], at: 160 * second),
    ]
    #expect(found == [[web], [mail], [], [web]])
  }
}

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `The table of hosts` {
  /// The table is locked until all of them wait.
  @Test func `is read once for all that wait for it`() throws {
    let verifier = try Verifier("reads", in: try OwnDatabase())
    let hosts = Hosts(verifier.database)
    let pin = try #require(Pin([UInt8](repeating: 1, count: Pin.length)))
    let (begun, done) = (Locked(0), Locked(0))
    _ = try verifier.ask("BEGIN")
    _ = try verifier.ask("LOCK TABLE host IN ACCESS EXCLUSIVE MODE")
    for _ in 0..<6 {
      #expect(
        Threads.start {
          begun.withLock { $0 += 1 }
          _ = hosts.lookup(pin)
          done.withLock { $0 += 1 }
        } == 0)
    }
    #expect(soon { begun.withLock { $0 } == 6 && hosts.isBeingRead })
    _ = try verifier.ask("COMMIT")
    #expect(soon { done.withLock { $0 } == 6 })
    // A thread may have been so late that it was too old for it.
    #expect(hosts.readings <= 2)
  }
}
