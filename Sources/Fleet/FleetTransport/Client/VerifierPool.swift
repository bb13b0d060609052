import CService
import CTLS
import Glibc
package import OneTimePassword
import SallyportSupport
import Synchronization

/// The verifiers of this host's fleet, over TLS 1.3. Any thread may ask.
///
/// A question goes over a connection that is kept, or over a new one: the verifiers are then tried
/// side by side, each 150 ms after the one before it or as soon as that has failed, and the first
/// whose handshake is done and who has said that it is there gets the question.
///
/// **What is sent once.** A kept connection on which anything has come, or that is closed, is
/// dropped and the question goes over another: nothing of it was sent. So is one where the first
/// write fails without the kernel having taken a byte. As soon as the kernel has taken one,
/// whatever happens is `.unknown`: the connection is closed, its verifier is put aside where it was
/// silent, and the question is not sent again. A verifier that ends on purpose says so beforehand,
/// and answers what was sent until then.
///
/// **What is asked elsewhere.** A verifier whose database is away says so, and that it has verified
/// and saved nothing: then the next one is asked, as its way to the database may be another. For a
/// while those that said so come last.
package final class VerifierPool: FleetVerifiers {
  /// Bytes of a question, and of an answer, at most.
  package static let longestBody = Frame.longest - 1
  /// In nanoseconds: until the next verifier is tried, until they are away, and for how long one
  /// that is silent is not tried.
  static let (stagger, untilAway, aside): (UInt64, UInt64, UInt64) =
    (150_000_000, 1_000_000_000, 10_000_000_000)
  /// For how long a verifier comes last whose database is away; and what must be left of the time
  /// to ask another one.
  static let (last, leastLeft): (UInt64, UInt64) = (2_000_000_000, 200_000_000)
  /// Who was silent for less is not put aside for all others: the caller may have let his time
  /// pass.
  private static let enough: UInt64 = 500_000_000
  /// Idle connections that are kept, and for how long without a question or a ping.
  static let (mostIdle, keptIdle): (Int, UInt64) = (16, 30_000_000_000)

  fileprivate struct State {
    var idle: [ClientConnection] = []
    /// Until when each verifier is not tried.
    var aside: [UInt64]
    /// Until when the database of each is taken to be away.
    var noDatabase: [UInt64]
    /// Which is tried first: the one that answered last.
    var first: Int
    var isClosed = false
    var hasKeeper = false
  }

  let verifiers: [VerifierAddress]
  let side: TLSSide?
  private let state: Locked<State>
  /// Readable when it was closed.
  private let ending: Int32
  /// How often the keeper has found nobody.
  private let missed = Atomic<Int>(0)

  /// Connects when something is asked. Hosts begin with a verifier by chance, so that none has them
  /// all.
  package init(_ file: FleetFile, _ identity: Identity) {
    verifiers = file.verifiers
    side = TLSSide(identity, pins: file.pins)
    let first = Int.random(in: 0..<max(1, file.verifiers.count))
    let never = file.verifiers.map { _ in UInt64(0) }
    state = Locked(State(aside: never, noDatabase: never, first: first))
    ending = service_counter()
  }

  deinit { if ending >= 0 { Glibc.close(ending) } }

  package func ask(_ kind: FrameKind, _ body: Secret, within milliseconds: UInt64)
    throws(TransportFault) -> VerifierAnswer
  {
    try ask(kind, within: milliseconds) { _ in body }
  }

  package func ask(_ kind: FrameKind, within milliseconds: UInt64, _ body: (UInt64) -> Secret?)
    throws(TransportFault) -> VerifierAnswer
  {
    let deadline = sys_monotonic() &+ min(milliseconds, 600_000) &* 1_000_000
    guard let nonce = Frame.newNonce() else { throw .away }
    func frame() -> Secret? {
      let now = sys_monotonic()
      let left = deadline > now ? (deadline - now) / 1_000_000 : 0
      return body(left).flatMap { Frame.make(nonce, kind.rawValue, $0) }
    }
    var asked: Set<Int> = []
    while true {
      let connection: ClientConnection
      do throws(TransportFault) {
        connection = try lineThatTook(frame, kind, besides: asked, until: deadline)
      } catch {
        // One at least has answered.
        if error == .away, !asked.isEmpty { return .databaseAway }
        throw error
      }
      let answer = try answer(on: connection, to: kind, nonce, until: deadline)
      guard answer == .databaseAway, kind.isAskedElsewhere else { return answer }
      asked.insert(connection.verifier)
      guard asked.count < verifiers.count, sys_monotonic() + Self.leastLeft < deadline else {
        return answer
      }
    }
  }

  /// The connection, of none of these verifiers, that the frame went by.
  private func lineThatTook(
    _ frame: () -> Secret?, _ kind: FrameKind, besides asked: Set<Int>, until deadline: UInt64
  ) throws(TransportFault) -> ClientConnection {
    while let connection = takeIdle(besides: asked) {
      if try sendOn(connection, frame, until: deadline) { return connection }
    }
    let end = min(deadline, sys_monotonic() + Self.untilAway)
    var tried = asked
    while true {
      let connection = try connect(until: end, besides: tried)
      if connection.isStranger, kind != .join { throw .revoked }
      if try sendOn(connection, frame, until: deadline) { return connection }
      tried.insert(connection.verifier)
    }
  }

  private func sendOn(
    _ connection: ClientConnection, _ frame: () -> Secret?, until deadline: UInt64
  )
    throws(TransportFault) -> Bool
  {
    guard let frame = frame() else { throw .away }
    let start = sys_monotonic()
    do throws(TransportFault) {
      return try connection.send(frame, until: deadline)
    } catch {
      putAside(connection.verifier, silentSince: start)
      throw error
    }
  }

  private func answer(
    on connection: ClientConnection, to kind: FrameKind, _ nonce: UInt64, until deadline: UInt64
  ) throws(TransportFault) -> VerifierAnswer {
    let (answer, isLast): (VerifierAnswer, Bool)
    let start = sys_monotonic()
    switch connection.receive(nonce, until: deadline) {
    case .answer(let found, let last): (answer, isLast) = (found, last)
    case .over:
      passOver(connection.verifier)
      throw .unknown
    case .silent:
      putAside(connection.verifier, silentSince: start)
      throw .unknown
    }
    if answer.kind == VerifierAnswer.unknownHost.kind { throw .revoked }
    let isOne =
      answer.answers(kind) || answer.kind == VerifierAnswer.databaseAway.kind
      || answer.kind == VerifierAnswer.notServed.kind
    guard isOne else {
      passOver(connection.verifier)
      throw .unknown
    }
    if !connection.isStranger {
      keep(connection, hasDatabase: answer != .databaseAway, isLast: isLast)
    }
    return answer
  }

  // MARK: connections that are kept

  /// One that is there, the one that was used last; of a verifier whose database is away only
  /// where there is no other verifier to connect to.
  private func takeIdle(besides asked: Set<Int>) -> ClientConnection? {
    while let connection = state.withLock({ $0.takeIdle(besides: asked, sys_monotonic()) }) {
      if connection.isUsable(sys_monotonic()) { return connection }
    }
    return nil
  }

  private func keep(_ connection: ClientConnection, hasDatabase: Bool, isLast: Bool) {
    let now = sys_monotonic()
    connection.used = now
    let surplus = state.withLock { state -> ClientConnection? in
      if hasDatabase { state.first = connection.verifier }
      state.noDatabase[connection.verifier] = hasDatabase ? 0 : now + Self.last
      state.aside[connection.verifier] = 0
      if state.isClosed || isLast { return connection }
      state.idle.append(connection)
      return state.idle.count > Self.mostIdle ? state.idle.removeFirst() : nil
    }
    withExtendedLifetime(surplus) {}
  }

  /// It was silent: its other connections are not asked either.
  private func putAside(_ verifier: Int, silentSince start: UInt64) {
    let now = sys_monotonic()
    if now - start >= Self.enough { passOver(verifier, until: now + Self.aside) }
  }

  /// It ended in the middle, or answered something else. It may be there again at once, so it is
  /// not put aside without `until`; but the next question goes to another one first.
  private func passOver(_ verifier: Int, until: UInt64 = 0) {
    let dropped = state.withLock { state in
      state.aside[verifier] = max(state.aside[verifier], until)
      if state.first == verifier { state.first = (verifier + 1) % state.aside.count }
      let dropped = state.idle.filter { $0.verifier == verifier }
      state.idle.removeAll { $0.verifier == verifier }
      return dropped
    }
    withExtendedLifetime(dropped) {}
  }

  /// Closes the connections that are kept, and keeps none from now on.
  package func close() {
    let dropped = state.withLock { state in
      state.isClosed = true
      defer { state.idle = [] }
      return state.idle
    }
    if ending >= 0 { service_count_up(ending, 1) }
    withExtendedLifetime(dropped) {}
  }

  // MARK: new connections

  /// `all`: those too that are put aside.
  private func connect(until deadline: UInt64, besides asked: Set<Int> = [], all: Bool = false)
    throws(TransportFault) -> ClientConnection
  {
    var pauses: [Int32] = [20, 60]
    while true {
      let (won, race) = try connectOnce(until: deadline, besides: asked, all: all)
      if let won { return won }
      if race.isUnpinned { throw .unpinned }
      guard race.wasDropped, race.silent.isEmpty, let pause = pauses.first else { throw .away }
      // The others may have been started again since they were found gone.
      pauses.removeFirst()
      _ = poll(nil, 0, pause)
    }
  }

  private func connectOnce(until deadline: UInt64, besides asked: Set<Int>, all: Bool)
    throws(TransportFault) -> (ClientConnection?, ConnectRace)
  {
    guard let side else { throw .away }
    let now = sys_monotonic()
    let (order, late) = state.withLock { state in
      (
        state.order(besides: asked, now, all: all),
        state.aside.indices.filter { state.aside[$0] > now }
      )
    }
    var race = ConnectRace(side, verifiers, order, late: Set(late))
    let won = race.run(until: deadline)
    for verifier in race.silent { putAside(verifier, silentSince: now) }
    return (won, race)
  }

  // MARK: the keeper

  /// Starts a thread that looks after the connections every two seconds until `close`: pings what
  /// is idle, connects where nothing is, and says when the fleet can be asked again after it could
  /// not. That `reconnected` is called on this thread. false where there is a keeper, or no thread.
  @discardableResult
  package func startKeeper(reconnected: @escaping @Sendable () -> Void = {}) -> Bool {
    let isFirst = state.withLock { state in
      defer { state.hasKeeper = true }
      return !state.hasKeeper && !state.isClosed
    }
    guard isFirst, ending >= 0 else { return false }
    return Threads.start { self.tend(reconnected) } == 0
  }

  @inline(never) private func tend(_ reconnected: @Sendable () -> Void) {
    var wasThere = true
    while true {
      var watched = [pollfd(fd: ending, events: Int16(POLLIN), revents: 0)]
      if Waiting.poll(&watched, until: sys_monotonic() + 2_000_000_000) != 0 { return }
      let isThere = look()
      if !isThere { missed.add(1, ordering: .relaxed) }
      if isThere, !wasThere { reconnected() }
      wasThere = isThere
    }
  }

  var misses: Int { missed.load(ordering: .relaxed) }

  /// Whether a verifier answers: over each idle connection that was not used just now, else over a
  /// new one.
  func look() -> Bool {
    let now = sys_monotonic()
    let (old, hasYoung) = state.withLock { state in
      let old = state.idle.filter { now &- $0.used >= 1_000_000_000 }
      state.idle.removeAll { now &- $0.used >= 1_000_000_000 }
      return (old, state.idle.contains { state.noDatabase[$0.verifier] <= now })
    }
    var isThere = hasYoung
    var silent: Set<Int> = []
    for connection in old.reversed()
    where connection.isUsable(now) && !silent.contains(connection.verifier) {
      if ping(connection) { isThere = true } else { silent.insert(connection.verifier) }
    }
    return isThere || lookAnew()
  }

  /// Over new connections, until one of the verifiers can be asked.
  private func lookAnew() -> Bool {
    var asked: Set<Int> = []
    while asked.count < verifiers.count {
      do throws(TransportFault) {
        let end = sys_monotonic() + Self.untilAway
        let connection = try connect(until: end, besides: asked, all: true)
        if connection.isStranger { return false }
        if ping(connection) { return true }
        asked.insert(connection.verifier)
      } catch {
        return false
      }
    }
    return false
  }

  private func ping(_ connection: ClientConnection) -> Bool {
    let deadline = sys_monotonic() + Self.untilAway
    guard let nonce = Frame.newNonce(), let body = Secret(count: 0),
      let frame = Frame.make(nonce, FrameKind.ping.rawValue, body)
    else { return false }
    do throws(TransportFault) {
      guard try sendOn(connection, { frame }, until: deadline) else { return false }
      let answer = try answer(on: connection, to: .ping, nonce, until: deadline)
      return answer.answers(.ping)
    } catch {
      return false
    }
  }
}

extension VerifierPool.State {
  fileprivate mutating func takeIdle(besides asked: Set<Int>, _ now: UInt64) -> ClientConnection? {
    let mayConnect = order(besides: asked, now).contains { noDatabase[$0] <= now }
    let index = idle.lastIndex {
      !asked.contains($0.verifier) && (!mayConnect || noDatabase[$0.verifier] <= now)
    }
    return index.map { idle.remove(at: $0) }
  }

  /// Which verifiers are tried, one after the other: those that are put aside last, and only where
  /// there is another one, which may be gone.
  fileprivate func order(besides asked: Set<Int>, _ now: UInt64, all: Bool = false) -> [Int] {
    let order = aside.indices.map { (first + $0) % aside.count }.filter { !asked.contains($0) }
    let here = order.filter { aside[$0] <= now }
    if here.isEmpty { return all ? order : [] }
    return here.filter { noDatabase[$0] <= now } + here.filter { noDatabase[$0] > now }
      + order.filter { aside[$0] > now }
  }
}

extension FrameKind {
  /// Whether another verifier may be asked where one says that its database is away.
  fileprivate var isAskedElsewhere: Bool {
    switch self {
    case .question, .reserve, .ping, .status: true
    case .join, .management: false
    }
  }
}
