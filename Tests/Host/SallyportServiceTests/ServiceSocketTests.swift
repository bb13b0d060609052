import CSystem
import Foundation
import OneTimePassword
import SallyportSupport
import TestSupport
import Testing

@testable import SallyportSystem

/// A socket at which a test does what it likes.
private final class OddServer: Sendable {
  let path: String
  private let own: TemporaryDirectory
  private let listener: Int32

  init(kind: Int32 = Int32(SOCK_SEQPACKET.rawValue), backlog: Int32 = 8) throws {
    own = try TemporaryDirectory()
    path = own.path + "/socket"
    listener = try OddServer.bound(to: path, kind)
    try #require(listen(listener, backlog) == 0)
  }

  /// A socket on which nobody listens.
  static func bound(to path: String, _ kind: Int32 = Int32(SOCK_SEQPACKET.rawValue)) throws -> Int32
  {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    // SAFETY: the path is shorter than the buffer, and all live for the calls.
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
    let made = socket(AF_UNIX, kind, 0)
    let bound = unsafe withUnsafeBytes(of: &address) { bytes in
      unsafe bind(
        made, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self),
        socklen_t(bytes.count))
    }
    try #require(made >= 0 && bound == 0)
    return made
  }

  /// Accepts one connection and hands its descriptor to `body`, which closes it.
  func serve(_ body: @escaping @Sendable (Int32) -> Void) {
    Thread.detachNewThread { [listener] in
      body(accept(listener, nil, nil))
    }
  }

  deinit { close(listener) }
}

private func ask(_ path: String, _ request: String = "ping", timeLeft: UInt64 = 20_000) throws
  -> [UInt8]?
{
  try ServiceSocket(to: path, timeLeft: timeLeft).ask(#require(Secret(request.utf8)))
}

private func trouble(_ path: String, timeLeft: UInt64 = 20_000) -> StoreTrouble? {
  do {
    _ = try ask(path, timeLeft: timeLeft)
    return nil
  } catch { return error as? StoreTrouble }
}

/// The next one that is opened.
private func lowestDescriptor() -> Int32 {
  let free = dup(0)
  close(free)
  return free
}

/// Both ways of finding out say so.
private func isAbsent(_ path: String) -> Bool {
  !ServiceSocket.isThere(path) && trouble(path) == .service(path: path, .absent)
}

@Suite struct `The question to the service` {
  @Test(.enabled(if: isRoot, "the service is root's"))
  func `it is answered on a connection that is closed afterwards`() throws {
    let server = try OddServer()
    let got = Locked([UInt8]())
    let isClosed = Locked<Bool?>(nil)
    server.serve { connection in
      var bytes = [UInt8](repeating: 0, count: 100)
      // SAFETY, all three: the buffers have their sizes.
      let count = unsafe recv(connection, &bytes, bytes.count, 0)
      got.withLock { $0 = Array(bytes.prefix(count)) }
      _ = unsafe send(connection, "pong", 4, 0)
      let end = unsafe recv(connection, &bytes, bytes.count, 0)
      isClosed.withLock { $0 = end == 0 }
      close(connection)
    }
    #expect(try ask(server.path) == Array("pong".utf8))
    #expect(soon { isClosed.withLock { $0 != nil } })
    #expect(isClosed.withLock { $0 } == true)
    #expect(got.withLock { $0 } == Array("ping".utf8))
  }

  @Test func `there is no service where nothing listens`() throws {
    let own = try TemporaryDirectory()
    #expect(isAbsent(own.path + "/socket"))
    #expect(isAbsent(own.path + "/none/socket"))
    let stale = try OddServer.bound(to: own.path + "/stale")
    defer { close(stale) }
    #expect(isAbsent(own.path + "/stale"))
  }

  // shows: no-service
  @Test func `what is there and no socket is trouble`() throws {
    let own = try TemporaryDirectory()
    let files = FileManager.default
    #expect(files.createFile(atPath: own.path + "/file", contents: nil))
    try files.createDirectory(atPath: own.path + "/directory", withIntermediateDirectories: false)
    try files.createSymbolicLink(atPath: own.path + "/link", withDestinationPath: "nowhere")
    for name in ["/file", "/directory", "/link"] {
      let path = own.path + name
      #expect(trouble(path) == .service(path: path, .notASocket))
      #expect(ServiceSocket.isThere(path))
    }
  }

  @Test func `another kind of socket is trouble`() throws {
    let server = try OddServer(kind: Int32(SOCK_STREAM.rawValue))
    #expect(
      trouble(server.path) == .system("connect", path: server.path, errno: EPROTOTYPE))
    let long = "/" + String(repeating: "x", count: 200)
    #expect(trouble(long) == .system("connect", path: long, errno: ENAMETOOLONG))
  }

  // shows: no-service
  @Test func `a service that lets nobody in is busy after a second`() throws {
    let server = try OddServer(backlog: 0)
    let first = sys_socket()
    defer { close(first) }
    // SAFETY: the C string lives for the call.
    try #require(unsafe sys_connect(first, server.path + "\0") == 0)
    let start = sys_monotonic()
    #expect(trouble(server.path) == .service(path: server.path, .busy))
    #expect(ServiceSocket.isThere(server.path))
    #expect((1_800_000_000...20_000_000_000).contains(sys_monotonic() - start))
    #expect(trouble(server.path, timeLeft: 0) == .service(path: server.path, .busy))
  }

  // shows: no-service
  @Test(.enabled(if: isRoot, "the service is root's"), arguments: [false, true])
  func `silence is trouble when the time is over, whatever signals come`(_ withSignals: Bool) throws
  {
    let server = try OddServer()
    // It is closed only after the question has been given up.
    let isOver = Locked(false)
    let isDone = Locked(false)
    server.serve { connection in
      _ = soon { isOver.withLock { $0 } }
      close(connection)
      isDone.withLock { $0 = true }
    }
    let asking = pthread_self()
    if withSignals {
      signal(SIGWINCH) { _ in }
      Thread.detachNewThread {
        while !isOver.withLock({ $0 }) {
          pthread_kill(asking, SIGWINCH)
          usleep(1000)
        }
        isDone.withLock { $0 = true }
      }
    }
    let start = sys_monotonic()
    #expect(trouble(server.path, timeLeft: 300) == .service(path: server.path, .silent))
    #expect((300_000_000...10_000_000_000).contains(sys_monotonic() - start))
    isOver.withLock { $0 = true }
    #expect(soon { isDone.withLock { $0 } })
  }

  @Test(.enabled(if: isRoot, "the service is root's"))
  func `a connection closed without an answer was read`() throws {
    let server = try OddServer()
    server.serve { connection in
      var byte: UInt8 = 0
      // SAFETY: the buffer has its size.
      _ = unsafe recv(connection, &byte, 1, 0)
      close(connection)
    }
    let socket = try ServiceSocket(to: server.path, timeLeft: 20_000)
    #expect(try socket.ask(#require(Secret("ping".utf8))) == nil)
    #expect(socket.wasRead)
  }

  /// Serves one connection, and sends these packets, each this many milliseconds after the one
  /// before.
  private func say(_ packets: [[UInt8]], by server: OddServer, after milliseconds: UInt32) {
    server.serve { connection in
      var byte: UInt8 = 0
      // SAFETY, both: the bytes live for the calls.
      _ = unsafe recv(connection, &byte, 1, 0)
      for packet in packets {
        usleep(milliseconds * 1000)
        _ = unsafe send(connection, packet, packet.count, Int32(MSG_NOSIGNAL))
      }
      close(connection)
    }
  }

  // decisive
  @Test(.enabled(if: isRoot, "the service is root's"))
  func `once the service has begun the time bounds nothing, and is not spent`() throws {
    let server = try OddServer()
    say([[1, 0xcc], [7]], by: server, after: 400)
    let socket = try ServiceSocket(to: server.path, timeLeft: 600)
    #expect(try socket.ask(#require(Secret("ping".utf8))) == [7])
    #expect((1...200).contains(socket.timeLeft), "\(socket.timeLeft)")
  }

  @Test(.enabled(if: isRoot, "the service is root's"))
  func `what becomes of a question that has begun and has no answer is unknown`() throws {
    let server = try OddServer()
    say([[1, 0xcc]], by: server, after: 0)
    #expect(trouble(server.path) == .service(path: server.path, .unknown))
  }

  /// Closed before it is sent, after it, and by the end of who never accepted it.
  // shows: service-crowd
  @Test(.enabled(if: isRoot, "the service is root's"))
  func `a question that was not read is told from one without an answer`() throws {
    var server: OddServer? = try OddServer()
    let path = try #require(server?.path)
    server?.serve { connection in close(connection) }
    #expect(try ask(path) == nil)
    server?.serve { connection in
      var byte: UInt8 = 0
      // SAFETY: the buffer has its size.
      _ = unsafe recv(connection, &byte, 1, Int32(MSG_PEEK))
      close(connection)
    }
    #expect(try ask(path) == nil)
    let connected = try ServiceSocket(to: path, timeLeft: 20_000)
    server = nil
    #expect(try connected.ask(#require(Secret("ping".utf8))) == nil)
  }

  @Test(.enabled(if: isRoot, "the service is root's"))
  func `an answer of more than 64 KiB is trouble`() throws {
    let server = try OddServer()
    for count in [65_536, 65_537] {
      server.serve { connection in
        var bytes = [UInt8](repeating: 7, count: count)
        // SAFETY, both: the bytes live for the call.
        _ = unsafe recv(connection, &bytes, 4, 0)
        bytes = [UInt8](repeating: 7, count: count)
        _ = unsafe send(connection, bytes, bytes.count, 0)
        close(connection)
      }
      if count > 65_536 {
        #expect(trouble(server.path) == .service(path: server.path, .garbage))
      } else {
        #expect(try ask(server.path) == [UInt8](repeating: 7, count: count))
      }
    }
  }

  // shows: listener
  @Test(.enabled(if: isRoot, "only root can be somebody else"))
  func `a listener that is not root's is not asked`() async {
    await #expect(processExitsWith: .success) {
      let own = try TemporaryDirectory()
      // SAFETY: the C string lives for the call.
      try #require(unsafe chmod(own.path, 0o777) == 0)
      try #require(seteuid(1234) == 0)
      let listener = try OddServer.bound(to: own.path + "/socket")
      try #require(listen(listener, 8) == 0)
      try #require(seteuid(0) == 0)
      let path = own.path + "/socket"
      #expect(trouble(path) == .service(path: path, .notRoot(1234)))
      // It was told nothing: the connection has ended without a packet.
      var byte: UInt8 = 0
      // SAFETY: the buffer has its size.
      let count = unsafe recv(accept(listener, nil, nil), &byte, 1, 0)
      #expect(count == 0)
    }
  }

  /// Also where there is none: without a descriptor that is not to be seen.
  // decisive
  // shows: no-service
  @Test func `without a descriptor it is trouble, and never no service`() async {
    await #expect(processExitsWith: .success) {
      let own = try TemporaryDirectory()
      var limit = rlimit()
      let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
      // SAFETY, all: filled and read within the calls.
      try #require(unsafe getrlimit(resource, &limit) == 0)
      let usual = limit.rlim_cur
      let path = own.path + "/socket"
      var seen: [StoreTrouble?] = []
      var isSeen: [Bool] = []
      // Once more where another thread has closed one meanwhile.
      let isSteady = soon {
        let free = lowestDescriptor()
        (seen, isSeen) = ([], [])
        for bound in 0...free {
          limit.rlim_cur = rlim_t(bound)
          _ = unsafe setrlimit(resource, &limit)
          seen.append(trouble(path))
          isSeen.append(ServiceSocket.isThere(path))
        }
        limit.rlim_cur = usual
        _ = unsafe setrlimit(resource, &limit)
        return lowestDescriptor() == free
      }
      #expect(isSteady)
      #expect(seen.allSatisfy { $0 == .system("socket", path: path, errno: EMFILE) })
      #expect(isSeen.allSatisfy { $0 })
      #expect(isAbsent(path))
    }
  }

  /// Whatever the host prints there would be the packet; nor does a program that it starts get it.
  // shows: standard-descriptors
  @Test func `its descriptor is none of the standard ones that the host has closed`() async {
    await #expect(processExitsWith: .success) {
      let before = fcntl(sys_socket(), F_GETFD)
      for number: Int32 in 0...2 { close(number) }
      let made = sys_socket()
      let isAbove = made > 2 && fcntl(made, F_GETFD) == FD_CLOEXEC && before == FD_CLOEXEC
      let areFree = (0...2).allSatisfy { fcntl($0, F_GETFD) < 0 }
      var limit = rlimit()
      let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
      // SAFETY, both: filled and read within the calls.
      _ = unsafe getrlimit(resource, &limit)
      limit.rlim_cur = 3
      _ = unsafe setrlimit(resource, &limit)
      let isRefused = sys_socket() == -EMFILE && fcntl(0, F_GETFD) < 0
      _exit(isAbove && areFree && isRefused ? 0 : 1)
    }
  }
}
