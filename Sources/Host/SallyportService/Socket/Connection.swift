import CService
import Glibc
import OneTimePassword
import SallyportCore
import Synchronization

/// Who waits for the answer to a packet.
package protocol Caller: Sendable {
  /// Tells a waiting caller that its answer begins now. false if it is gone.
  func begin() -> Bool
  /// Whether it still waits for the answer.
  var isThere: Bool { get }
}

/// A connection, for one packet and its answer; closed with the last reference. It never blocks.
final class Connection: Caller {
  /// The longest packet, either way.
  static let longest = 65_536

  let descriptor: Int32
  let socket: Peer.Socket
  /// Who connected.
  private let process: Int32
  let effectiveUser: UInt32
  let accepted: UInt64
  private let began = Atomic<Bool>(false)

  /// Why there is no connection.
  enum Refusal: Error, Equatable {
    /// None is waiting.
    case none
    /// The one that was there is gone.
    case peer(UInt32)
    /// By errno: where descriptors or memory are short, it still waits.
    case failed(Int32)
  }

  /// Accepts the first that waits at `listener`, if such a peer may ask at all.
  static func accept(from listener: Int32, of socket: Peer.Socket) throws(Refusal) -> Connection {
    var peer = service_sender()
    // SAFETY: filled within the call.
    let made = unsafe service_accept(listener, &peer)
    if made == -EAGAIN || made == -EINTR || made == -ECONNABORTED { throw .none }
    guard made >= 0 else { throw .failed(-made) }
    let connection = Connection(made, socket, peer)
    guard mayAsk(peer.user, socket) else { throw .peer(peer.user) }
    return connection
  }

  private init(_ descriptor: Int32, _ socket: Peer.Socket, _ peer: service_sender) {
    (self.descriptor, self.socket, accepted) = (descriptor, socket, sys_monotonic())
    (process, effectiveUser) = (peer.process, peer.user)
  }

  deinit { close(descriptor) }

  private static func mayAsk(_ user: UInt32, _ socket: Peer.Socket) -> Bool {
    switch socket {
    case .root: user == 0
    case .everybody: service_is_user(user)
    }
  }

  /// The result of looking for the packet.
  enum Arrival: Sendable {
    case notYet
    case job(Job)
    /// Ended, too long, with descriptors, or from another process than the one that connected.
    case refused
  }

  /// Takes the packet if it is there.
  ///
  /// A process that connected as root may have become another user since, or have handed the
  /// connection on: the real user is that of the packet's sender, who must be the same process.
  func receive() -> Arrival {
    let size = service_size(descriptor)
    if size == -Int64(EAGAIN) || size == -Int64(EINTR) { return .notYet }
    guard (1...Int64(Connection.longest)).contains(size), let request = Secret(count: Int(size))
    else { return .refused }
    var sender = service_sender()
    // SAFETY: the buffer lives for the call, in which the sender is filled.
    let done = unsafe request.withMutableBytes { bytes -> Int64 in
      guard let base = bytes.baseAddress else { return 0 }
      return unsafe service_receive(descriptor, base, bytes.count, &sender)
    }
    guard done == size, sender.process == process, service_is_user(sender.user) else {
      return .refused
    }
    // In a user namespace a process may have the right to say that it is somebody else's. Then who
    // connected counts; on root's socket that is root itself.
    let isOfUser = socket == .everybody && effectiveUser != 0
    let peer = Peer(
      socket: socket, process: process, effectiveUser: effectiveUser,
      realUser: isOfUser ? effectiveUser : sender.user, arrived: sys_monotonic())
    return .job(Job(connection: self, peer: peer, request: request))
  }

  /// Whether the peer is still there and has sent nothing more.
  var isThere: Bool { service_size(descriptor) == -Int64(EAGAIN) }

  /// Whether it waits until it has its answer.
  var hasBegun: Bool { began.load(ordering: .acquiring) }

  func begin() -> Bool {
    guard answer(ServiceAnswer.begun()) else { return false }
    began.store(true, ordering: .releasing)
    return true
  }

  /// Says that nothing was done. A service that does not know the version of the packet closes the
  /// connection instead.
  func refuse() { answer(ServiceAnswer.trouble(mayBeTheCallers: true).encoded() ?? []) }

  /// false if it could not be sent; it is not repeated.
  @discardableResult
  func answer(_ bytes: [UInt8]) -> Bool {
    guard (1...Connection.longest).contains(bytes.count), isThere else { return false }
    // SAFETY: the bytes live for the call.
    return unsafe service_send(descriptor, bytes, bytes.count) == Int64(bytes.count)
  }
}
