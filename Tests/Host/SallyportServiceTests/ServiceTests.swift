import CService
import CSystem
import Foundation
import OneTimePassword
import SallyportSupport
import TestSupport
import Testing

@testable import SallyportService
@testable import SallyportSystem

@Suite(.enabled(if: isRoot, "the service is root's")) struct `The service` {
  private let ping = Array("ping".utf8)

  // decisive
  @Test func `each packet is answered once, and the connection closed`() throws {
    let service = try TestService()
    for path in [service.root, service.everybody] {
      let client = try RawClient(path)
      client.send(ping)
      #expect(client.answer() == ping)
      #expect(client.answer() == nil)
      let request = try #require(Secret(ping))
      #expect(try ServiceSocket(to: path, timeLeft: 20_000).ask(request) == ping)
    }
  }

  /// In su the effective uid is 0 at connect(), for any user who started it, and for ever.
  // shows: peer
  @Test(arguments: [true, false])
  func `the real user is who sent the packet, not who connected`(_ isSetUID: Bool) throws {
    let seen = Locked<Peer?>(nil)
    let service = try TestService { peer, _, _ in
      seen.withLock { $0 = peer }
      return [1]
    }
    let (path, ping) = (service.root, ping)
    let early = isSetUID ? nil : try RawClient(path)
    let answer = try asRealUser(1234) {
      let client = try early ?? RawClient(path)
      client.send(ping)
      return client.answer()
    }
    #expect(answer == [1])
    let peer = try #require(seen.withLock { $0 })
    #expect(peer.realUser == 1234 && peer.effectiveUser == 0 && peer.socket == .root)
    #expect(peer.process == getpid())
  }

  // shows: packets
  @Test func `a packet is 64 KiB at most, and not empty`() throws {
    let service = try TestService()
    let longest = [UInt8](repeating: 7, count: 65_536)
    for (packet, isGood) in [(longest, true), (longest + [7], false), ([], false)] {
      let client = try RawClient(service.root)
      client.send(packet)
      // Not compared whole: a failure would print all of it.
      #expect(client.answer()?.count == (isGood ? packet.count : nil))
    }
  }

  // shows: peer, packets
  @Test func `who sends two packets has no answer`() throws {
    let gate = Gate()
    let service = try TestService { peer, _, _ in
      gate.pass(peer.realUser)
      return [1]
    }
    let client = try RawClient(service.root)
    client.send(ping)
    #expect(soon { gate.inside.count == 1 })
    client.send(ping)
    gate.open()
    #expect(client.answer() == nil)
  }

  @Test func `an answer that is empty or longer than 64 KiB is none`() throws {
    let service = try TestService { _, request, _ in
      [UInt8](repeating: 0, count: request[0] == 0 ? 0 : 65_537)
    }
    for first: UInt8 in [0, 1] {
      let client = try RawClient(service.root)
      client.send([first])
      #expect(client.answer()?.count == nil)
    }
  }

  @Test func `a connection without a packet is closed when its time is over`() throws {
    var limits = Limits.root
    limits.untilPacket = 50_000_000
    let service = try TestService(root: limits)
    let client = try RawClient(service.root)
    #expect(client.answer() == nil)
  }

  // shows: service-crowd
  @Test func `where connections are too many the oldest goes, and who sends is answered`() throws {
    var limits = Limits.root
    (limits.connections, limits.untilPacket) = (4, 60_000_000_000)
    let service = try TestService(root: limits)
    let silent = try (0..<5).map { _ in try RawClient(service.root) }
    #expect(silent[0].answer() == nil)
    let client = try RawClient(service.root)
    client.send(ping)
    #expect(client.answer() == ping)
    // One more is closed where the client is seen before its packet.
    #expect(silent[2...].allSatisfy { $0.isOpen })
    #expect(silent[4].send(ping) == 4)
    #expect(silent[4].answer() == ping)
  }

  // shows: service-crowd
  @Test func `of one user four packets are worked on, and others are answered meanwhile`() throws {
    let gate = Gate()
    let service = try TestService { peer, _, _ in
      if peer.realUser == 1234 { gate.pass(1234) }
      return [1]
    }
    let (path, ping) = (service.root, ping)
    let held = try asRealUser(1234) {
      try (0..<9).map { _ in
        let client = try RawClient(path)
        client.send(ping)
        return client
      }
    }
    #expect(soon { gate.inside.count == 4 })
    for user: UInt32 in [0, 1235] {
      let answer = try asRealUser(user) {
        let client = try RawClient(path)
        client.send(ping)
        return client.answer()
      }
      #expect(answer == [1])
    }
    #expect(gate.inside.count == 4)
    gate.open()
    #expect(held.map { $0.answer() } == Array(repeating: [1], count: 9))
  }

  // shows: service-crowd
  @Test func `users together leave workers to root`() throws {
    let gate = Gate()
    let service = try TestService(root: Limits(workers: 8)) { peer, _, _ in
      if peer.realUser != 0 { gate.pass(peer.realUser) }
      return [1]
    }
    let (path, ping) = (service.root, ping)
    var held: [RawClient] = []
    for user: UInt32 in [1234, 1235, 1236] {
      held += try asRealUser(user) {
        try (0..<4).map { _ in
          let client = try RawClient(path)
          client.send(ping)
          return client
        }
      }
    }
    #expect(soon { gate.inside.count == 6 })
    let client = try RawClient(path)
    client.send(ping)
    #expect(client.answer() == [1])
    #expect(gate.inside.count == 6)
    gate.open()
    #expect(held.map { $0.answer() } == Array(repeating: [1], count: 12))
  }

  // shows: service-crowd
  @Test func `a crowd of one user drives out its own packets alone`() throws {
    let gate = Gate()
    var limits = Limits(workers: 1)
    limits.packets = 3
    let service = try TestService(root: limits) { peer, _, _ in
      if peer.realUser == 1234 { gate.pass(1234) }
      return [1]
    }
    let (path, ping) = (service.root, ping)
    let send: @Sendable (UInt32) throws -> RawClient = { user in
      try asRealUser(user) {
        let client = try RawClient(path)
        client.send(ping)
        return client
      }
    }
    let worked = try send(1234)
    #expect(soon { gate.inside.count == 1 })
    let other = try send(1235)
    let crowd = try (0..<4).map { _ in try send(1234) }
    #expect(crowd[..<2].map { $0.answer() } == [nothingDone, nothingDone])
    gate.open()
    #expect(([worked, other] + crowd[2...]).map { $0.answer() } == Array(repeating: [1], count: 4))
  }

  // shows: packets, callers-limits
  @Test func `nothing is done for who has gone away or waited too long`() throws {
    let gate = Gate()
    let count = Locked(0)
    var limits = Limits(workers: 1)
    limits.untilWork = 30_000_000_000
    let service = try TestService(root: limits) { peer, _, _ in
      count.withLock { $0 += 1 }
      gate.pass(peer.realUser)
      return [1]
    }
    let first = try RawClient(service.root)
    first.send(ping)
    #expect(soon { gate.inside.count == 1 })
    try RawClient(service.root).send(ping)
    gate.open()
    #expect(first.answer() == [1])
    #expect(service.stop())
    #expect(count.withLock { $0 } == 1)
    limits.untilWork = 0
    let impatient = try TestService(root: limits)
    let late = try RawClient(impatient.root)
    late.send(ping)
    #expect(late.answer() == nothingDone)
  }

  @Test func `who has begun is answered after the end was asked for`() throws {
    let gate = Gate()
    let service = try TestService { peer, _, _ in
      gate.pass(peer.realUser)
      return [1]
    }
    let (client, early) = (try RawClient(service.root), try RawClient(service.root))
    client.send(ping)
    #expect(soon { gate.inside.count == 1 })
    #expect(!service.stop(within: 0))
    #expect(soon { !FileManager.default.fileExists(atPath: service.root) })
    early.send(ping)
    gate.open()
    #expect(client.answer() == [1] && early.answer() == [1])
    #expect(service.stop())
    #expect(!ServiceSocket.isThere(service.root))
  }

  /// One of them works on all packets but the first four, while the others have gone to rest.
  @Test(arguments: [true, false])
  func `the end waits for what has begun, and for nothing else so long`(_ begins: Bool) throws {
    let gate = Gate()
    let service = try TestService { peer, _, caller in
      if begins, !caller.begin() { Issue.record("not told") }
      gate.pass(peer.realUser)
      return [1]
    }
    let client = try RawClient(service.root)
    client.send(ping)
    if begins { #expect(client.answer() == [1, 0xcc]) }
    #expect(soon { gate.inside.count == 1 })
    let isOver = Locked<Bool?>(nil)
    Thread.detachNewThread {
      let done = service.stop(within: 50_000_000)
      isOver.withLock { $0 = done }
    }
    if begins {
      #expect(client.isOpen && isOver.withLock { $0 } == nil)
    } else {
      #expect(soon { isOver.withLock { $0 } == false })
    }
    gate.open()
    #expect(client.answer() == [1])
    #expect(soon { isOver.withLock { $0 } == begins })
  }

  @Test func `packets that wait for their user's turn are answered after that too`() throws {
    let gate = Gate()
    let service = try TestService { peer, _, _ in
      gate.pass(peer.realUser)
      return [1]
    }
    let (path, ping) = (service.root, ping)
    let held = try asRealUser(1234) {
      try (0..<9).map { _ in
        let client = try RawClient(path)
        client.send(ping)
        return client
      }
    }
    #expect(soon { gate.inside.count == 4 })
    #expect(!service.stop(within: 50_000_000))
    gate.open()
    #expect(held.map { $0.answer() } == Array(repeating: [1], count: 9))
    #expect(service.stop())
  }

  @Test func `the sockets are for root and for everybody, whatever the umask is`() async {
    await #expect(processExitsWith: .success) {
      for mask: mode_t in [0, 0o777] {
        let own = try TemporaryDirectory()
        umask(mask)
        let path = own.path + "/socket"
        let listeners = try Listeners.open(root: own.path + "/root", everybody: path)
        umask(0o022)
        let modes = try [own.path + "/root", path].map {
          try FileManager.default.attributesOfItem(atPath: $0)[.posixPermissions] as? Int
        }
        #expect(modes == [0o600, 0o666])
        withExtendedLifetime(listeners) {}
      }
    }
  }

  /// The mask is that of all threads: one that is changed for a moment is lost where two do it.
  @Test func `opening sockets leaves the umask as it is`() async {
    await #expect(processExitsWith: .success) {
      let own = try TemporaryDirectory()
      umask(0o027)
      DispatchQueue.concurrentPerform(iterations: 4) { thread in
        for number in 0..<500 {
          _ = try? Listeners.open(root: "\(own.path)/\(thread)-\(number)")
        }
      }
      #expect(umask(0) == 0o027)
      let made = try FileManager.default.contentsOfDirectory(atPath: own.path)
      #expect(made.count { $0.hasSuffix(".lock") } == 2_000)
    }
  }

  /// A child with another effective uid, as a program that is not root's.
  // shows: peer, container
  @Test func `who is not root is answered on the public socket alone`() async {
    await #expect(processExitsWith: .success) {
      let seen = Locked<Peer?>(nil)
      let service = try TestService { peer, _, _ in
        seen.withLock { $0 = peer }
        return [1]
      }
      // SAFETY: the C string lives for the call.
      try #require(unsafe chmod(service.root, 0o666) == 0)
      for (user, isServed) in [(uid_t(1), true), (0, true), (65_534, false), (4_000_000, false)] {
        // The threads of the service as well, which have what they need.
        try #require(sys_set_real_and_saved_user(user, 0) == 0 && seteuid(user) == 0)
        let clients = try [RawClient(service.root), RawClient(service.everybody)]
        for client in clients { client.send([0]) }
        #expect(clients[0].answer() == (user == 0 ? [1] : nil))
        let unserved = user == 65_534 ? nil : nothingDone
        #expect(clients[1].answer() == (isServed ? [1] : unserved))
        let peer = try #require(seen.withLock { $0 })
        if isServed { #expect(peer.effectiveUser == user && peer.realUser == user) }
        try #require(seteuid(0) == 0 && sys_set_real_and_saved_user(0, 0) == 0)
      }
    }
  }

  @Test func `of two services one has the path, and what is left of a dead one goes`() throws {
    let own = try TemporaryDirectory()
    let (root, everybody) = (own.path + "/root", own.path + "/socket")
    var first: Listeners? = try Listeners.open(root: root, everybody: everybody)
    #expect(throws: ServiceError.inUse(path: root)) {
      try Listeners.open(root: root, everybody: everybody)
    }
    withExtendedLifetime(first) {}
    // As after a kill: the sockets stay, nobody listens.
    first = nil
    #expect(FileManager.default.fileExists(atPath: root))
    let second = try Listeners.open(root: root, everybody: everybody)
    // One that listens without our lock, such as systemd's.
    try FileManager.default.removeItem(atPath: root + ".lock")
    #expect(throws: ServiceError.inUse(path: root)) {
      try Listeners.open(root: root, everybody: everybody)
    }
    withExtendedLifetime(second) {}
  }

  // shows: listener
  @Test func `what is in the way and is not a socket stays`() throws {
    let own = try TemporaryDirectory()
    let (root, everybody) = (own.path + "/root", own.path + "/socket")
    #expect(FileManager.default.createFile(atPath: root, contents: Data([7])))
    #expect(throws: ServiceError.notOurs(path: root)) {
      try Listeners.open(root: root, everybody: everybody)
    }
    #expect(FileManager.default.contents(atPath: root) == Data([7]))
    // SAFETY: the C string lives for the call.
    try #require(unsafe chmod(own.path, 0o777) == 0)
    #expect(throws: ServiceError.notOurs(path: own.path)) {
      try Listeners.open(root: root, everybody: everybody)
    }
  }

  @Test(
    arguments: [
      ([7], 0), ([7, 7, 7], 0), ([7, 8, 8], 1), ([7, 8, 8, 7], 0), ([9, 8, 7, 8, 7, 7], 2),
    ] as [([UInt32], Int)])
  func `the one goes that waits longest of the share that has most`(_ users: [UInt32], _ index: Int)
  {
    #expect(crowdedOut(of: users.map { .user($0) }) == index)
  }
}
