import CService
import OneTimePassword
import SallyportSupport
import Testing

@testable import FleetTransport

/// Who goes, as a function of who is there.
@Suite struct `Where there is no room for all` {
  private let now: UInt64 = 1000

  /// A word for each stranger, in the order of arrival: the machine that he comes from, and how
  /// long he has been waited for; nothing: he waits for the verifier. The number of who goes.
  private func stranger(_ words: String) -> UInt64? {
    var limits = ConnectionLimits()
    limits.patience = 100
    let all = words.split(separator: " ").enumerated().map { index, word in
      Crowding.Stranger(
        candidate: Crowding.Candidate(
          id: UInt64(index), idleSince: UInt64(word.dropFirst()).map { now - $0 }),
        source: UInt64(word.utf8.first ?? 0))
    }
    return Crowding(limits: limits).stranger(among: all, now: now)
  }

  // decisive; shows: handshakes
  @Test(arguments: [
    // Of the machine that has most; of that one, who was waited for longest.
    ("a500 b400 b300 c900", 1), ("a500 b300 b400 c900", 2), ("b b300 b c900 a500", 1),
    // Nobody was for long: the newest of that machine, and of all where each has as many.
    ("a99 b99 b98 c0", 2), ("a b b c", 2), ("a900 b b c0", 2), ("a b c d", 3), ("a99 b50 c0", 2),
    // Each has as many: who was waited for longest.
    ("a100 b c0", 0), ("a150 b200 c0", 1), ("a a300 b b400", 3),
    // A flood has its own newest go, or its own silent ones, and never a host.
    ("f f f f f h0", 4), ("f f120 f f f h0", 1), ("f f f f f h h900", 4), ("h900 f f f f0", 4),
    ("a", 0),
  ])
  func `the stranger goes whose machine has most`(_ words: String, _ gone: UInt64) {
    #expect(stranger(words) == gone, "\(words)")
  }

  /// A word for each host: for each of its connections how long it was idle, from 1 to 9, or b,
  /// which is busy. Those that go, as they stand in the words, in this order.
  private func surplus(_ words: String, of connections: Int, _ share: Int, inCrowd: Int) -> String {
    var limits = ConnectionLimits()
    (limits.connections, limits.connectionsOfOne) = (connections, share)
    limits.connectionsInCrowd = inCrowd
    let letters = Array(words)
    let hosts = words.indices.split { words[$0] == " " }.map { host in
      host.map { index in
        Crowding.Candidate(
          id: UInt64(words.distance(from: words.startIndex, to: index)),
          idleSince: words[index].wholeNumberValue.map { now - UInt64($0) })
      }
    }
    let gone = Crowding(limits: limits).surplus(of: hosts)
    return String(gone.map { letters[Int($0)] })
  }

  // decisive; shows: connection-shares
  @Test(arguments: [
    // A host has more than its share: the longest idle.
    ("12345 1", 100, 4, 2, "5"), ("54321 678", 100, 3, 2, "54"), ("1234", 100, 4, 2, ""),
    ("b1b2b3", 100, 4, 2, "32"), ("bbbbb1", 100, 4, 2, "1"), ("bbbbbb", 100, 4, 2, ""),
    // More than half of all are taken: a share is smaller.
    ("1234 56 7", 14, 4, 2, ""), ("1234 56 7", 13, 4, 2, "43"), ("12b3 56 7", 13, 4, 2, "32"),
    // One in sixteen stays free, of all hosts alike; what is busy stays.
    ("12 34 56 7 8 9 1 23 4 5", 16, 4, 2, ""), ("12 34 56 7 8 9 12 34 5 67", 16, 4, 2, "9"),
    ("bb bb bb bb bb bb bb b9 b", 16, 4, 2, "9"), ("bb bb bb bb bb bb bb bb b", 16, 4, 2, ""),
    ("1 2 9 8", 3, 4, 2, "9"), ("1 2 9 8", 2, 4, 2, "98"), ("", 16, 4, 2, ""),
  ])
  func `the connections of hosts go that were idle longest`(
    _ words: String, _ all: Int, _ share: Int, _ inCrowd: Int, _ gone: String
  ) {
    #expect(surplus(words, of: all, share, inCrowd: inCrowd) == gone, "\(words)")
  }

  @Test func `there are no more connections than descriptors`() {
    let all = ConnectionLimits()
    #expect(ConnectionLimits(descriptors: 65_536).connections == all.connections)
    #expect(ConnectionLimits(descriptors: 4096).connections == 4096 - 256 - all.strangers)
    #expect(ConnectionLimits(descriptors: 100).connections == 1)
  }
}

@Suite(.serialized) struct `A verifier with many connections` {
  private func side(_ verifier: TestVerifier, _ identity: Identity? = nil) throws -> TLSSide {
    let identity = try identity ?? newIdentity()
    return try #require(TLSSide(identity, pins: [verifier.identity.pin]))
  }

  // decisive; shows: handshakes
  @Test func `greets a host, however many strangers another machine has there`() throws {
    var limits = ConnectionLimits()
    (limits.strangers, limits.untilGreeted, limits.patience) = (8, 600_000_000_000, 600_000_000_000)
    limits.untilBegun = .max
    let verifier = try TestVerifier(limits: limits)
    let port = verifier.server.address.port
    let flood = try (0..<40).map { _ in try Raw(port, from: 2) }
    for one in flood[8...] { #expect(one.isClosed()) }
    #expect(soon { verifier.server.connections == 8 })
    #expect(try Raw(port, from: 3).greet(side(verifier)) == 0x84)
    #expect(flood[7].isClosed())
    // Two have half of it each, and a third one a place.
    let other = try (0..<40).map { _ in try Raw(port, from: 4) }
    #expect(other[39].isClosed())
    #expect(try Raw(port, from: 5).greet(side(verifier)) == 0x84)
    withExtendedLifetime((flood, other)) {}
  }

  // decisive; shows: connection-shares
  @Test func `tells the hosts of which there are too many, and answers what was under way`() throws
  {
    var limits = ConnectionLimits()
    (limits.connections, limits.connectionsInCrowd, limits.round) = (16, 2, 20_000_000)
    let (go, asked) = (Locked(false), Locked(0))
    let verifier = try TestVerifier(limits: limits) { _, kind, body, _ in
      asked.withLock { $0 += 1 }
      if body.count > 0 { _ = soon { go.withLock { $0 } } }
      return VerifierAnswer(to: kind, [])
    }
    let greedy = try newIdentity()
    let lines = try (0..<8).map { _ in
      let line = try verifier.raw()
      #expect(try line.greet(side(verifier, greedy)) == 0x84)
      return line
    }
    // Below one half the host keeps them. One of them is busy.
    #expect(lines[0].write([2, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 9]))
    #expect(soon { asked.withLock { $0 } == 1 })
    #expect(lines.allSatisfy { $0.isSilent })
    let other = try verifier.raw()
    #expect(try other.greet(side(verifier)) == 0x84)
    // Above it those go that were idle longest.
    for line in lines[1..<7] {
      let told = line.frame()
      #expect(told?.kind == 0xec && told?.nonce == 0)
    }
    // It was on its way.
    #expect(lines[1].write([1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 1]))
    #expect(lines[1].frame()?.kind == 0x81)
    for line in lines[1..<7] { #expect(line.frame() == nil) }
    go.withLock { $0 = true }
    #expect(lines[0].frame()?.kind == 0x81)
    #expect(lines[7].isSilent && other.isSilent)
    #expect(soon { verifier.server.connections == 3 })
  }

  // decisive; shows: connection-shares
  @Test func `has room for new hosts where it is full of idle ones`() throws {
    var limits = ConnectionLimits()
    (limits.connections, limits.round, limits.onTheWay) = (16, 20_000_000, 20_000_000)
    let verifier = try TestVerifier(limits: limits)
    let hosts = try (0..<48).map { _ in
      let client = try verifier.client()
      #expect(soon { (try? client.ask(.ping, try secret(0), within: 2000)) != nil })
      return client
    }
    #expect(soon { verifier.server.connections < 16 })
    withExtendedLifetime(hosts) {}
  }

  // shows: connection-shares
  @Test func `greets one host no more often than there is room for one`() throws {
    var limits = ConnectionLimits()
    (limits.mostOfOne, limits.connectionsOfOne) = (4, 4)
    let verifier = try TestVerifier(limits: limits)
    let own = try side(verifier, try newIdentity())
    let lines = try (0..<4).map { _ in try verifier.raw() }
    for line in lines { #expect(try line.greet(own) == 0x84) }
    #expect(try verifier.raw().greet(own) == nil)
    #expect(try verifier.raw().greet(side(verifier)) == 0x84)
    #expect(lines.allSatisfy { $0.isSilent })
  }
}
