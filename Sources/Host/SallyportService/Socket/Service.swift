import CService
import Glibc
package import OneTimePassword
package import SallyportSupport

/// What a packet is answered with: 1 to 65,536 bytes; anything else closes the connection without
/// an answer. Called by several threads at once.
package typealias Handler = @Sendable (Peer, Secret, any Caller) -> [UInt8]

/// The running service.
package final class Service: Sendable {
  private let servers: [SocketServer]

  private init(_ servers: [SocketServer]) { self.servers = servers }

  /// Serves these sockets, from threads of its own, until `stop`.
  package static func start(
    _ listeners: Listeners, root: Limits = .root, everybody: Limits = .everybody,
    shares: Shares = Shares(), handler: @escaping Handler
  ) throws(ServiceError) -> Service {
    var servers: [SocketServer] = []
    if let listener = listeners.root {
      servers.append(try SocketServer(listener, of: .root, within: root, shares, handler))
    }
    if let listener = listeners.everybody {
      servers.append(
        try SocketServer(listener, of: .everybody, within: everybody, shares, handler))
    }
    for server in servers { try server.open() }
    return Service(servers)
  }

  /// Accepts nothing more, and waits for what is under way, at most this many nanoseconds; for what
  /// has begun as long as its callers do. false where it is not done by then.
  @discardableResult
  package func stop(within time: UInt64 = 5_000_000_000, begun: UInt64 = 30_000_000_000) -> Bool {
    let start = sys_monotonic()
    for server in servers { server.end() }
    while !servers.allSatisfy(\.isAtRest) {
      let waited = sys_monotonic() - start
      if waited > time, waited > begun || !servers.contains(where: \.hasBegun) { return false }
      _ = poll(nil, 0, 2)
    }
    return true
  }
}
