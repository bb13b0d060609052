/// The identity of the caller, from the kernel; no part of it comes from a packet.
package struct Peer: Equatable, Sendable {
  /// The socket that was asked.
  package enum Socket: Equatable, Sendable {
    /// For root's programs: any account.
    case root
    /// For everybody: the peer's own account.
    case everybody
  }

  package let socket: Socket
  /// The process that connected and sent the packet; 0 where it is in another PID namespace.
  package let process: Int32
  /// At connect(): 0 in a set-uid host such as su.
  package let effectiveUser: UInt32
  /// When the packet was sent: in su, that of the user who started it.
  package let realUser: UInt32
  /// When the packet was here, in nanoseconds of CLOCK_MONOTONIC.
  package let arrived: UInt64

  package init(
    socket: Socket, process: Int32, effectiveUser: UInt32, realUser: UInt32, arrived: UInt64
  ) {
    (self.socket, self.process, self.arrived) = (socket, process, arrived)
    (self.effectiveUser, self.realUser) = (effectiveUser, realUser)
  }
}
