import CService
import CTLS
import Glibc
package import OneTimePassword
import SallyportSupport
import Synchronization

/// The verifiers of this host's fleet, over TLS 1.3. Any thread may ask.
///
/// A question goes over a line that is kept, or over a new one: the verifiers are then tried side
/// by side, each 150 ms after the one before it or as soon as that has failed, and the first whose
/// handshake is done and who has said that it is there gets the question.
///
/// **What is sent once.** A kept line on which anything has come, or that is closed, is dropped and
/// the question goes over another: nothing of it was sent. So is one where the first write fails
/// without the kernel having taken a byte. As soon as the kernel has taken one, whatever happens is
/// `.unknown`: the line is closed, its verifier is put aside where it was silent, and the question
/// is not sent again. A verifier that ends on purpose says so beforehand, and answers what was sent
/// until then.
///
/// **What is asked elsewhere.** A verifier whose database is away says so, and that it has judged
/// and saved nothing: then the next one is asked, as its way to the database may be another. For a
/// while those that said so come last.
package final class LineClient: FleetLine {
  /// Bytes of a question, and of an answer, at most.
  package static let longestBody = Frame.longest - 1
  /// In nanoseconds: until the next verifier is tried, until they are away, and for how long one
  /// that is silent is not tried.
  static let (stagger, untilAway, aside): (UInt64, UInt64, UInt64) =
    (150_000_000, 1_000_000_000, 10_000_000_000)
  /// For how long a verifier comes last whose database is away; and what must be left of the time
  /// to ask another one.
  static let (last, leastLeft): (UInt64, UInt64) = (2_000_000_000, 200_000_000)
  /// Who was silent for less is not put aside for all others: whoever asks may have let his time
  /// pass.
  private static let enough: UInt64 = 500_000_000
  /// Idle lines that are kept, and for how long without a question or a ping.
  static let (mostIdle, keptIdle): (Int, UInt64) = (16, 30_000_000_000)

  fileprivate struct State {
    var idle: [ClientLine] = []
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

  package func ask(_ kind: LineKind, _ body: Secret, within milliseconds: UInt64)
    throws(LineFault) -> LineAnswer
  {
    try ask(kind, within: milliseconds) { _ in body }
  }

  package func ask(_ kind: LineKind, within milliseconds: UInt64, _ body: (UInt64) -> Secret?)
    throws(LineFault) -> LineAnswer
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
      let line: ClientLine
      do throws(LineFault) {
        line = try lineThatTook(frame, kind, besides: asked, until: deadline)
      } catch {
        // One at least has answered.
        if error == .away, !asked.isEmpty { return .databaseAway }
        throw error
      }
      let answer = try answer(on: line, to: kind, nonce, until: deadline)
      guard answer == .databaseAway, kind.isAskedElsewhere else { return answer }
      asked.insert(line.verifier)
      guard asked.count < verifiers.count, sys_monotonic() + Self.leastLeft < deadline else {
        return answer
      }
    }
  }

  /// The line, of none of these verifiers, that the frame went by.
  private func lineThatTook(
    _ frame: () -> Secret?, _ kind: LineKind, besides asked: Set<Int>, until deadline: UInt64
  ) throws(LineFault) -> ClientLine {
    while let line = takeIdle(besides: asked) {
      if try sendOn(line, frame, until: deadline) { return line }
    }
    let end = min(deadline, sys_monotonic() + Self.untilAway)
    var tried = asked
    while true {
      let line = try connect(until: end, besides: tried)
      if line.isStranger, kind != .join { throw .revoked }
      if try sendOn(line, frame, until: deadline) { return line }
      tried.insert(line.verifier)
    }
  }

  private func sendOn(_ line: ClientLine, _ frame: () -> Secret?, until deadline: UInt64)
    throws(LineFault) -> Bool
  {
    guard let frame = frame() else { throw .away }
    let start = sys_monotonic()
    do throws(LineFault) {
      return try line.send(frame, until: deadline)
    } catch {
      putAside(line.verifier, silentSince: start)
      throw error
    }
  }

  private func answer(
    on line: ClientLine, to kind: LineKind, _ nonce: UInt64, until deadline: UInt64
  ) throws(LineFault) -> LineAnswer {
    let (answer, isLast): (LineAnswer, Bool)
    let start = sys_monotonic()
    switch line.receive(nonce, until: deadline) {
    case .answer(let found, let last): (answer, isLast) = (found, last)
    case .over:
      passOver(line.verifier)
      throw .unknown
    case .silent:
      putAside(line.verifier, silentSince: start)
      throw .unknown
    }
    if answer.kind == LineAnswer.unknownHost.kind { throw .revoked }
    let isOne =
      answer.answers(kind) || answer.kind == LineAnswer.databaseAway.kind
      || answer.kind == LineAnswer.notServed.kind
    guard isOne else {
      passOver(line.verifier)
      throw .unknown
    }
    if !line.isStranger { keep(line, hasDatabase: answer != .databaseAway, isLast: isLast) }
    return answer
  }

  // MARK: lines that are kept

  /// One that is there, the one that was used last; of a verifier whose database is away only
  /// where there is no other verifier to connect to.
  private func takeIdle(besides asked: Set<Int>) -> ClientLine? {
    while let line = state.withLock({ $0.takeIdle(besides: asked, sys_monotonic()) }) {
      if line.isUsable(sys_monotonic()) { return line }
    }
    return nil
  }

  private func keep(_ line: ClientLine, hasDatabase: Bool, isLast: Bool) {
    let now = sys_monotonic()
    line.used = now
    let surplus = state.withLock { state -> ClientLine? in
      if hasDatabase { state.first = line.verifier }
      state.noDatabase[line.verifier] = hasDatabase ? 0 : now + Self.last
      state.aside[line.verifier] = 0
      if state.isClosed || isLast { return line }
      state.idle.append(line)
      return state.idle.count > Self.mostIdle ? state.idle.removeFirst() : nil
    }
    withExtendedLifetime(surplus) {}
  }

  /// It was silent: its other lines are not asked either.
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

  /// Closes the lines that are kept, and keeps none from now on.
  package func close() {
    let dropped = state.withLock { state in
      state.isClosed = true
      defer { state.idle = [] }
      return state.idle
    }
    if ending >= 0 { service_count_up(ending, 1) }
    withExtendedLifetime(dropped) {}
  }

  // MARK: new lines

  /// `all`: those too that are put aside.
  private func connect(until deadline: UInt64, besides asked: Set<Int> = [], all: Bool = false)
    throws(LineFault) -> ClientLine
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
    throws(LineFault) -> (ClientLine?, Race)
  {
    guard let side else { throw .away }
    let now = sys_monotonic()
    let (order, late) = state.withLock { state in
      (
        state.order(besides: asked, now, all: all),
        state.aside.indices.filter { state.aside[$0] > now }
      )
    }
    var race = Race(side, verifiers, order, late: Set(late))
    let won = race.run(until: deadline)
    for verifier in race.silent { putAside(verifier, silentSince: now) }
    return (won, race)
  }

  // MARK: the keeper

  /// Starts a thread that looks after the line every two seconds until `close`: pings what is idle,
  /// connects where nothing is, and says when the fleet can be asked again after it could not. That
  /// `reconnected` is called on this thread. false where there is a keeper, or no thread.
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

  /// Whether a verifier answers: over each idle line that was not used just now, else over a new
  /// one.
  func look() -> Bool {
    let now = sys_monotonic()
    let (old, hasYoung) = state.withLock { state in
      let old = state.idle.filter { now &- $0.used >= 1_000_000_000 }
      state.idle.removeAll { now &- $0.used >= 1_000_000_000 }
      return (old, state.idle.contains { state.noDatabase[$0.verifier] <= now })
    }
    var isThere = hasYoung
    var silent: Set<Int> = []
    for line in old.reversed() where line.isUsable(now) && !silent.contains(line.verifier) {
      if ping(line) { isThere = true } else { silent.insert(line.verifier) }
    }
    return isThere || lookAnew()
  }

  /// Over new lines, until one of the verifiers can be asked.
  private func lookAnew() -> Bool {
    var asked: Set<Int> = []
    while asked.count < verifiers.count {
      do throws(LineFault) {
        let end = sys_monotonic() + Self.untilAway
        let line = try connect(until: end, besides: asked, all: true)
        if line.isStranger { return false }
        if ping(line) { return true }
        asked.insert(line.verifier)
      } catch {
        return false
      }
    }
    return false
  }

  private func ping(_ line: ClientLine) -> Bool {
    let deadline = sys_monotonic() + Self.untilAway
    guard let nonce = Frame.newNonce(), let body = Secret(count: 0),
      let frame = Frame.make(nonce, LineKind.ping.rawValue, body)
    else { return false }
    do throws(LineFault) {
      guard try sendOn(line, { frame }, until: deadline) else { return false }
      let answer = try answer(on: line, to: .ping, nonce, until: deadline)
      return answer.answers(.ping)
    } catch {
      return false
    }
  }
}

extension LineClient.State {
  fileprivate mutating func takeIdle(besides asked: Set<Int>, _ now: UInt64) -> ClientLine? {
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

extension LineKind {
  /// Whether another verifier may be asked where one says that its database is away.
  fileprivate var isAskedElsewhere: Bool {
    switch self {
    case .question, .reserve, .ping, .status: true
    case .join, .management: false
    }
  }
}
