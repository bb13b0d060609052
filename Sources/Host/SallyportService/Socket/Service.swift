import CService
import Glibc
package import OneTimePassword
import SallyportSupport

/// What a packet is answered with: 1 to 65,536 bytes; anything else closes the connection without
/// an answer. Called by several threads at once.
package typealias Handler = @Sendable (Peer, Secret, any Caller) -> [UInt8]

/// Why the service cannot start.
package enum ServiceError: Error, Equatable {
  /// A system call failed.
  case system(StaticCall, path: String, errno: Int32)
  /// Another service has this path.
  case inUse(path: String)
  /// Something that is not a socket, or a directory that others may change, is in the way.
  case notOurs(path: String)
  /// libcrypto has no HMAC or SHA-256 for it.
  case noCrypto
  /// Whoever started the service passed a descriptor that is no socket of it.
  case unknownDescriptor(Int32)
  /// What it is to start is not there, or cannot be started.
  case noProgram(path: String)

  /// The name of a system call.
  package typealias StaticCall = String

  @discardableResult
  package static func check(_ result: Int32, _ call: StaticCall, _ path: String = "")
    throws(ServiceError) -> Int32
  {
    guard result >= 0 else { throw .system(call, path: path, errno: -result) }
    return result
  }
}

extension ServiceError {
  /// For the log and for people.
  package var text: String {
    switch self {
    case .system(let call, let path, let number):
      (path.isEmpty ? "" : "\(path): ") + "\(call): \(errnoDescription(number))"
    case .noCrypto: "libcrypto: HMAC or SHA-256 is not available"
    case .inUse(let path): "\(path): another service listens there"
    case .notOurs(let path): "\(path): is not a socket, or in a directory that others may change"
    case .noProgram(let path): "\(path): cannot be started"
    case .unknownDescriptor(let number): "descriptor \(number) is not one of the service's sockets"
    }
  }
}

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

  /// Accepts nothing more, and waits for what is under way, at most so many nanoseconds; for what
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

/// Runs `body` on a thread of its own. Its stack has room for the modules of the name service.
package func startThread(_ body: @escaping @Sendable () -> Void) throws(ServiceError) {
  try ServiceError.check(Threads.start(body), "pthread_create")
}
