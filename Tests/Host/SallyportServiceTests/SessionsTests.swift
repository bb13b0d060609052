import CService
import Foundation
import TestSupport
import Testing

@testable import SallyportService
@testable import SallyportSupport

/// A socket for sessions, for each of which a script is started that has the connection.
private final class TestSessions: Sendable {
  let path: String
  private let own: TemporaryDirectory

  init(
    _ script: String, longest: UInt64 = 360_000_000_000,
    hasAccount: @escaping @Sendable (UInt32) -> Int32 = { _ in 1 }
  ) throws {
    own = try TemporaryDirectory()
    path = own.path + "/session"
    let program = own.path + "/program"
    try "#!/bin/sh\n\(script)\n".write(toFile: program, atomically: true, encoding: .utf8)
    // SAFETY: the C string lives for the call.
    try #require(unsafe chmod(program, 0o755) == 0)
    try waitForWriters(of: program)
    let sessions = Sessions(
      try Listeners.open(forSessions: path), program, longest: longest,
      shares: Shares(file: "/nowhere", hasAccount: hasAccount))
    try sessions.open()
  }

  /// A process that another test is just starting has our descriptor for a moment, and what is open
  /// to be written cannot be started; nor can it be leased.
  private func waitForWriters(of file: String) throws {
    // SAFETY: the C string lives for the call.
    let descriptor = unsafe open(file, O_RDONLY | O_CLOEXEC)
    defer { close(descriptor) }
    let setLease: Int32 = 1024
    try #require(soon { fcntl(descriptor, setLease, Int32(F_RDLCK)) == 0 })
  }
}

// A connection that is closed is one that no process of its session has any more.
@Suite(.enabled(if: isRoot, "the service is root's")) struct `The sessions of users` {
  // shows: session-hang
  @Test func `what lasts too long ends with all that it started`() throws {
    let sessions = try TestSessions("sleep 1000 & exec sleep 1000", longest: 200_000_000)
    #expect(try RawClient(sessions.path).answer() == nil)
    withExtendedLifetime(sessions) {}
  }

  // shows: session-hang
  @Test func `what a session leaves ends with it`() throws {
    let sessions = try TestSessions("sleep 1000 &")
    #expect(try RawClient(sessions.path).answer() == nil)
    withExtendedLifetime(sessions) {}
  }

  // shows: session-hang
  @Test func `a name service that does not answer holds nobody else`() throws {
    let calls = Locked(0)
    let isOver = Locked(false)
    defer { isOver.withLock { $0 = true } }
    let sessions = try TestSessions("exit 0") { _ in
      let call = calls.withLock { calls in
        calls += 1
        return calls
      }
      if call == 1 { while !isOver.withLock({ $0 }) { _ = poll(nil, 0, 10) } }
      return 1
    }
    let first = try RawClient(sessions.path)
    #expect(soon { calls.withLock { $0 } == 1 })
    #expect(try RawClient(sessions.path).answer() == nil)
    #expect(first.isOpen)
    // Nor is anybody looked up again who was found.
    #expect(try RawClient(sessions.path).answer() == nil)
    #expect(calls.withLock { $0 } == 2)
    withExtendedLifetime(sessions) {}
  }

  @Test func `a user without an account gets no session`() throws {
    let sessions = try TestSessions("echo >&3") { _ in 0 }
    #expect(try RawClient(sessions.path).answer() == nil)
    withExtendedLifetime(sessions) {}
  }

  // shows: session-share
  @Test(arguments: [1, -5])
  func `one user has four, also where it is in doubt who that is`(_ found: Int32) throws {
    // They greet; nobody waits for their end.
    let sessions = try TestSessions("echo >&3; exec sleep 60 >/dev/null 2>&1") { _ in found }
    let clients = try (0..<6).map { _ in try RawClient(sessions.path) }
    #expect(clients.count { $0.answer() != nil } == 4)
    withExtendedLifetime(sessions) {}
  }
}
