/// Why a service cannot start.
package enum ServiceError: Error, Equatable {
  /// A system call failed.
  case system(StaticCall, path: String, errno: Int32)
  /// Another service has this path.
  case inUse(path: String)
  /// Something that is not a socket, or a directory that others may change, is in the way.
  case notOurs(path: String)
  /// libcrypto has no HMAC or SHA-256 for it.
  case noCrypto
  /// libssl has no TLS 1.3 with Ed25519, or no memory.
  case noTLS
  /// The parent of the service passed a descriptor that is not one of its sockets.
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
    case .noTLS: "libssl: out of memory, or no TLS 1.3 with Ed25519"
    case .inUse(let path): "\(path): another service listens there"
    case .notOurs(let path): "\(path): is not a socket, or in a directory that others may change"
    case .noProgram(let path): "\(path): cannot be started"
    case .unknownDescriptor(let number): "descriptor \(number) is not one of the service's sockets"
    }
  }
}
