import CService
import CTLS
import Glibc
package import OneTimePassword
import SallyportSupport
import Synchronization

/// The verifiers of this host's fleet, over TLS 1.3. Any thread may ask.
///
/// A question goes over a kept connection, or over a new one: then the pool tries the verifiers in
/// parallel, each 150 ms after the one before it or as soon as that has failed, and the first that
/// has finished the handshake and greeted gets the question.
///
/// **A question is sent once.** If anything has arrived on a kept connection, or it is closed, the
/// pool drops it and uses another: no part of the question was sent. The same applies if the first
/// write fails before the kernel has taken a byte. After the kernel has taken one, every failure is
/// `.unknown`: the pool closes the connection, puts the verifier aside if it was silent, and does
/// not send the question again. A verifier that stops on purpose says so before, and answers what
/// was sent until then.
///
/// **When another verifier is asked.** A verifier whose database is away says so, and that it has
/// verified and saved nothing: then the pool asks the next one, which may still reach the database.
/// So it does where a verifier does not know this host's key: its database may not be the fleet's.
/// For a while it asks those that said so last.
package final class VerifierPool: FleetVerifiers {
  /// Bytes of a question, and of an answer, at most.
  package static let longestBody = Frame.longest - 1
  /// In nanoseconds: until the next verifier is tried, until they count as away, and for how long a
  /// silent one is not tried.
  static let (stagger, untilAway, aside): (UInt64, UInt64, UInt64) =
    (150_000_000, 1_000_000_000, 10_000_000_000)
  /// How long a verifier without its database comes last; and the time needed to ask another one.
  static let (last, leastLeft): (UInt64, UInt64) = (2_000_000_000, 200_000_000)
  /// Milliseconds: who was silent for less is not put aside, as the caller's time may have passed.
  package static let untilSilent: UInt64 = 500
  /// How long the keeper waits, in nanoseconds: hosts that have lost a verifier at one moment do
  /// not come back to it at one, nor ping it at one.
  private static let (pause, pauseWhileAway): (ClosedRange<UInt64>, ClosedRange<UInt64>) =
    (1_500_000_000...2_500_000_000, 1_000_000_000...4_000_000_000)
  /// The number of idle connections that are kept, and for how long without a question or a ping.
  static let (mostIdle, keptIdle): (Int, UInt64) = (16, 30_000_000_000)

  fileprivate struct State {
    var idle: [ClientConnection] = []
    /// Until when each verifier is not tried.
    var aside: [UInt64]
    /// Until when the database of each counts as away.
    var noDatabase: [UInt64]
    /// Which is tried first: the one that answered last.
    var first: Int
    var isClosed = false
    var hasKeeper = false
  }

  let verifiers: [VerifierAddress]
  let side: TLSSide?
  /// nil: nothing is sealed.
  let seal: HostSeal?
  /// Called before the first question of a login on a connection.
  let beginning: Beginning?
  private let state: Locked<State>
  /// Readable when it was closed.
  private let ending: Int32
  /// How often the keeper has reached no verifier.
  private let missed = Atomic<Int>(0)

  /// Connects at the first question. Hosts begin with a random verifier, to spread the load.
  package init(
    _ file: FleetFile, _ identity: Identity, seal: HostSeal? = nil, beginning: Beginning? = nil
  ) {
    (verifiers, self.seal, self.beginning) = (file.verifiers, seal, beginning)
    side = TLSSide(identity, pins: file.pins)
    let first = Int.random(in: 0..<max(1, file.verifiers.count))
    let never = file.verifiers.map { _ in UInt64(0) }
    state = Locked(State(aside: never, noDatabase: never, first: first))
    ending = service_counter()
  }

  deinit { if ending >= 0 { Glibc.close(ending) } }

  package func ask(_ kind: FrameKind, within milliseconds: UInt64, _ body: (UInt64) -> Secret?)
    throws(TransportFault) -> VerifierAnswer
  {
    let deadline = sys_monotonic() &+ min(milliseconds, 600_000) &* 1_000_000
    guard let nonce = Frame.newNonce() else { throw .away }
    func frame(on connection: ClientConnection) -> Secret? {
      let now = sys_monotonic()
      let left = deadline > now ? (deadline - now) / 1_000_000 : 0
      return body(left).flatMap { connection.frame(nonce, kind, $0) }
    }
    var tried = Tried()
    while true {
      let connection: ClientConnection
      do throws(TransportFault) {
        connection = try lineThatTook(frame, kind, besides: &tried, until: deadline)
      } catch {
        guard error == .away else { throw error }
        // At least one has answered.
        if !tried.away.isEmpty { return .databaseAway }
        if tried.strange.count == verifiers.count { throw .stranger }
        let isElsewhere = tried.strange.union(tried.unsealed).count < verifiers.count
        throw isElsewhere ? .away : .unsealed
      }
      let answer = try answer(on: connection, to: kind, nonce, until: deadline)
      if answer == .unknownHost {
        tried.strange.insert(connection.verifier)
        continue
      }
      guard answer == .databaseAway, kind.isAskedElsewhere else { return answer }
      tried.away.insert(connection.verifier)
      guard tried.all.count < verifiers.count, sys_monotonic() + Self.leastLeft < deadline else {
        return answer
      }
    }
  }

  /// The verifiers that have not answered a question.
  private struct Tried {
    /// The database of these is away.
    var away: Set<Int> = []
    /// These do not know this host's key.
    var strange: Set<Int> = []
    /// These do not have the keys of this host's seal.
    var unsealed: Set<Int> = []
    var all: Set<Int> { away.union(strange).union(unsealed) }
  }

  /// The connection that sent the frame, to a verifier other than these.
  private func lineThatTook(
    _ frame: (ClientConnection) -> Secret?, _ kind: FrameKind, besides tried: inout Tried,
    until deadline: UInt64
  ) throws(TransportFault) -> ClientConnection {
    while let connection = takeIdle(besides: tried.all) {
      if try send(frame, kind, on: connection, until: deadline) { return connection }
    }
    let end = min(deadline, sys_monotonic() + Self.untilAway)
    var gone: Set<Int> = []
    while true {
      let connection = try connect(until: end, besides: tried.all.union(gone))
      switch connection.standing {
      case .revoked: throw .revoked
      case .unknown where kind != .join:
        tried.strange.insert(connection.verifier)
        askLast(connection.verifier)
      case .member, .unknown:
        if try send(frame, kind, on: connection, until: deadline) { return connection }
        gone.insert(connection.verifier)
      case nil: tried.unsealed.insert(connection.verifier)
      }
    }
  }

  func sendOn(
    _ connection: ClientConnection, _ frame: (ClientConnection) -> Secret?,
    until deadline: UInt64
  ) throws(TransportFault) -> Bool {
    guard let frame = frame(connection) else { throw .away }
    let start = sys_monotonic()
    do throws(TransportFault) {
      return try connection.send(frame, until: deadline)
    } catch {
      putAside(connection.verifier, silentSince: start, deadline)
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
      putAside(connection.verifier, silentSince: start, deadline)
      throw .unknown
    }
    // Of the former version, which has forgotten this host: the connection goes.
    if answer.kind == VerifierAnswer.unknownHost.kind {
      passOver(connection.verifier)
      askLast(connection.verifier)
      return .unknownHost
    }
    let isOne =
      answer.answers(kind) || answer.kind == VerifierAnswer.databaseAway.kind
      || answer.kind == VerifierAnswer.notServed.kind
    guard isOne else {
      passOver(connection.verifier)
      throw .unknown
    }
    if connection.standing == .member {
      let isThere = answer != .databaseAway
      // Without a seal it may be that alone which is not answered any more.
      let isOver = isLast || !isThere && connection.lacksSeal
      keep(connection, hasDatabase: isThere, isLast: isOver)
    }
    return answer
  }

  // MARK: kept connections

  /// The kept connection that was used last; one to a verifier whose database is away only if there
  /// is no other verifier to connect to.
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

  /// It was silent: its other connections are not used either. Up to the deadline: what a thread
  /// is late after it, the verifier was not.
  func putAside(_ verifier: Int, silentSince start: UInt64, _ deadline: UInt64) {
    let now = sys_monotonic()
    if min(now, deadline) >= start + Self.untilSilent * 1_000_000 {
      passOver(verifier, until: now + Self.aside)
    }
  }

  /// It can answer nothing now.
  func askLast(_ verifier: Int) {
    let until = sys_monotonic() + Self.last
    state.withLock { $0.noDatabase[verifier] = until }
  }

  /// It stopped in the middle, or sent another answer. It may be back at once, so it is put aside
  /// only until `until`; the next question goes to another one first.
  func passOver(_ verifier: Int, until: UInt64 = 0) {
    let dropped = state.withLock { state in
      state.aside[verifier] = max(state.aside[verifier], until)
      if state.first == verifier { state.first = (verifier + 1) % state.aside.count }
      let dropped = state.idle.filter { $0.verifier == verifier }
      state.idle.removeAll { $0.verifier == verifier }
      return dropped
    }
    withExtendedLifetime(dropped) {}
  }

  /// Closes the kept connections, and keeps none from now on.
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

  /// `all`: also those that are put aside.
  private func connect(until deadline: UInt64, besides asked: Set<Int> = [], all: Bool = false)
    throws(TransportFault) -> ClientConnection
  {
    // Who is not in a hurry looks again soon.
    var pauses: [Int32] = all ? [] : [20, 60]
    while true {
      let (won, race) = try connectOnce(until: deadline, besides: asked, all: all)
      if let won { return won }
      if race.isUnpinned { throw .unpinned }
      guard race.wasDropped, race.silent.isEmpty, let pause = pauses.first else { throw .away }
      // The others may have been restarted since they failed.
      pauses.removeFirst()
      _ = poll(nil, 0, Int32.random(in: pause...(2 * pause)))
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
    var race = ConnectRace(side, verifiers, order, late: Set(late), seal: seal)
    let won = race.run(until: deadline)
    for verifier in race.silent { putAside(verifier, silentSince: now, deadline) }
    return (won, race)
  }

  // MARK: the keeper

  /// Starts a thread that maintains the connections about every two seconds until `close`: it
  /// pings idle ones, connects if there is none, and calls `reconnected` when the fleet can be
  /// asked again.
  /// false if there is a keeper already, or no thread.
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
      let pause = UInt64.random(in: wasThere ? Self.pause : Self.pauseWhileAway)
      if Waiting.poll(&watched, until: sys_monotonic() + pause) != 0 { return }
      let isThere = look()
      if !isThere { missed.add(1, ordering: .relaxed) }
      if isThere, !wasThere { reconnected() }
      wasThere = isThere
      if isThere { renewSeal() }
    }
  }

  var misses: Int { missed.load(ordering: .relaxed) }

  /// Whether a verifier answers, over each idle connection that was not used just now, otherwise
  /// over a new one.
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

  /// Tries new connections until one of the verifiers can be asked.
  private func lookAnew() -> Bool {
    var asked: Set<Int> = []
    while asked.count < verifiers.count {
      do throws(TransportFault) {
        let end = sys_monotonic() + Self.untilAway
        let connection = try connect(until: end, besides: asked, all: true)
        if connection.standing == .revoked { return false }
        if connection.standing == .member, ping(connection) { return true }
        asked.insert(connection.verifier)
      } catch {
        return false
      }
    }
    return false
  }

  private func ping(_ connection: ClientConnection) -> Bool {
    let deadline = sys_monotonic() + Self.untilAway
    guard let nonce = Frame.newNonce(), let body = Secret(count: 0) else { return false }
    let isSent = try? sendOn(connection, { $0.frame(nonce, .ping, body) }, until: deadline)
    guard isSent == true else { return false }
    let answer = try? answer(on: connection, to: .ping, nonce, until: deadline)
    return answer?.answers(.ping) == true
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

  /// The order in which verifiers are tried: those that are put aside last, and only if there is
  /// another one, which may be gone.
  fileprivate func order(besides asked: Set<Int>, _ now: UInt64, all: Bool = false) -> [Int] {
    let order = aside.indices.map { (first + $0) % aside.count }.filter { !asked.contains($0) }
    let here = order.filter { aside[$0] <= now }
    if here.isEmpty { return all ? order : [] }
    return here.filter { noDatabase[$0] <= now } + here.filter { noDatabase[$0] > now }
      + order.filter { aside[$0] > now }
  }
}
