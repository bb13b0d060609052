import CService
import Glibc
import SallyportThreads

/// Starts `sallyport-session` for each connection to a third socket. It is a program of its own: it
/// runs modules of PAM, which may do anything with the process that they are in, for as long as a
/// person types.
///
/// Nobody's name service holds up another's session: whether a user has an account is looked up by
/// a thread of its own, for a bounded number of users at a time.
package final class Sessions: Sendable {
  package static let path = "/run/sallyport/session"
  package static let program = "/usr/sbin/sallyport-session"

  /// At a time, in all and for one user: a second one of his is told that there is a first.
  private static let most = 32
  private static let mostOfOne = 4
  /// Users that are looked up at a time.
  private static let mostLookups = 16
  /// Nanoseconds.
  private static let usualLookup: UInt64 = 1_000_000_000
  /// Users who are not looked up again.
  private static let mostKnown = 1000
  /// All users share one share of whom it cannot be found out whether they have an account: in
  /// user namespaces one has thousands of numbers. No user has this one.
  private static let doubtful = UInt32.max
  /// Nanoseconds for which one that has ended still counts: it bounds how many are started.
  private static let shortest: UInt64 = 100_000_000

  private struct Child {
    let process: Int32
    /// Whose share it is of.
    let user: UInt32
    let started: UInt64
    var hasEnded = false
  }

  /// What came of looking for a user's account.
  private struct Lookup {
    let user: UInt32
    let isKnown: Bool
  }

  private struct State {
    var children: [Child] = []
    /// Who is being looked up, and since when.
    var lookups: [(user: UInt32, since: UInt64)] = []
    var known: Set<UInt32> = []

    /// Why there is no room for another of that user.
    func refusal(_ user: UInt32) -> String? {
      let own = children.filter { $0.user == user }.count + lookups.filter { $0.user == user }.count
      guard children.count < Sessions.most, own < Sessions.mostOfOne else {
        return "no session for uid \(user): \(children.count) are under way"
      }
      return nil
    }

    /// Whether as many are looked up as may be, of whom one was begun just now: there is room in a
    /// moment, unless the name service hangs.
    func isCrowded(at now: UInt64) -> Bool {
      guard lookups.count >= Sessions.mostLookups else { return false }
      return lookups.contains { now < $0.since + Sessions.usualLookup }
    }

    mutating func end(_ lookup: Lookup) {
      if let index = lookups.firstIndex(where: { $0.user == lookup.user }) {
        lookups.remove(at: index)
      }
      if known.count >= Sessions.mostKnown { known = [] }
      if lookup.isKnown { known.insert(lookup.user) }
    }
  }

  private let listener: Listener
  private let program: String
  /// Nanoseconds; a session ends by itself before that.
  private let longest: UInt64
  private let hasAccount: @Sendable (UInt32) -> Int32
  private let state = Locked(State())
  private let refused = RareLine()

  /// Serves this socket with that program, from `open` on.
  package init(
    _ listener: Listener, _ program: String, longest: UInt64 = 360_000_000_000,
    hasAccount: @escaping @Sendable (UInt32) -> Int32 = { service_has_account($0) }
  ) {
    (self.listener, self.program) = (listener, program)
    (self.longest, self.hasAccount) = (longest, hasAccount)
  }

  /// Whether the program can be started.
  package static func canStart(_ program: String) -> Bool {
    // SAFETY: the C string lives for the call.
    unsafe access(program, X_OK) == 0
  }

  /// Starts its thread.
  package func open() throws(ServiceError) {
    try startThread { self.serve() }
  }

  /// Nobody finds it any more. Sessions that go on end by themselves.
  package func end() { listener.remove() }

  private func serve() {
    while true {
      let isAlone = state.withLock { $0.children.isEmpty && $0.lookups.isEmpty }
      var entry = pollfd(fd: listener.descriptor, events: Int16(POLLIN), revents: 0)
      // SAFETY: one entry, which lives for the call.
      let ready = unsafe poll(&entry, 1, isAlone ? -1 : 200)
      let isCrowded = state.withLock { state in
        // Not before: one that began later would be older than nothing.
        let now = service_monotonic()
        for index in state.children.indices { look(&state.children[index], at: now) }
        state.children.removeAll { $0.hasEnded && now - $0.started >= Sessions.shortest }
        return state.isCrowded(at: now)
      }
      // Whoever connects meanwhile waits.
      if isCrowded { _ = poll(nil, 0, 5) } else if ready > 0 { accept() }
    }
  }

  /// With its end, or after its time, all that it started ends too.
  private func look(_ child: inout Child, at now: UInt64) {
    if child.hasEnded { return }
    if now > child.started + longest { kill(-child.process, SIGKILL) }
    child.hasEnded = service_has_ended(child.process) == 1
  }

  private func accept() {
    var peer = service_sender()
    // SAFETY: filled within the call.
    let made = unsafe service_accept(listener.descriptor, &peer)
    guard made >= 0 else {
      // Not in a circle, where descriptors are short.
      _ = poll(nil, 0, 50)
      return
    }
    let user = peer.user
    let (isKnown, refusal) = state.withLock { state -> (Bool, String?) in
      if let refusal = state.refusal(user) { return (false, refusal) }
      if state.known.contains(user) { return (true, nil) }
      guard state.lookups.count < Sessions.mostLookups else {
        return (false, "no session for uid \(user): \(state.lookups.count) users are looked up")
      }
      state.lookups.append((user, service_monotonic()))
      return (false, nil)
    }
    if let refusal {
      close(made)
      refused.write(refusal)
    } else if isKnown {
      start(made, shareOf: user)
    } else {
      do throws(ServiceError) {
        try startThread { self.lookUp(user, made) }
      } catch {
        state.withLock { $0.end(Lookup(user: user, isKnown: false)) }
        close(made)
        refused.write("no session for uid \(user): \(error.text)")
      }
    }
  }

  /// In doubt the session finds out, and says why.
  private func lookUp(_ user: UInt32, _ made: Int32) {
    let found = hasAccount(user)
    let lookup = Lookup(user: user, isKnown: found == 1)
    if found == 0 {
      state.withLock { $0.end(lookup) }
      close(made)
      refused.write("no session for uid \(user): no account")
    } else {
      start(made, shareOf: found == 1 ? user : Sessions.doubtful, after: lookup)
    }
  }

  /// At any moment whoever is looked up, or has a session, is in one of the lists: else nobody
  /// would look for its end.
  private func start(_ made: Int32, shareOf share: UInt32, after lookup: Lookup? = nil) {
    defer { close(made) }
    let refusal = state.withLock { state -> String? in
      if let lookup { state.end(lookup) }
      if let refusal = state.refusal(share) { return refusal }
      // SAFETY: the C string lives for the call.
      let process = unsafe service_spawn(program, made)
      guard process > 0 else { return "\(program): \(errnoText(-process))" }
      state.children.append(Child(process: process, user: share, started: service_monotonic()))
      return nil
    }
    if let refusal { refused.write(refusal) }
  }
}
