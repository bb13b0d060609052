import CService
import CTLS
import Glibc
import OneTimePassword

/// What all connections of one side share: its key, and the permitted keys of the other side.
@safe final class TLSSide: @unchecked Sendable {
  fileprivate let side: UnsafeMutablePointer<tls_side>

  /// `pins`: of the verifiers, for a host; nil for a verifier, which identifies the peer
  /// afterwards.
  init?(_ identity: Identity, pins: [Pin]?) {
    let bytes = (pins ?? []).flatMap(\.bytes)
    // SAFETY: libssl counts a reference of its own to the key; the pins are copied.
    let made = unsafe tls_side_new(
      identity.key, pins == nil ? 1 : 0, bytes.isEmpty ? [0] : bytes, Int32(pins?.count ?? 0))
    guard let side = unsafe made else { return nil }
    unsafe self.side = side
  }

  deinit {
    // SAFETY: connections hold this object.
    unsafe tls_side_free(side)
  }
}

/// A connection; closed with the last reference. It never blocks. For one thread at a time.
@safe final class TLSConnection: @unchecked Sendable {
  private let connection: UnsafeMutablePointer<tls_line>
  private let side: TLSSide
  let descriptor: Int32

  /// The result of a call.
  enum Step: Equatable {
    /// This number of bytes, at least 1.
    case done(Int)
    /// Call again when there is something to read, or when something can be written.
    case moreIn, moreOut
    case gone
    /// The other side has another key.
    case unpinned
  }

  /// Takes the descriptor over. nil where memory is short.
  init?(_ side: TLSSide, _ descriptor: Int32) {
    // SAFETY: the side lives as long as this object.
    guard let connection = unsafe tls_line_new(side.side, descriptor) else { return nil }
    unsafe self.connection = connection
    (self.side, self.descriptor) = (side, descriptor)
  }

  deinit {
    // SAFETY: nobody else has it.
    unsafe tls_line_free(connection)
  }

  func handshake() -> Step {
    // SAFETY: as long as this object; so for the calls below.
    step(Int64(unsafe tls_handshake(connection)))
  }

  /// Into `room` from `start` on.
  func read(into room: Secret, from start: Int, upTo end: Int) -> Step {
    guard start >= 0, start < end, end <= room.count else { return .gone }
    // SAFETY: the range is inside.
    return step(
      unsafe room.withMutableBytes { bytes in
        guard let base = bytes.baseAddress else { return Int64(tls_gone) }
        return unsafe tls_read(connection, base + start, end - start)
      })
  }

  func write(_ frame: Secret, from start: Int) -> Step {
    guard start >= 0, start < frame.count else { return .gone }
    // SAFETY: the range is inside.
    return step(
      unsafe frame.withBytes { bytes in
        guard let base = bytes.baseAddress else { return Int64(tls_gone) }
        return unsafe tls_write(connection, base + start, bytes.count - start)
      })
  }

  private func step(_ result: Int64) -> Step {
    if result > 0 { return .done(Int(result)) }
    switch Int(result) {
    case tls_more_in: return .moreIn
    case tls_more_out: return .moreOut
    case tls_unpinned: return .unpinned
    case _: return .gone
    }
  }

  /// The number of bytes that the kernel has taken.
  var sent: UInt64 { unsafe tls_sent(connection) }

  /// Whether the peer is there, and has sent nothing that was not read.
  var isQuiet: Bool { unsafe tls_pending(connection) == 0 && tls_is_quiet(descriptor) == 1 }

  /// Whether the peer has closed its side, whatever it sent before.
  var hasLeft: Bool { tls_has_left(descriptor) == 1 }

  /// Of the other side's key, after the handshake.
  var peer: Pin? {
    var pin = [UInt8](repeating: 0, count: Pin.length)
    return unsafe tls_peer(connection, &pin) == 1 ? Pin(pin) : nil
  }

  /// Waits until the socket can be read, or written. false if it cannot by `deadline`, in
  /// nanoseconds of `CLOCK_MONOTONIC`.
  func wait(toWrite: Bool, until deadline: UInt64) -> Bool {
    var watched = [pollfd(fd: descriptor, events: Int16(toWrite ? POLLOUT : POLLIN), revents: 0)]
    return Waiting.poll(&watched, until: deadline) > 0
  }
}
