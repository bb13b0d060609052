package import OneTimePassword
package import SallyportCore

/// The body of a question of a host: a frame as programs send it to the service of a host, with
/// what the verifier has to know besides. In front are the form (1 byte, 2), whether a local login
/// is the user's own (1 or 0), the uid of the account on the host, and the real uid of who called
/// (4 bytes each, little-endian; 0xffffffff where there is none). Which host it is, its key says.
package struct HostFrame: Sendable {
  package let isOwn: Bool
  /// Of the account on the host.
  package let uid: UInt32?
  /// The real uid of the program that asked the host's service, where it is not root's: whose
  /// wrong codes these are.
  package let caller: UInt32?
  package let request: ServiceRequest

  private static let form: UInt8 = 2
  private static let headLength = 10

  package init(isOwn: Bool, uid: UInt32?, caller: UInt32? = nil, request: ServiceRequest) {
    (self.isOwn, self.uid, self.caller, self.request) = (isOwn, uid, caller, request)
  }

  /// Any bytes give a frame, or nil.
  package static func decode(_ body: Secret) -> HostFrame? {
    guard body.count > headLength, body[0] == form, body[1] <= 1,
      let frame = body.slice(headLength..<body.count), let request = ServiceRequest.decode(frame)
    else { return nil }
    return HostFrame(
      isOwn: body[1] == 1, uid: number(at: 2, of: body), caller: number(at: 6, of: body),
      request: request)
  }

  private static func number(at start: Int, of body: Secret) -> UInt32? {
    let found = (start..<start + 4).reversed().reduce(UInt32(0)) { $0 << 8 | UInt32(body[$1]) }
    return found == UInt32.max ? nil : found
  }

  /// nil where the request does not fit, or memory is short.
  package func encoded() -> Secret? {
    guard let frame = request.encoded(),
      let body = Secret(count: HostFrame.headLength + frame.count)
    else { return nil }
    body.set(0, to: HostFrame.form)
    body.set(1, to: isOwn ? 1 : 0)
    for (start, number) in [(2, uid), (6, caller)] {
      for byte in 0..<4 {
        let shifted = (number ?? UInt32.max) >> UInt32(8 * byte)
        body.set(start + byte, to: UInt8(truncatingIfNeeded: shifted))
      }
    }
    // SAFETY: both buffers live for the call, and the body is so much longer.
    unsafe frame.withBytes { from in
      unsafe body.withMutableBytes { to in
        unsafe UnsafeMutableRawBufferPointer(rebasing: to[HostFrame.headLength...])
          .copyMemory(from: from)
      }
    }
    return body
  }
}
