import CService
import CSystem
import Foundation
import OneTimePassword
import SallyportCore
import SallyportSupport
import TestSupport
import Testing

@testable import SallyportService
@testable import SallyportSystem

let isRoot = geteuid() == 0

/// A service with both sockets in a directory of its own; ended with the value.
final class TestService: Sendable {
  let root: String
  let everybody: String
  private let own: TemporaryDirectory
  private let service: Service

  init(
    root: Limits = .root, everybody: Limits = .everybody, shares: Shares = Shares(),
    handler: @escaping Handler = { _, request, _ in request.bytes(in: 0..<request.count) }
  ) throws {
    own = try TemporaryDirectory()
    // SAFETY: the C string lives for the call.
    try #require(unsafe chmod(own.path, 0o755) == 0)
    (self.root, self.everybody) = (own.path + "/root", own.path + "/socket")
    let listeners = try Listeners.open(root: self.root, everybody: self.everybody)
    service = try Service.start(
      listeners, root: root, everybody: everybody, shares: shares, handler: handler)
  }

  func stop(within time: UInt64 = 20_000_000_000) -> Bool { service.stop(within: time) }

  deinit { service.stop() }
}

/// The service's word that nothing was done.
let nothingDone: [UInt8]? = ServiceAnswer.trouble(mayBeTheCallers: true).encoded()

/// A client without manners.
final class RawClient: Sendable {
  let descriptor: Int32

  init(_ path: String) throws {
    descriptor = sys_socket()
    try #require(descriptor > 2)
    try #require(sys_set_time(descriptor, SO_RCVTIMEO, 20_000_000) == 0)
    try #require(sys_set_time(descriptor, SO_SNDTIMEO, 20_000_000) == 0)
    // SAFETY: the C string lives for the call.
    let result = unsafe sys_connect(descriptor, path + "\0")
    guard result == 0 else { throw Errno(code: -result) }
  }

  @discardableResult func send(_ bytes: [UInt8]) -> Int64 {
    // SAFETY: the bytes live for the call.
    unsafe sys_send(descriptor, bytes, bytes.count)
  }

  /// Waits for the answer; nil where the connection is closed without one.
  func answer() -> [UInt8]? {
    let size = sys_packet_size(descriptor)
    if size == -Int64(EAGAIN) { Issue.record("neither answered nor closed in 20 s") }
    guard size > 0 else { return nil }
    var bytes = [UInt8](repeating: 0, count: Int(size))
    // SAFETY: the buffer has its size.
    return unsafe sys_receive(descriptor, &bytes, bytes.count) == size ? bytes : nil
  }

  /// Whether the connection is open, and nothing has come.
  var isOpen: Bool { service_size(descriptor) == -Int64(EAGAIN) }

  deinit { close(descriptor) }
}

/// Whether that comes true within a minute.
func soon(_ condition: () -> Bool) -> Bool {
  let start = sys_monotonic()
  while !condition() {
    if sys_monotonic() - start > 60_000_000_000 { return false }
    sched_yield()
  }
  return true
}

/// Calls `body` on a thread whose real uid is `user`, as su's is that of the user who started it.
func asRealUser<R: Sendable>(_ user: UInt32, _ body: @escaping @Sendable () throws -> R) throws -> R
{
  let result = Locked<Result<R, any Error>?>(nil)
  Thread.detachNewThread {
    let changed = sys_set_real_and_saved_user(user, 0) == 0
    let value = Result { try body() }
    result.withLock { $0 = changed ? value : .failure(Errno(code: EPERM)) }
  }
  try #require(soon { result.withLock { $0 != nil } })
  return try #require(result.withLock { $0 }).get()
}

/// A caller that is there, and what it was told; or that is gone.
final class Waiting: Caller {
  private let state = Locked(0)
  private let isGone: Bool
  let isThere: Bool
  var begun: Int { state.withLock { $0 } }

  /// `isGone`: before anything begins; `isThere`: whether it is when it is answered.
  init(isGone: Bool = false, isThere: Bool = true) {
    (self.isGone, self.isThere) = (isGone, isThere && !isGone)
  }

  func begin() -> Bool {
    state.withLock { $0 += 1 }
    return !isGone
  }
}

/// A door that a handler waits at.
final class Gate: Sendable {
  private let state = Locked((isOpen: false, inside: [UInt32]()))

  var inside: [UInt32] { state.withLock { $0.inside } }
  func open() { state.withLock { $0.isOpen = true } }

  func pass(_ user: UInt32) {
    state.withLock { $0.inside.append(user) }
    if !soon({ state.withLock { $0.isOpen } }) { Issue.record("the gate stayed closed") }
  }
}
