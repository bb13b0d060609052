import CService
import CTLS
import Glibc
import OneTimePassword

/// Verifiers tried side by side: the first that says it is there wins. All by the caller's thread.
struct ConnectRace {
  /// One that is being tried.
  private final class Runner {
    let verifier: Int
    let connection: TLSConnection
    let reader = FrameReader(longest: 64)
    var isGreeted = false
    var waitsToWrite = true

    init(_ verifier: Int, _ connection: TLSConnection) {
      (self.verifier, self.connection) = (verifier, connection)
    }
  }

  private let side: TLSSide
  private let verifiers: [VerifierAddress]
  private let seal: HostSeal?
  /// Those that were not tried yet.
  private var order: [Int]
  /// Those that others get more time before.
  private let late: Set<Int>
  private var runners: [Runner] = []
  private var nextStart: UInt64 = 0
  /// Whether somebody with another key was there.
  private(set) var isUnpinned = false
  /// Whether somebody took a connection and closed it, as who is about to end does.
  private(set) var wasDropped = false
  /// Those that did not get done, and did not fail, in all the time there was.
  private(set) var silent: [Int] = []

  /// `late`: of `order`, those that were silent lately. One of them greets as fast as ever, and
  /// must not win against another whose handshake takes a little longer than usual.
  init(
    _ side: TLSSide, _ verifiers: [VerifierAddress], _ order: [Int], late: Set<Int>,
    seal: HostSeal?
  ) {
    (self.side, self.verifiers, self.order, self.late) = (side, verifiers, order, late)
    self.seal = seal
  }

  /// nil where none is there by `deadline`.
  mutating func run(until deadline: UInt64) -> ClientConnection? {
    while sys_monotonic() < deadline {
      start()
      if runners.isEmpty, order.isEmpty { return nil }
      if runners.isEmpty { continue }
      if let won = step(until: order.isEmpty ? deadline : min(deadline, nextStart)) { return won }
    }
    silent = runners.map(\.verifier)
    return nil
  }

  /// The next one, where its time has come or no other is running.
  private mutating func start() {
    guard let verifier = order.first, runners.isEmpty || sys_monotonic() >= nextStart else {
      return
    }
    order.removeFirst()
    // Behind another one that is late nothing is gained by it.
    let isLate = order.first.map { late.contains($0) && !late.contains(verifier) } ?? false
    nextStart = sys_monotonic() + VerifierPool.stagger * (isLate ? 4 : 1)
    let address = verifiers[verifier]
    // SAFETY: as many bytes as are said.
    let made = unsafe tls_connect(address.bytes, Int32(address.bytes.count), address.port)
    if made >= 0, let connection = TLSConnection(side, made) {
      runners.append(Runner(verifier, connection))
    }
  }

  private mutating func step(until time: UInt64) -> ClientConnection? {
    var watched = runners.map {
      pollfd(
        fd: $0.connection.descriptor, events: Int16($0.waitsToWrite ? POLLOUT : POLLIN), revents: 0)
    }
    guard Waiting.poll(&watched, until: time) > 0 else { return nil }
    for (runner, seen) in zip(runners, watched) where seen.revents != 0 {
      if let won = advance(runner) { return won }
    }
    return nil
  }

  private mutating func advance(_ runner: Runner) -> ClientConnection? {
    if !runner.isGreeted {
      switch runner.connection.handshake() {
      case .done:
        runner.isGreeted = true
        runner.waitsToWrite = false
      case .moreIn: runner.waitsToWrite = false
      case .moreOut: runner.waitsToWrite = true
      case .gone:
        // Refused, if nothing could be sent.
        if !runner.waitsToWrite { wasDropped = true }
        drop(runner)
      case .unpinned:
        isUnpinned = true
        drop(runner)
      }
      if !runner.isGreeted { return nil }
    }
    switch runner.reader.advance(runner.connection) {
    case .more(let toWrite, _): runner.waitsToWrite = toWrite
    case .over, .unpinned:
      wasDropped = true
      drop(runner)
    case .whole(let nonce, let kind, let body):
      guard nonce == 0, let greeting = Greeting(kind: kind, body.bytes(in: 0..<body.count)) else {
        drop(runner)
        return nil
      }
      return ClientConnection(
        runner.connection, FrameReader(), verifier: runner.verifier, greeting, seal: seal)
    }
    return nil
  }

  private mutating func drop(_ runner: Runner) { runners.removeAll { $0 === runner } }
}
