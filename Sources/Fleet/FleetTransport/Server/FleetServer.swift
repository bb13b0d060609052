import CService
import CTLS
import Glibc
package import OneTimePassword
package import SallyportSupport
import Synchronization

/// Answers the frames of hosts, over TLS 1.3.
///
/// An idle connection has no thread. One thread accepts, one watches the time limits, a few do
/// handshakes, a few answer frames, and none of them waits for a peer, except while it takes an
/// answer. So silent strangers delay nobody. Any Ed25519 key may connect; `standing` says after the
/// handshake whether it is a host's. A peer that sends more than one question before its answer, or
/// has left by then, is not answered, and nothing is verified for it.
package final class FleetServer: Sendable {
  /// What a frame asks.
  package struct Request: Sendable {
    fileprivate let queueKey: FairQueue.QueueKey?
    package let answer: @Sendable () -> VerifierAnswer

    /// `line`: nil for one that waits for nobody. `answer` is called when it is the request's turn.
    package init(in line: Line? = nil, _ answer: @escaping @Sendable () -> VerifierAnswer) {
      queueKey = line?.queueKey
      self.answer = answer
    }
  }

  /// Of requests in one line a few are answered at a time.
  package enum Line: Sendable {
    /// About the user with this name.
    case user([UInt8])
    /// Of hosts about their reserves.
    case reserves

    fileprivate var queueKey: FairQueue.QueueKey {
      switch self {
      case .user(let name):
        var hasher = Hasher()
        hasher.combine(name)
        return .user(UInt64(bitPattern: Int64(hasher.finalize())))
      case .reserves: return .reserves
      }
    }
  }

  /// Reads a frame of the peer with this key, which came at `arrived` by `CLOCK_MONOTONIC`, in
  /// nanoseconds. Called by several threads at once, as are the answers.
  package typealias Handler =
    @Sendable (Pin, FrameKind, Secret, _ arrived: UInt64) -> Request
  /// Whether this key is a host's of the fleet. Others may only join.
  package typealias Recognizer = @Sendable (Pin) -> HostStanding

  private let listener: Int32
  private let side: TLSSide
  private let limits: ConnectionLimits
  private let standing: Recognizer
  private let seals: (any HostSeals)?
  private let handler: Handler
  private let greeting: Int32
  private let frames: Int32
  /// Readable when the end has been asked for.
  private let ending: Int32
  private let table: Locked<ConnectionTable>
  private let threads = Atomic<Int>(0)
  /// Where it listens.
  package let address: VerifierAddress

  /// `seals`: nil: nothing is sealed.
  package init(
    on address: VerifierAddress, identity: Identity, limits: ConnectionLimits = ConnectionLimits(),
    seals: (any HostSeals)? = nil, standing: @escaping Recognizer, handler: @escaping Handler
  ) throws(ServiceError) {
    guard let side = TLSSide(identity, pins: nil) else { throw .noTLS }
    // SAFETY: as many bytes as are said.
    let listener = try ServiceError.check(
      unsafe tls_listen(address.bytes, Int32(address.bytes.count), address.port), "listen",
      address.text)
    let made = [tls_epoll(), tls_epoll(), service_counter()]
    if let failed = made.first(where: { $0 < 0 }) {
      for one in made + [listener] where one >= 0 { close(one) }
      try ServiceError.check(failed, "epoll")
    }
    (greeting, frames, ending) = (made[0], made[1], made[2])
    (self.side, self.listener, self.limits) = (side, listener, limits)
    (self.standing, self.seals, self.handler) = (standing, seals, handler)
    let port = UInt16(clamping: tls_port(listener))
    self.address = VerifierAddress(bytes: address.bytes, port: port)
    table = Locked(ConnectionTable(limits, greeting: greeting, frames: frames))
    try open()
  }

  deinit { for one in [listener, greeting, frames, ending] { close(one) } }

  private func open() throws(ServiceError) {
    for epoll in [greeting, frames] {
      let what = Int32(tls_in | tls_always)
      try ServiceError.check(
        tls_watch(epoll, ending, ConnectionTable.endTag, what, 1), "epoll_ctl")
    }
    do throws(ServiceError) {
      for _ in 0..<limits.workers { try start { $0.work() } }
      for _ in 0..<limits.greeters { try start { $0.greet() } }
      try start { $0.accept() }
      try start { $0.lookAfterTime() }
    } catch {
      stop()
      throw error
    }
  }

  private func start(_ body: @escaping @Sendable (FleetServer) -> Void) throws(ServiceError) {
    threads.add(1, ordering: .acquiringAndReleasing)
    let result = Threads.start {
      body(self)
      self.threads.subtract(1, ordering: .acquiringAndReleasing)
    }
    if result < 0 { threads.subtract(1, ordering: .acquiringAndReleasing) }
    try ServiceError.check(result, "pthread_create")
  }

  /// Accepts nothing more, tells hosts to ask another verifier, and answers what they had sent
  /// until then, for at most this many nanoseconds; then all connections are closed. false where it
  /// is not done by then.
  @discardableResult
  package func stop(within time: UInt64 = 5_000_000_000) -> Bool {
    let start = sys_monotonic()
    // A host that connects from now on is refused at once, and asks another verifier.
    _ = shutdown(listener, Int32(SHUT_RDWR))
    repeat {
      tell(table.withLock { $0.leave(now: sys_monotonic()) })
      _ = poll(nil, 0, 2)
    } while connections > 0 && sys_monotonic() - start < min(time, Self.untilLeft)
    service_count_up(ending, 1)
    while threads.load(ordering: .acquiring) > 0 {
      if sys_monotonic() - start > time { return false }
      _ = poll(nil, 0, 2)
    }
    _ = table.withLock { $0.forgetAll() }
    return true
  }

  private func tell(_ leave: ConnectionTable.Leave) {
    for connection in leave.toTell {
      let isSent = connection.send(0, .leaving, until: sys_monotonic())
      _ = table.withLock { table in
        isSent ? table.release(connection.id, now: sys_monotonic()) : table.forget(connection.id)
      }
    }
  }

  /// In nanoseconds: until hosts have been told, and what they had sent is answered.
  private static let untilLeft: UInt64 = 4_000_000_000

  /// How many connections there are.
  package var connections: Int { table.withLock { $0.count } }

  // MARK: accepting

  @inline(never) private func accept() {
    while true {
      var watched = [
        pollfd(fd: listener, events: Int16(POLLIN), revents: 0),
        pollfd(fd: ending, events: Int16(POLLIN), revents: 0),
      ]
      _ = Waiting.poll(&watched, until: sys_monotonic() + limits.round)
      if watched[1].revents != 0 { return }
      if watched[0].revents != 0 { takeConnections() }
    }
  }

  /// Not for ever: those that are there have their turn.
  private func takeConnections() {
    for _ in 0..<64 {
      var source: UInt64 = 0
      // SAFETY: filled within the call.
      let made = unsafe tls_accept(listener, &source)
      if made == -EAGAIN { return }
      if [-EINVAL, -EMFILE, -ENFILE, -ENOBUFS, -ENOMEM].contains(made) {
        // It still waits, or this is the end: look again a little later.
        _ = poll(nil, 0, 20)
        return
      }
      if made >= 0 { take(made, from: source) }
    }
  }

  private func take(_ made: Int32, from source: UInt64) {
    // Before it costs more than a descriptor.
    guard table.withLock({ $0.makeRoom(forOneFrom: source, now: sys_monotonic()) }) != nil else {
      close(made)
      return
    }
    guard let connection = TLSConnection(side, made) else { return }
    let new = ServerConnection(connection, from: source)
    _ = table.withLock { $0.add(new, now: sys_monotonic()) }
  }

  @inline(never) private func lookAfterTime() {
    while true {
      var watched = [pollfd(fd: ending, events: Int16(POLLIN), revents: 0)]
      if Waiting.poll(&watched, until: sys_monotonic() + limits.round) > 0 { return }
      sweep()
    }
  }

  /// On a thread of its own, since who is known may have to be looked up.
  private func sweep() {
    let pins = table.withLock { $0.pins }
    let others = Set(pins.filter { standing($0) != .member })
    tell(table.withLock { $0.sweep(others, now: sys_monotonic()) })
  }

  // MARK: handshakes

  @inline(never) private func greet() {
    var tag: UInt64 = 0
    while true {
      // SAFETY: filled within the call.
      let count = unsafe tls_wait(greeting, -1, &tag)
      if count < 1 { continue }
      if tag == ConnectionTable.endTag { return }
      if let connection = table.withLock({ $0.claim(tag) }) { greetFor(connection) }
    }
  }

  /// And others of its machine that waited.
  private func greetFor(_ first: ServerConnection) {
    guard table.withLock({ $0.beginGreeting(first) }) else { return }
    greet(first)
    while let next = table.withLock({ $0.next(of: .source(first.source)) }) { greet(next) }
  }

  private func greet(_ connection: ServerConnection) {
    let isWanted = table.withLock { $0.isWanted(connection.id, now: sys_monotonic()) }
    switch isWanted && !connection.hasLeft ? connection.handshake() : .over {
    case .more(let toWrite):
      _ = table.withLock {
        $0.release(connection.id, toWrite: toWrite, now: sys_monotonic())
      }
    case .over: _ = table.withLock { $0.forget(connection.id) }
    case .done(let pin):
      // A host that is not greeted asks nothing here, and asks another verifier.
      guard table.withLock({ $0.hasRoom(for: pin) }) else {
        _ = table.withLock { $0.forget(connection.id) }
        return
      }
      let standing = standing(pin)
      let isSent = connection.greet(standing, by: seals)
      _ = table.withLock { table in
        isSent
          ? table.greet(
            connection.id, pin, isKnown: standing == .member, now: sys_monotonic())
          : table.forget(connection.id)
      }
    }
  }

  // MARK: frames

  @inline(never) private func work() {
    var tag: UInt64 = 0
    while true {
      // SAFETY: filled within the call.
      let count = unsafe tls_wait(frames, -1, &tag)
      if count < 1 { continue }
      if tag == ConnectionTable.endTag { return }
      if let connection = table.withLock({ $0.claim(tag) }) { workFor(connection) }
    }
  }

  /// And for others of its key that waited.
  private func workFor(_ first: ServerConnection) {
    guard let pin = first.pin, let queueKey = table.withLock({ $0.begin(first.id) }) else { return }
    serve(first, pin)
    while let next = table.withLock({ $0.next(of: queueKey) }) {
      if let pin = next.pin { serve(next, pin) }
    }
  }

  private func serve(_ connection: ServerConnection, _ pin: Pin) {
    let now = sys_monotonic()
    switch connection.read() {
    case .more(let toWrite, let isBegun):
      _ = table.withLock {
        $0.release(connection.id, toWrite: toWrite, begun: isBegun, now: now)
      }
    case .over, .unpinned: _ = table.withLock { $0.forget(connection.id) }
    case .whole(let nonce, let kind, let body):
      connection.nonce = nonce
      let request = connection.opened(kind, body, now: now)
        .map { self.request(pin, $0.kind, $0.body, arrived: now) }
      serve(request ?? Request { .databaseAway }, of: connection)
    }
  }

  private func request(_ pin: Pin, _ kind: UInt8, _ body: Secret, arrived: UInt64) -> Request {
    FrameKind(rawValue: kind).map { handler(pin, $0, body, arrived) } ?? Request { .notServed }
  }

  /// And others in the same line that waited.
  private func serve(_ request: Request, of connection: ServerConnection) {
    guard let queueKey = request.queueKey else { return finish(request, of: connection) }
    let isFirst = table.withLock { $0.begin(request, of: queueKey, on: connection.id) }
    guard isFirst else { return }
    finish(request, of: connection)
    while let (next, other) = table.withLock({ $0.nextRequest(of: queueKey) }) {
      finish(other, of: next)
    }
  }

  private func finish(_ request: Request, of connection: ServerConnection) {
    let isAnswered = answer(request, of: connection)
    _ = table.withLock { table in
      isAnswered
        ? table.release(connection.id, now: sys_monotonic()) : table.forget(connection.id)
    }
  }

  private func answer(_ request: Request, of connection: ServerConnection) -> Bool {
    guard connection.awaitsAnswer else { return false }
    let answer = request.answer()
    // A host asks once it has the answer before, so that the kernel holds nothing more, and takes
    // the longest one. Who does not take it must not have a worker, and others in his line, wait.
    return connection.send(connection.nonce, answer, until: sys_monotonic())
  }
}
