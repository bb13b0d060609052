import CService
import CTLS
import Foundation
import OneTimePassword
import SallyportSupport
import TestSupport
import Testing

@testable import FleetTransport

@Suite(.serialized) struct `A verifier, to all who come` {
  private func side(_ verifier: TestVerifier, _ identity: Identity? = nil) throws -> TLSSide {
    let identity = try identity ?? newIdentity()
    return try #require(TLSSide(identity, pins: [verifier.identity.pin]))
  }

  private func frame(_ kind: UInt8, _ body: [UInt8], length: Int? = nil) -> [UInt8] {
    let length = length ?? body.count + 1
    return (0..<4).map { UInt8(truncatingIfNeeded: length >> (8 * $0)) }
      + [1, 2, 3, 4, 5, 6, 7, 8, kind] + body
  }

  private func answers(_ verifier: TestVerifier) throws -> Bool {
    let client = try verifier.client()
    let answer = try client.ask(.question, try secret(3), within: 20_000)
    return answer.body == [7, 7, 7]
  }

  // shows: hostile-connections
  @Test func `closes what is no handshake, and answers others`() throws {
    let verifier = try TestVerifier()
    let garbage: [[UInt8]] = [
      Array("GET / HTTP/1.1\r\n\r\n".utf8), [UInt8](repeating: 0, count: 5000),
      [UInt8](repeating: 0xff, count: 70_000),
    ]
    for bytes in garbage {
      let stranger = try verifier.raw()
      _ = stranger.send(bytes)
      #expect(stranger.isClosed(), "\(bytes.prefix(8))")
    }
    #expect(try answers(verifier))
    #expect(verifier.server.connections <= 1)
  }

  @Test func `closes who says nothing, or goes on with the handshake too slowly`() throws {
    var limits = ConnectionLimits()
    // Longer than a handshake takes on a busy machine; so for the times below.
    (limits.untilGreeted, limits.round) = (1_000_000_000, 20_000_000)
    let verifier = try TestVerifier(limits: limits)
    let strangers = try (0..<20).map { _ in try verifier.raw() }
    for stranger in strangers[10...] { #expect(stranger.send([22, 3, 1])) }
    #expect(try answers(verifier))
    for stranger in strangers { #expect(stranger.isClosed()) }
  }

  // decisive
  // shows: hostile-connections
  @Test func `closes the oldest stranger for a new one, and never a host`() throws {
    var limits = ConnectionLimits()
    (limits.strangers, limits.untilGreeted, limits.patience) = (8, 600_000_000_000, 0)
    limits.untilBegun = .max
    let verifier = try TestVerifier(limits: limits)
    let host = try verifier.client()
    #expect(try host.ask(.ping, try secret(0), within: 20_000).answers(.ping))
    let strangers = try (0..<40).map { _ in try verifier.raw() }
    for stranger in strangers[..<32] { #expect(stranger.isClosed()) }
    #expect(soon { verifier.server.connections == 9 })
    #expect(try host.ask(.ping, try secret(0), within: 20_000).answers(.ping))
    #expect(try answers(verifier))
  }

  @Test func `closes the connection of a stranger who finished the handshake`() throws {
    var limits = ConnectionLimits()
    (limits.ofStranger, limits.round) = (1_000_000_000, 20_000_000)
    let verifier = try TestVerifier(limits: limits)
    verifier.known.withLock { $0 = [] }
    let stranger = try verifier.raw()
    #expect(try stranger.greet(try side(verifier)) == 0x84)
    #expect(stranger.frame() == nil)
    #expect(soon { verifier.server.connections == 0 })
  }

  // shows: hostile-connections
  @Test func `speaks nothing older than TLS 1.3, and to no other kind of key`() throws {
    let verifier = try TestVerifier()
    let directory = try TemporaryDirectory()
    let port = verifier.server.address.port
    // The last of a handshake of openssl's own, by which it shows that the others are refused.
    let tries: [([String], Bool)] = [
      (["-tls1_3", "-cert", "ed25519.crt", "-key", "ed25519.key"], true),
      (["-tls1_2", "-cert", "ed25519.crt", "-key", "ed25519.key"], false),
      (["-tls1_3", "-cert", "p256.crt", "-key", "p256.key"], false),
      (["-tls1_3"], false),
    ]
    let make = """
      openssl genpkey -algorithm ed25519 -out ed25519.key
      openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out p256.key
      for one in ed25519 p256; do
        openssl req -new -x509 -key $one.key -subj /CN=x -days 2 -out $one.crt
      done
      """
    #expect(run(make, in: directory).status == 0)
    for (words, isGreeted) in tries {
      let connection =
        "openssl s_client -connect 127.0.0.1:\(port) -quiet \(words.joined(separator: " ")) "
        + "< /dev/zero | head -c 14 | wc -c"
      // What it sends is no frame: the connection may be closed before the greeting was read.
      let wasGreeted = (0..<(isGreeted ? 20 : 1)).contains { _ in
        let (output, _) = run("timeout 20 sh -c '\(connection)'", in: directory)
        return Int(output.trimmingCharacters(in: .whitespacesAndNewlines)) == 14
      }
      #expect(wasGreeted == isGreeted)
    }
    #expect(verifier.asked.withLock { $0.isEmpty })
  }

  private func run(_ script: String, in directory: TemporaryDirectory)
    -> (output: String, status: Int32)
  {
    let process = Process()
    let pipe = Pipe()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", script]
    process.currentDirectoryURL = URL(fileURLWithPath: directory.path)
    process.standardOutput = pipe
    process.standardError = FileHandle.nullDevice
    do { try process.run() } catch { return ("", -1) }
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return (String(decoding: output, as: UTF8.self), process.terminationStatus)
  }

  @Test func `closes a connection on which no frame comes, without asking anybody`() throws {
    let verifier = try TestVerifier()
    let one = try side(verifier)
    let garbage: [[UInt8]] = [
      [0, 0, 0, 0] + [UInt8](repeating: 1, count: 9),
      frame(1, [], length: 65_601), [0xff, 0xff, 0xff, 0xff] + [UInt8](repeating: 1, count: 9),
      [0, 0, 0, 0x80] + [UInt8](repeating: 1, count: 9),
    ]
    for bytes in garbage {
      let host = try verifier.raw()
      #expect(try host.greet(one) == 0x84)
      _ = host.write(bytes)
      #expect(host.frame() == nil, "\(bytes.prefix(12))")
    }
    #expect(verifier.asked.withLock { $0.isEmpty })
    #expect(try answers(verifier))
  }

  @Test func `says that it does not serve a kind that is not known`() throws {
    let verifier = try TestVerifier()
    let host = try verifier.raw()
    #expect(try host.greet(try side(verifier)) == 0x84)
    for kind in [0, 7, 0x80, 0x81, 0xff] as [UInt8] {
      #expect(host.write(frame(kind, [1, 2])))
      let answer = try #require(host.frame())
      #expect((answer.kind, answer.body.count) == (0xef, 0))
      #expect(answer.nonce == 0x0807_0605_0403_0201)
    }
    #expect(verifier.asked.withLock { $0.isEmpty })
  }

  // shows: hostile-connections
  @Test func `takes a frame that comes byte by byte, but not for ever`() throws {
    var limits = ConnectionLimits()
    (limits.workers, limits.workersOfOne) = (1, 1)
    (limits.untilFrame, limits.round) = (1_000_000_000, 20_000_000)
    let verifier = try TestVerifier(limits: limits)
    let host = try verifier.raw()
    #expect(try host.greet(try side(verifier)) == 0x84)
    for byte in frame(1, [9, 9]) { #expect(host.write([byte])) }
    #expect(host.frame()?.body.count == 2)
    // The only thread is for others meanwhile.
    #expect(host.write(Array(frame(1, [9, 9]).dropLast())))
    #expect(try answers(verifier))
    #expect(host.frame() == nil)
    #expect(verifier.asked.withLock { $0.count } == 2)
  }

  @Test func `verifies nothing for a caller who is gone, or has sent more`() throws {
    let (go, asked) = (Locked(false), Locked(0))
    var limits = ConnectionLimits()
    (limits.workers, limits.workersOfOne) = (1, 1)
    let verifier = try TestVerifier(limits: limits) { _, kind, _, _ in
      asked.withLock { $0 += 1 }
      _ = soon { go.withLock { $0 } }
      return VerifierAnswer(to: kind, [])
    }
    let (first, gone, eager) = (try verifier.raw(), try verifier.raw(), try verifier.raw())
    for one in [first, gone, eager] { #expect(try one.greet(try side(verifier)) == 0x84) }
    #expect(first.write(frame(1, [])))
    #expect(soon { asked.withLock { $0 } == 1 })
    #expect(gone.write(frame(1, [])))
    shutdown(gone.descriptor, Int32(SHUT_RDWR))
    #expect(eager.write(frame(1, [])))
    #expect(eager.write(frame(1, [])))
    go.withLock { $0 = true }
    #expect(first.frame()?.kind == 0x81)
    #expect(eager.frame() == nil)
    #expect(soon { verifier.server.connections == 1 })
    #expect(asked.withLock { $0 } == 1)
  }

  // shows: fair-workers
  @Test func `has workers left while one host has all of its own`() throws {
    let (go, asked) = (Locked(false), Locked(0))
    var limits = ConnectionLimits()
    (limits.workers, limits.workersOfOne, limits.connectionsOfOne) = (3, 2, 6)
    let greedy = try newIdentity()
    let verifier = try TestVerifier(limits: limits) { pin, kind, _, _ in
      if pin == greedy.pin {
        asked.withLock { $0 += 1 }
        _ = soon { go.withLock { $0 } }
      }
      return VerifierAnswer(to: kind, [7, 7, 7])
    }
    let own = try side(verifier, greedy)
    let connections = try (0..<6).map { _ in try verifier.raw() }
    for connection in connections {
      #expect(try connection.greet(own) == 0x84)
      #expect(connection.write(frame(1, [])))
    }
    #expect(soon { asked.withLock { $0 } == 2 })
    #expect(try answers(verifier))
    #expect(asked.withLock { $0 } == 2)
    go.withLock { $0 = true }
    for connection in connections { #expect(connection.frame()?.kind == 0x81) }
    // One more than a key may have: one of those that are idle goes.
    let more = try verifier.raw()
    #expect(try more.greet(own) == 0x84)
    #expect(soon { connections.filter { !$0.isSilent }.count == 1 })
    #expect(more.write(frame(1, [])))
    #expect(more.frame()?.kind == 0x81)
  }

  // decisive; shows: fair-workers
  @Test func `gives up an answer that nobody takes, and holds nobody up by it`() throws {
    let big = [UInt8](repeating: 1, count: VerifierPool.longestBody)
    let asked = Locked<UInt64>(0)
    let verifier = try TestVerifier { _, kind, _, _ in
      asked.withLock { $0 = sys_monotonic() }
      return VerifierAnswer(to: kind, big)
    }
    let host = try verifier.raw()
    var small: Int32 = 4096
    // SAFETY: as many bytes as are said.
    unsafe setsockopt(
      host.descriptor, SOL_SOCKET, SO_RCVBUF, &small, socklen_t(MemoryLayout<Int32>.size))
    #expect(try host.greet(try side(verifier)) == 0x84)
    // Until what the kernel holds is full: the answer for which there is no room is not waited for.
    let end = sys_monotonic() + 30_000_000_000
    while verifier.server.connections == 1, sys_monotonic() < end {
      _ = host.write(frame(1, []))
      _ = poll(nil, 0, 20)
    }
    #expect(verifier.server.connections == 0)
    #expect(sys_monotonic() - asked.withLock { $0 } < 900_000_000)
    #expect(try verifier.client().ask(.question, try secret(0), within: 20_000).body == big)
  }

  @Test func `tells what is idle when it stops, and answers what had been asked by then`() throws {
    let (go, asked, isOver) = (Locked(false), Locked(0), Locked(false))
    let verifier = try TestVerifier { _, kind, _, _ in
      asked.withLock { $0 += 1 }
      _ = soon { go.withLock { $0 } }
      return VerifierAnswer(to: kind, [])
    }
    let (busy, idle) = (try verifier.raw(), try verifier.raw())
    for host in [busy, idle] { #expect(try host.greet(try side(verifier)) == 0x84) }
    #expect(busy.write(frame(1, [])))
    #expect(soon { asked.withLock { $0 } == 1 })
    let server = verifier.server
    let started = Threads.start {
      server.stop(within: 60_000_000_000)
      isOver.withLock { $0 = true }
    }
    #expect(started == 0)
    let told = idle.frame()
    #expect(told?.kind == 0xec && told?.nonce == 0)
    // It was on its way.
    #expect(idle.write(frame(1, [])))
    #expect(soon { asked.withLock { $0 } == 2 })
    #expect(!isOver.withLock { $0 })
    go.withLock { $0 = true }
    for host in [busy, idle] { #expect(host.frame()?.kind == 0x81) }
    // Who has one answer on its way is told after it; then nothing more comes.
    #expect(busy.frame()?.kind == 0xec)
    for host in [busy, idle] { #expect(host.frame() == nil) }
    #expect(soon { isOver.withLock { $0 } })
  }

  @Test func `answers what is under way when it stops, and then has no thread`() throws {
    let (go, asked) = (Locked(false), Locked(0))
    let verifier = try TestVerifier { _, kind, _, _ in
      asked.withLock { $0 += 1 }
      _ = soon { go.withLock { $0 } }
      return VerifierAnswer(to: kind, [])
    }
    let host = try verifier.raw()
    #expect(try host.greet(try side(verifier)) == 0x84)
    #expect(host.write(frame(1, [])))
    #expect(soon { asked.withLock { $0 } == 1 })
    #expect(!verifier.server.stop(within: 50_000_000))
    go.withLock { $0 = true }
    #expect(verifier.server.stop(within: 20_000_000_000))
    #expect(host.frame()?.kind == 0x81)
    #expect(host.frame()?.kind == 0xec)
    #expect(host.frame() == nil)
    #expect(verifier.server.connections == 0)
  }
}
