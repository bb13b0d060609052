import CService
import Glibc
import SallyportSupport
import Synchronization

/// One socket of the service: a thread that accepts connections and holds them until their packet
/// is there, and threads that answer packets. Nothing is shared with the other socket, so that
/// a user who fills this one takes nothing from that.
///
/// Until a packet is there, a connection is nobody's: each su connects with the effective uid 0,
/// the user who started it, and its real uid comes with the packet. So connections without a packet
/// take no worker and spend no user's share. They have a bound and a second of time of their own,
/// and where they are too many, the one goes that has waited longest among those of the user who
/// has most. A user who stops his su processes before their packets cannot close the root socket by
/// that: they go first, and a client that is not stopped sends its packet some microseconds after
/// it connects. To drive out one such client he would have to start, between these two steps of it,
/// as many su as there is room for connections; and on the public socket he only drives out his
/// own.
final class SocketServer: Sendable {
  let socket: Peer.Socket
  private let listener: Listener
  private let limits: Limits
  private let shares: Shares
  private let handler: Handler
  private let queue: Locked<PacketQueue>
  /// Workers sleep on it: raised once for each packet.
  private let packets: Int32
  /// Readable when the end has been asked for.
  private let ending: Int32
  private let threads = Atomic<Int>(0)
  private let refusedPeers = RareLine()
  private let accepting = RareLine()

  init(
    _ listener: Listener, of socket: Peer.Socket, within limits: Limits, _ shares: Shares,
    _ handler: @escaping Handler
  ) throws(ServiceError) {
    (self.listener, self.socket, self.limits, self.handler) = (listener, socket, limits, handler)
    self.shares = shares
    queue = Locked(PacketQueue(limits, shares))
    packets = try ServiceError.check(service_counter(), "eventfd")
    ending = try ServiceError.check(service_counter(), "eventfd")
  }

  deinit {
    close(packets)
    close(ending)
  }

  /// Starts its threads. They end after `end`.
  func open() throws(ServiceError) {
    for _ in 0..<limits.workers { try start { $0.work() } }
    try start { $0.watch() }
  }

  /// Accepts no more connections; packets that came before are still answered.
  func end() { service_count_up(ending, 1) }

  /// Whether a caller waits for an answer that was begun, however long it takes.
  var hasBegun: Bool { queue.withLock { $0.hasBegun } }

  /// Whether all its threads have ended.
  var isAtRest: Bool { threads.load(ordering: .acquiring) == 0 }

  // MARK: threads

  private func start(_ body: @escaping @Sendable (SocketServer) -> Void) throws(ServiceError) {
    threads.add(1, ordering: .acquiringAndReleasing)
    do throws(ServiceError) {
      try startThread {
        body(self)
        self.threads.subtract(1, ordering: .acquiringAndReleasing)
      }
    } catch {
      threads.subtract(1, ordering: .acquiringAndReleasing)
      throw error
    }
  }

  private func work() {
    while true {
      let (job, isOver) = queue.withLock { queue in
        (queue.next(), queue.isClosed && queue.isEmpty)
      }
      if let job {
        answer(job)
        queue.withLock { $0.finish(job) }
      } else if isOver {
        // The next one that sleeps.
        service_count_up(packets, 1)
        return
      } else {
        service_count_down(packets)
      }
    }
  }

  /// Nothing is done for a peer that has given up.
  private func answer(_ job: Job) {
    let waited = sys_monotonic() - job.peer.arrived
    guard waited < limits.untilWork, job.connection.isThere, hasAccount(job.peer) else {
      return job.connection.refuse()
    }
    job.connection.answer(handler(job.peer, job.request, job.connection))
  }

  /// A worker looks the account up, because name services may be slow.
  private func hasAccount(_ peer: Peer) -> Bool {
    switch peer.socket {
    case .root: return true
    case .everybody:
      let user = peer.effectiveUser
      if user == 0 { return true }
      let wasFound = shares.isFound(user)
      let isFound = shares.hasAccount(user) == 1
      // Sleeping workers may now take its packets, and those of strangers.
      if isFound, !wasFound { service_count_up(packets, UInt64(limits.workers)) }
      return isFound
    }
  }

  // MARK: connections

  private func watch() {
    var waiting: [Connection] = []
    var isEnding = false
    while !(isEnding && waiting.isEmpty) {
      let isAsked = sleep(until: waiting.first?.accepted, waiting, isEnding)
      waiting = stillWaiting(waiting)
      if isAsked.listener, !isEnding { _ = accept(&waiting) }
      if isAsked.end, !isEnding {
        isEnding = true
        listener.remove()
        // Callers who connected before its removal are answered.
        while listener.isOurs, accept(&waiting) {}
      }
    }
    queue.withLock { $0.isClosed = true }
    service_count_up(packets, 1)
  }

  private func sleep(until first: UInt64?, _ waiting: [Connection], _ isEnding: Bool)
    -> (listener: Bool, end: Bool)
  {
    var watched = waiting.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
    // After the end was requested, it is not checked any more.
    watched.append(pollfd(fd: isEnding ? -1 : ending, events: Int16(POLLIN), revents: 0))
    watched.append(
      pollfd(fd: isEnding ? -1 : listener.descriptor, events: Int16(POLLIN), revents: 0))
    // SAFETY: as many as are said.
    let count = unsafe poll(&watched, nfds_t(watched.count), patience(since: first))
    if count < 0 { return (false, false) }
    return (watched[watched.count - 1].revents != 0, watched[watched.count - 2].revents != 0)
  }

  /// Milliseconds until the first connection has had its time; -1 for ever.
  private func patience(since first: UInt64?) -> Int32 {
    guard let first else { return -1 }
    let (end, now) = (first + limits.untilPacket, sys_monotonic())
    return now < end ? Int32(clamping: (end - now) / 1_000_000 + 1) : 0
  }

  /// Passes the packets on that have come, and leaves out those that are refused or too late.
  private func stillWaiting(_ waiting: [Connection]) -> [Connection] {
    let now = sys_monotonic()
    return waiting.filter { isStillWaiting($0) && now < $0.accepted + limits.untilPacket }
  }

  private func isStillWaiting(_ connection: Connection) -> Bool {
    switch connection.receive() {
    case .notYet: return true
    case .refused: return false
    case .job(let job):
      let pushedOut = queue.withLock { $0.add(job) }
      service_count_up(packets, 1)
      if let pushedOut {
        pushedOut.connection.refuse()
        accepting.write("more packets than can wait")
      }
      return false
    }
  }

  /// Accepts what is there, but not for ever: waiting packets get their turn. Returns whether there
  /// may be more.
  private func accept(_ waiting: inout [Connection]) -> Bool {
    for _ in 0..<64 {
      do throws(Connection.Refusal) {
        let connection = try Connection.accept(from: listener.descriptor, of: socket)
        guard isStillWaiting(connection) else { continue }
        waiting.append(connection)
        if waiting.count > limits.connections { makeRoom(&waiting) }
      } catch {
        switch error {
        case .none: return false
        case .peer(let user): refusedPeers.write("connection of uid \(user) refused")
        case .failed(let number):
          accepting.write("accept: \(errnoDescription(number))")
          // It still waits, and there is no other to close for it: try again a little later.
          if waiting.isEmpty { _ = poll(nil, 0, 100) } else { makeRoom(&waiting) }
          return false
        }
      }
    }
    return true
  }

  /// Closes one, unless its packet has come meanwhile.
  private func makeRoom(_ waiting: inout [Connection]) {
    let crowd = waiting.map { shares.share(of: $0.effectiveUser) }
    guard let index = crowdedOut(of: crowd) else { return }
    _ = isStillWaiting(waiting.remove(at: index))
  }
}
