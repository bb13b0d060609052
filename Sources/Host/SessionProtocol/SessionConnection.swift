internal import CSystem
package import OneTimePassword

/// A session's connection between command and service. Never blocks for longer than it is told to.
package final class SessionConnection: Sendable {
  /// The socket of sessions.
  package static let usualPath = "/run/sallyport/session"

  /// Why no more packets come from it.
  package enum Fault: Error, Equatable {
    /// Nobody listens.
    case absent
    /// The listener is not root.
    case notRoot(UInt32)
    /// The other side is gone, or the time is over.
    case silent
    /// No packet has arrived yet.
    case nothingYet
    /// The packet is invalid.
    case garbage
    /// A system call failed, with this errno.
    case failed(Int32)
  }

  private let descriptor: Int32
  /// In the nanoseconds of CLOCK_MONOTONIC.
  private let end: UInt64

  /// Takes over the descriptor, for this many seconds.
  package init(_ descriptor: Int32, seconds: UInt64) {
    (self.descriptor, end) = (descriptor, sys_monotonic() &+ seconds &* 1_000_000_000)
  }

  deinit { sys_close(descriptor) }

  /// Connects to the session service of this machine, which must be root's.
  package static func connect(_ path: String, seconds: UInt64) throws(Fault) -> SessionConnection {
    let made = sys_socket()
    guard made >= 0 else { throw .failed(-made) }
    let line = SessionConnection(made, seconds: seconds)
    _ = sys_set_time(made, SO_SNDTIMEO, 1_000_000)
    // SAFETY: the C string lives for the call.
    let result = unsafe sys_connect(made, path)
    switch -result {
    case 0: break
    case ENOENT, ECONNREFUSED: throw .absent
    case let number: throw .failed(number)
    }
    var user = UInt32.max
    // SAFETY: filled within the call.
    guard unsafe sys_listener(made, &user) == 0 else { throw .garbage }
    guard user == 0 else { throw .notRoot(user) }
    return line
  }

  /// false if it could not be sent.
  package func send(_ packet: Secret?) -> Bool {
    guard let packet, wait(SO_SNDTIMEO, nanoseconds: UInt64.max) else { return false }
    // SAFETY: the bytes live for the call.
    let done = unsafe packet.withBytes { unsafe sys_send(descriptor, $0.baseAddress, $0.count) }
    return done == Int64(packet.count)
  }

  /// The next packet; throws `nothingYet` where there is none within this many milliseconds.
  package func receive(within milliseconds: UInt64 = 3_600_000) throws(Fault) -> Secret {
    guard wait(SO_RCVTIMEO, nanoseconds: milliseconds &* 1_000_000) else { throw .silent }
    let size = sys_packet_size(descriptor)
    if size == -Int64(EAGAIN) || size == -Int64(EINTR) { throw .nothingYet }
    guard size > 0 else { throw .silent }
    guard size <= SessionFrame.longest, let packet = Secret(count: Int(size)) else {
      throw .garbage
    }
    // SAFETY: the buffer has `size` bytes and lives for the call.
    let done = unsafe packet.withMutableBytes { bytes -> Int64 in
      guard let base = bytes.baseAddress else { return 0 }
      return unsafe sys_receive(descriptor, base, bytes.count)
    }
    guard done == size else { throw .garbage }
    return packet
  }

  /// Whether the other side is there and waits for an answer, and has sent nothing more.
  package var isWaiting: Bool {
    var none: UInt8 = 0
    // SAFETY: a byte that lives for the call.
    return unsafe sys_receive(descriptor, &none, 1) == -Int64(EAGAIN)
  }

  /// Bounds the next call; false where the time is over.
  private func wait(_ direction: Int32, nanoseconds: UInt64) -> Bool {
    let now = sys_monotonic()
    guard now < end else { return false }
    let time = min(end - now, nanoseconds)
    return sys_set_time(descriptor, direction, Int64(time / 1000 + 1)) == 0
  }
}
