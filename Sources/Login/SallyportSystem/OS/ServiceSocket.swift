internal import CSystem
package import OneTimePassword
internal import SallyportCore

/// A connection to the service of this machine, for one packet and its answer; closed with the last
/// reference.
///
/// The real uid of a set-uid host is left as it is, since the service goes by the real uid of
/// the sender; so a user who started su may stop, starve or limit it here, and only his own login
/// ends.
package final class ServiceSocket {
  private let descriptor: Int32
  private let path: Path
  /// In the nanoseconds of sys_monotonic.
  private var end: UInt64
  /// Milliseconds that were left when the service began; nil before.
  private var spare: UInt64?
  /// Whether it closed the connection without an answer after it had read the packet.
  package private(set) var wasRead = false
  /// Nanoseconds that are waited for the answer once the service has begun, however little time was
  /// left: what it saves is on its way to the disk, as in a login that writes the files itself.
  private static var patience: UInt64 { 30_000_000_000 }

  /// Connects to the service that listens at `path`: all until the answer, or until the service
  /// begins, may take `timeLeft` milliseconds, at most a minute.
  ///
  /// Throws `absent` where connect() finds no socket, or one on which nobody listens, and for
  /// nothing else. The caller of a login can bring about much of what else can go wrong, and must
  /// not choose by it what verifies his code.
  package init(to path: String, timeLeft: UInt64) throws(StoreTrouble) {
    let path = Path(path)
    descriptor = try check(sys_socket(), "socket", path)
    (self.path, end) = (path, sys_monotonic() &+ min(timeLeft, 60_000) &* 1_000_000)
    try connect()
  }

  /// Whether somebody listens there, or it cannot be known.
  package static func isThere(_ path: String) -> Bool {
    do throws(StoreTrouble) {
      _ = try ServiceSocket(to: path, timeLeft: 1000)
    } catch {
      if case .service(_, .absent) = error { return false }
    }
    return true
  }

  /// Asks it, once. nil: it closed the connection. Where it had not read the packet, nothing has
  /// been done, and another connection may carry the same; so may it where it reads packets whose
  /// senders wait, and had not begun.
  ///
  /// Throws `unknown` for whatever keeps the answer away once it has begun.
  package func ask(_ request: Secret) throws(StoreTrouble) -> [UInt8]? {
    try checkListener()
    guard try isSent(request), let answer = try packet() else { return nil }
    guard ServiceAnswer.isBegun(answer) else { return answer }
    (spare, end) = (timeLeft, sys_monotonic() &+ Self.patience)
    guard let answer = try packet() else { throw fault(.unknown) }
    return answer
  }

  /// Milliseconds that are left of its time. What it takes after it has begun is not of it.
  package var timeLeft: UInt64 {
    if let spare { return spare }
    let now = sys_monotonic()
    return now < end ? (end &- now) / 1_000_000 : 0
  }

  /// From now on it takes no longer than that.
  package func limit(to milliseconds: UInt64) {
    end = min(end, sys_monotonic() &+ min(milliseconds, 60_000) &* 1_000_000)
  }

  deinit { sys_close(descriptor) }

  private func connect() throws(StoreTrouble) {
    let soon = min(end, sys_monotonic() &+ 1_000_000_000)
    let result = bounded(SO_SNDTIMEO, until: soon) {
      // SAFETY: the C string lives for the call.
      Int64(unsafe sys_connect(descriptor, path.cString))
    }
    switch Int32(clamping: 0 - result) {
    case 0: return
    case ENOENT, ECONNREFUSED:
      try checkKind()
      throw fault(.absent)
    case EAGAIN: throw fault(.busy)
    case let number: throw path.trouble("connect", number)
    }
  }

  /// For connect(), a file is a socket that nobody listens on, and a dangling link is nothing.
  private func checkKind() throws(StoreTrouble) {
    guard let facts = try found(path, in: AT_FDCWD, path) else { return }
    if facts.kind != sys_socket_kind { throw fault(.notASocket) }
  }

  private func checkListener() throws(StoreTrouble) {
    var user = UInt32.max
    // SAFETY: filled within the call.
    try check(unsafe sys_listener(descriptor, &user), "getsockopt", path)
    if user != 0 { throw fault(.notRoot(user)) }
  }

  private func isSent(_ request: Secret) throws(StoreTrouble) -> Bool {
    let result = bounded(SO_SNDTIMEO, until: end) {
      // SAFETY: the bytes live for the call.
      unsafe request.withBytes { unsafe sys_send(descriptor, $0.baseAddress, $0.count) }
    }
    return try known(result, "send") != nil
  }

  private func packet() throws(StoreTrouble) -> [UInt8]? {
    let size = bounded(SO_RCVTIMEO, until: end) { sys_packet_size(descriptor) }
    wasRead = size == 0
    guard !wasRead, let size = try known(size, "recv") else { return nil }
    return try answer(of: size)
  }

  private func answer(of size: Int64) throws(StoreTrouble) -> [UInt8] {
    guard let count = Int(exactly: size), count <= 65_536 else { throw fault(.garbage) }
    var answer = [UInt8](repeating: 0, count: count)
    // SAFETY: the buffer has `count` bytes.
    let done = unsafe sys_receive(descriptor, &answer, count)
    if done != size { throw fault(.garbage) }
    return answer
  }

  /// nil where the packet was not read. A send to a peer that has closed is EPIPE. A peer that
  /// closes, or dies, with a packet that it has not taken leaves ECONNRESET to the sender, and the
  /// end to one whose packet it took.
  private func known(_ result: Int64, _ call: StaticString) throws(StoreTrouble) -> Int64? {
    switch Int32(clamping: 0 - result) {
    case EPIPE, ECONNRESET: return nil
    case EAGAIN: throw fault(spare == nil ? .silent : .unknown)
    case _:
      try check(result, call, path)
      return result
    }
  }

  /// Makes the call again when a signal interrupts it, each time for no more than what is left;
  /// -EAGAIN where that is nothing.
  private func bounded(_ direction: Int32, until end: UInt64, _ call: () -> Int64) -> Int64 {
    while true {
      let now = sys_monotonic()
      guard now < end else { return -Int64(EAGAIN) }
      let result = sys_set_time(descriptor, direction, Int64((end - now) / 1000 + 1))
      if result < 0 { return Int64(result) }
      let done = call()
      if done != -Int64(EINTR) { return done }
    }
  }

  @inline(never) private func fault(_ fault: StoreTrouble.ServiceFault) -> StoreTrouble {
    .service(path: path.text, fault)
  }
}
