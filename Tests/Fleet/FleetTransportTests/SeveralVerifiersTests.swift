import CService
import Glibc
import OneTimePassword
import SallyportSupport
import Testing

@testable import FleetTransport

@Suite(.serialized) struct `A host with two verifiers` {
  private let identity: Identity

  init() throws { identity = try newIdentity() }

  /// Says that its database is away, and counts how often it was asked.
  private func without(_ asked: Locked<Int>) throws -> TestVerifier {
    try TestVerifier(identity) { _, _, _, _ in
      asked.withLock { $0 += 1 }
      return .databaseAway
    }
  }

  private func client(_ verifiers: [VerifierAddress]) throws -> VerifierPool {
    VerifierPool(
      FleetFile(host: "web1", enrolls: false, verifiers: verifiers, pins: [identity.pin]),
      try newIdentity())
  }

  private static let repeated: [FrameKind] = [.question, .reserve, .ping, .status, .keys]

  @Test(arguments: FrameKind.allCases)
  func `is answered by the one whose database is there`(_ kind: FrameKind) throws {
    let away = Locked(0)
    let (first, second) = (try without(away), try TestVerifier(identity))
    // Which one is asked first is left to chance.
    for index: UInt8 in 0..<8 {
      let client = try client([first.server.address, second.server.address])
      let before = (away.withLock { $0 }, second.asked.withLock { $0.count })
      let answer = try client.ask(kind, try secret(3, index), within: 20_000)
      let after = (away.withLock { $0 }, second.asked.withLock { $0.count })
      guard Self.repeated.contains(kind) || answer != .databaseAway else {
        #expect(after == (before.0 + 1, before.1), "it is asked once")
        continue
      }
      #expect(answer.body == [index, index, index])
      #expect(after.1 == before.1 + 1)
      // For a while it comes last.
      _ = try client.ask(kind, try secret(3, index), within: 20_000)
      #expect(away.withLock { $0 } == after.0)
    }
  }

  // decisive
  // shows: empty-database
  @Test func `is answered by the one that knows it`() throws {
    let (strange, right) = (try TestVerifier(identity), try TestVerifier(identity))
    strange.known.withLock { $0 = [] }
    let addresses = [strange, right].map(\.server.address)
    for kind in FrameKind.allCases where kind != .join {
      // Which one is asked first is left to chance.
      for index: UInt8 in 0..<8 {
        let client = try client(addresses)
        #expect(try client.ask(kind, try secret(1, index), within: 20_000).body == [index])
        #expect(client.look())
      }
    }
    #expect(strange.asked.withLock { $0.isEmpty })
  }

  @Test func `is unknown where each of them says so, and away where one cannot be asked`() throws {
    let (first, second) = (try TestVerifier(identity), try TestVerifier(identity))
    let (away, gone) = (try without(Locked(0)), try Silent())
    gone.close()
    for verifier in [first, second] { verifier.known.withLock { $0 = [] } }
    func fault(_ verifiers: [VerifierAddress]) throws -> TransportFault? {
      let (client, body) = (try client(verifiers), try secret(1))
      do throws(TransportFault) {
        return try client.ask(.question, body, within: 20_000) == .databaseAway ? .away : nil
      } catch {
        return error
      }
    }
    for _ in 0..<4 {
      #expect(try fault([first.server.address, second.server.address]) == .stranger)
      #expect(try fault([first.server.address, gone.address]) == .away)
      #expect(try fault([first.server.address, away.server.address]) == .away)
    }
    #expect(try !client([first.server.address, second.server.address]).look())
  }

  // decisive
  @Test func `is told that all databases are away, after each was asked once`() throws {
    let asked = Locked(0)
    let (first, second) = (try without(asked), try without(asked))
    let client = try client([first.server.address, second.server.address])
    for round in 1...4 {
      #expect(try client.ask(.question, try secret(1), within: 20_000) == .databaseAway)
      #expect(asked.withLock { $0 } == 2 * round)
    }
    #expect(!client.look())
  }

  @Test func `is told so where nobody else is there`() throws {
    let asked = Locked(0)
    let (verifier, gone) = (try without(asked), try Silent())
    gone.close()
    let client = try client([gone.address, verifier.server.address])
    for _ in 0..<2 {
      #expect(try client.ask(.question, try secret(1), within: 20_000) == .databaseAway)
    }
    #expect(asked.withLock { $0 } == 2)
  }

  // decisive
  @Test func `never asks the other one after an unknown outcome`() throws {
    let asked = Locked(0)
    let silent: TestVerifier.Answer = { _, kind, _, _ in
      asked.withLock { $0 += 1 }
      _ = soon { asked.withLock { $0 } > 9 }
      return VerifierAnswer(to: kind, [])
    }
    let first = try TestVerifier(identity, handler: silent)
    let second = try TestVerifier(identity, handler: silent)
    let client = try client([first.server.address, second.server.address])
    #expect(throws: TransportFault.unknown) {
      try client.ask(.question, try secret(1), within: 300)
    }
    #expect(asked.withLock { $0 } == 1)
    asked.withLock { $0 = 10 }
  }

  @Test func `does not ask the first again after the second was silent`() throws {
    let (away, silent) = (Locked(0), Locked(0))
    let first = try without(away)
    let second = try TestVerifier(identity) { _, kind, _, _ in
      silent.withLock { $0 += 1 }
      _ = soon { silent.withLock { $0 } > 9 }
      return VerifierAnswer(to: kind, [])
    }
    let client = try client([first.server.address, second.server.address])
    #expect(throws: TransportFault.unknown) {
      try client.ask(.question, try secret(1), within: 1000)
    }
    #expect(away.withLock { $0 } <= 1 && silent.withLock { $0 } == 1)
    silent.withLock { $0 = 10 }
  }

  @Test func `says how long it waits when it asks, not when it began to connect`() throws {
    let slow = try TestVerifier(identity) { _, _, _, _ in
      _ = poll(nil, 0, 200)
      return .databaseAway
    }
    let second = try TestVerifier(identity)
    var said: [UInt64] = []
    // Which one is asked first is left to chance.
    for _ in 0..<64 where said.count < 2 {
      said = []
      let client = try client([slow.server.address, second.server.address])
      _ = try client.ask(.question, within: 20_000) { left in
        said.append(left)
        return try? secret(1)
      }
    }
    try #require(said.count == 2)
    #expect(said[0] <= 20_000 && said[1] + 150 < said[0])
    #expect(throws: TransportFault.away) {
      try client([second.server.address]).ask(.question, within: 20_000) { _ in nil }
    }
  }

  @Test func `is there as long as one of them can verify codes`() throws {
    let asked = Locked(0)
    let (first, second) = (try without(asked), try TestVerifier(identity))
    for _ in 0..<4 {
      #expect(try client([first.server.address, second.server.address]).look())
    }
  }

  @Test func `is refused nothing while one after the other is started again`() throws {
    let identity = identity
    func start(_ port: UInt16) throws -> FleetServer {
      var limits = ConnectionLimits()
      limits.onTheWay = 300_000_000
      return try FleetServer(
        on: VerifierAddress(bytes: [127, 0, 0, 1], port: port), identity: identity, limits: limits,
        standing: { _ in .member },
        handler: { _, kind, _, _ in FleetServer.Request { VerifierAnswer(to: kind, []) } })
    }
    var verifiers = [try start(0), try start(0)]
    defer { for verifier in verifiers { verifier.stop(within: 0) } }
    let client = try client(verifiers.map(\.address))
    let (faults, done, isOver) = (Locked<[TransportFault]>([]), Locked(0), Locked(false))
    let threads = 4
    for _ in 0..<threads {
      let started = Threads.start {
        // Some have a connection that is never idle.
        while !isOver.withLock({ $0 }), let body = Secret(count: 1) {
          do throws(TransportFault) {
            _ = try client.ask(.question, body, within: 20_000)
          } catch {
            faults.withLock { $0.append(error) }
          }
        }
        done.withLock { $0 += 1 }
      }
      #expect(started == 0)
    }
    for index in [0, 1] {
      #expect(verifiers[index].stop())
      verifiers[index] = try start(verifiers[index].address.port)
    }
    isOver.withLock { $0 = true }
    #expect(soon { done.withLock { $0 } == threads })
    #expect(faults.withLock { $0 } == [])
  }

  @Test func `asks one that was silent where the other is gone`() throws {
    let silent = Locked<Int?>(nil)
    let verifiers = try (0..<2).map { number in
      try TestVerifier(identity) { _, kind, _, _ in
        let isFirst = silent.withLock { silent in
          defer { silent = silent ?? number }
          return silent == nil
        }
        if isFirst { _ = poll(nil, 0, 1500) }
        return VerifierAnswer(to: kind, [])
      }
    }
    let client = try client(verifiers.map(\.server.address))
    #expect(throws: TransportFault.unknown) {
      try client.ask(.question, try secret(1), within: 700)
    }
    let gone = 1 - (try #require(silent.withLock { $0 }))
    #expect(verifiers[gone].server.stop())
    #expect(try client.ask(.question, try secret(1), within: 20_000).answers(.question))
  }

  /// Of all who ask, one has no time left: the verifiers are there for the others.
  @Test func `puts nobody aside because somebody let his time pass`() throws {
    let slow = try TestVerifier(identity) { _, kind, _, _ in
      _ = poll(nil, 0, 50)
      return VerifierAnswer(to: kind, [])
    }
    let client = try client([slow.server.address])
    // Without a connection, and over one that is kept.
    for _ in 0..<2 {
      for milliseconds: UInt64 in [1, 3, 10] {
        #expect(throws: TransportFault.self) {
          try client.ask(.question, try secret(1), within: milliseconds)
        }
      }
      #expect(try client.ask(.question, try secret(1), within: 20_000).answers(.question))
    }
  }

  @Test func `asks the other one first after one has answered something else`() throws {
    let odd = Locked(0)
    let first = try TestVerifier(identity) { _, _, _, _ in
      odd.withLock { $0 += 1 }
      return VerifierAnswer(kind: 0x11, body: [])
    }
    let second = try TestVerifier(identity)
    // Which one is asked first is left to chance.
    for _ in 0..<32 {
      let client = try client([first.server.address, second.server.address])
      let before = odd.withLock { $0 }
      var refused = 0
      for _ in 0..<4 {
        do {
          _ = try client.ask(.question, try secret(1), within: 20_000)
        } catch {
          refused += 1
        }
      }
      #expect(refused == odd.withLock { $0 } - before && refused <= 1)
    }
    #expect(odd.withLock { $0 } > 0)
  }
}
