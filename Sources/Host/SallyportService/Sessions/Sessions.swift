import CService
import Glibc
package import SallyportSupport

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
  /// Nanoseconds for which one that has ended still counts: it bounds how many are started.
  private static let shortest: UInt64 = 100_000_000

  private struct Child {
    let process: Int32
    /// Whose share it is of.
    let share: Share
    let started: UInt64
    var hasEnded = false
  }

  private struct State {
    var children: [Child] = []
    /// Who is being looked up, of whose share, and since when.
    var lookups: [(user: UInt32, share: Share, since: UInt64)] = []

    /// Why there is no room for another of that user. Strangers are looked up together.
    func refusal(_ user: UInt32, _ share: Share) -> String? {
      let looked = share == .strangers ? 0 : lookups.filter { $0.share == share }.count
      let own = children.filter { $0.share == share }.count + looked
      guard children.count < Sessions.most, own < Sessions.mostOfOne else {
        return "no session for uid \(user): \(children.count) sessions run already"
      }
      return nil
    }

    /// Whether as many are looked up as may be, and one was begun just now: there is room in a
    /// moment, unless the name service hangs.
    func isCrowded(at now: UInt64) -> Bool {
      guard lookups.count >= Sessions.mostLookups else { return false }
      return lookups.contains { now < $0.since + Sessions.usualLookup }
    }

    mutating func endLookup(of user: UInt32) {
      if let index = lookups.firstIndex(where: { $0.user == user }) { lookups.remove(at: index) }
    }
  }

  private let listener: Listener
  private let program: String
  /// Nanoseconds; a session ends by itself before that.
  private let longest: UInt64
  private let shares: Shares
  private let state = Locked(State())
  private let refused = RareLine()

  /// Serves this socket with that program, from `open` on.
  package init(
    _ listener: Listener, _ program: String, longest: UInt64 = 360_000_000_000,
    shares: Shares = Shares()
  ) {
    (self.listener, self.program) = (listener, program)
    (self.longest, self.shares) = (longest, shares)
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
        let now = sys_monotonic()
        for index in state.children.indices { look(&state.children[index], at: now) }
        state.children.removeAll { $0.hasEnded && now - $0.started >= Sessions.shortest }
        return state.isCrowded(at: now)
      }
      // A user who connects meanwhile waits.
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
      // Back off: accept() fails when descriptors run out.
      _ = poll(nil, 0, 50)
      return
    }
    let user = peer.user
    let (share, isFound) = (shares.share(of: user), shares.isFound(user))
    let refusal = state.withLock { state -> String? in
      if let refusal = state.refusal(user, share) { return refusal }
      if isFound { return nil }
      guard state.lookups.count < Sessions.mostLookups else {
        return "no session for uid \(user): \(state.lookups.count) users wait for a name service"
      }
      state.lookups.append((user, share, sys_monotonic()))
      return nil
    }
    if let refusal {
      close(made)
      refused.write(refusal)
    } else if isFound {
      start(made, user, share)
    } else {
      do throws(ServiceError) {
        try startThread { self.lookUp(user, made) }
      } catch {
        state.withLock { $0.endLookup(of: user) }
        close(made)
        refused.write("no session for uid \(user): \(error.text)")
      }
    }
  }

  /// In doubt the session finds out, and says why.
  private func lookUp(_ user: UInt32, _ made: Int32) {
    let found = shares.hasAccount(user)
    if found == 0 {
      state.withLock { $0.endLookup(of: user) }
      close(made)
      refused.write("no session for uid \(user): no account")
    } else {
      start(made, user, shares.share(of: user), wasLookedUp: true)
    }
  }

  /// At any moment a user who is looked up, or has a session, is in one of the lists: else nobody
  /// would look for its end.
  private func start(_ made: Int32, _ user: UInt32, _ share: Share, wasLookedUp: Bool = false) {
    defer { close(made) }
    let refusal = state.withLock { state -> String? in
      if wasLookedUp { state.endLookup(of: user) }
      if let refusal = state.refusal(user, share) { return refusal }
      // SAFETY: the C string lives for the call.
      let process = unsafe service_spawn(program, made)
      guard process > 0 else { return "\(program): \(errnoDescription(-process))" }
      state.children.append(Child(process: process, share: share, started: sys_monotonic()))
      return nil
    }
    if let refusal { refused.write(refusal) }
  }
}
