import CService
import Glibc

/// Starts `sallyport-session` for each connection to a third socket, where no systemd does. It is a
/// program of its own: it runs modules of PAM, which may do anything with the process that they are
/// in, for as long as a person types.
package final class Sessions: Sendable {
  package static let path = "/run/sallyport/session"
  package static let program = "/usr/sbin/sallyport-session"

  /// At a time, in all and for one user: a second one of his is told that there is a first.
  private static let most = 32
  private static let mostOfOne = 4
  /// Nanoseconds; a session ends by itself before that.
  private static let longest: UInt64 = 360_000_000_000
  /// Nanoseconds for which one that has ended still counts: it bounds how many are started.
  private static let shortest: UInt64 = 100_000_000

  private struct Child {
    let process: Int32
    let user: UInt32
    let started: UInt64
    var hasEnded = false
  }

  private let listener: Listener
  private let program: String
  private let refused = RareLine()

  /// Listens from now on, and serves from a thread of its own until the service ends. nil where the
  /// program is not installed.
  package static func start(_ path: String, _ program: String) throws(ServiceError) -> Sessions? {
    // SAFETY: the C string lives for the call.
    guard unsafe access(program, X_OK) == 0 else { return nil }
    return Sessions(try Listeners.open(path, mode: 0o666), program)
  }

  private init(_ listener: Listener, _ program: String) {
    (self.listener, self.program) = (listener, program)
  }

  /// Starts its thread.
  package func open() throws(ServiceError) {
    try startThread { self.serve() }
  }

  /// Nobody finds it any more. Sessions that go on end by themselves.
  package func end() { listener.remove() }

  private func serve() {
    var children: [Child] = []
    while true {
      var entry = pollfd(fd: listener.descriptor, events: Int16(POLLIN), revents: 0)
      // SAFETY: one entry, which lives for the call.
      let ready = unsafe poll(&entry, 1, children.isEmpty ? -1 : 200)
      for index in children.indices { look(&children[index]) }
      let now = service_monotonic()
      children.removeAll { $0.hasEnded && now - $0.started >= Sessions.shortest }
      if ready > 0, let child = accept(beside: children) { children.append(child) }
    }
  }

  private func look(_ child: inout Child) {
    if child.hasEnded { return }
    if service_monotonic() - child.started > Sessions.longest { kill(child.process, SIGKILL) }
    child.hasEnded = service_has_ended(child.process) == 1
  }

  private func accept(beside children: [Child]) -> Child? {
    var peer = service_sender()
    // SAFETY: filled within the call.
    let made = unsafe service_accept(listener.descriptor, &peer)
    guard made >= 0 else {
      // Not in a circle, where descriptors are short.
      _ = poll(nil, 0, 50)
      return nil
    }
    defer { close(made) }
    // A user may have thousands of numbers in user namespaces, and each would be another user. In
    // doubt the session finds out, and says why.
    if service_has_account(peer.user) == 0 {
      refused.write("no session for uid \(peer.user): no account")
      return nil
    }
    let own = children.filter { $0.user == peer.user }.count
    guard children.count < Sessions.most, own < Sessions.mostOfOne else {
      refused.write("no session for uid \(peer.user): \(children.count) are under way")
      return nil
    }
    // SAFETY: the C string lives for the call.
    let process = unsafe service_spawn(program, made)
    guard process > 0 else {
      refused.write("\(program): \(errnoText(-process))")
      return nil
    }
    return Child(process: process, user: peer.user, started: service_monotonic())
  }
}
