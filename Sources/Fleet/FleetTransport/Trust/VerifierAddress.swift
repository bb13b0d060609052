import CSystem

/// Where a verifier listens: a numeric address and a port, because a name would have to be looked
/// up while a login waits.
package struct VerifierAddress: Hashable, Sendable {
  package static let defaultPort: UInt16 = 7353

  /// 4 or 16.
  let bytes: [UInt8]
  package let port: UInt16

  /// "192.0.2.1", "192.0.2.1:7353", "[2001:db8::1]" or "[2001:db8::1]:7353"; without zones, and
  /// no port 0.
  package init?(_ text: String) {
    guard text.utf8.count <= 64, let (host, port) = VerifierAddress.parts(of: text),
      let bytes = VerifierAddress.bytes(of: host.text),
      (bytes.count == 16) == host.isBracketed
    else { return nil }
    (self.bytes, self.port) = (bytes, port)
  }

  /// `bytes` has 4 or 16. Port 0 is any that is free, for who listens.
  init(bytes: [UInt8], port: UInt16) { (self.bytes, self.port) = (bytes, port) }

  /// All addresses of a machine, 0.0.0.0 or [::]: for who listens alone.
  package var isAny: Bool { bytes.allSatisfy { $0 == 0 } }

  /// As the file has it, with the port.
  package var text: String {
    let host = VerifierAddress.text(of: bytes)
    return (bytes.count == 16 ? "[\(host)]" : host) + ":\(port)"
  }

  private typealias Host = (text: String, isBracketed: Bool)

  private static func parts(of text: String) -> (Host, UInt16)? {
    let all = Array(text.utf8)
    let isBracketed = all.first == UInt8(ascii: "[")
    let inside = all.dropFirst(isBracketed ? 1 : 0)
    let host = inside.prefix { $0 != UInt8(ascii: isBracketed ? "]" : ":") }
    var rest = inside[host.endIndex...]
    if isBracketed, rest.popFirst() == nil { return nil }
    let found = (String(decoding: host, as: UTF8.self), isBracketed)
    if rest.isEmpty { return (found, defaultPort) }
    guard rest.popFirst() == UInt8(ascii: ":"), let port = port(rest) else { return nil }
    return (found, port)
  }

  private static func port(_ digits: ArraySlice<UInt8>) -> UInt16? {
    guard digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
      digits.first != UInt8(ascii: "0")
    else { return nil }
    return UInt16(String(decoding: digits, as: UTF8.self))
  }

  private static func bytes(of host: String) -> [UInt8]? {
    if host.utf8.contains(0) { return nil }
    var bytes = [UInt8](repeating: 0, count: 16)
    // SAFETY: a C string, and room for the longer kind of address.
    let count = unsafe sys_parse_address(host, &bytes)
    return count > 0 ? Array(bytes.prefix(Int(count))) : nil
  }

  private static func text(of bytes: [UInt8]) -> String {
    var text = [UInt8](repeating: 0, count: 64)
    // SAFETY: as many bytes as are said, and room for the longest text, which ends with NUL.
    let done = unsafe text.withUnsafeMutableBytes { room in
      guard let base = room.baseAddress else { return Int32(0) }
      return unsafe sys_address_text(
        bytes, Int32(bytes.count), base.assumingMemoryBound(to: CChar.self))
    }
    return done == 1 ? String(decoding: text.prefix { $0 != 0 }, as: UTF8.self) : ""
  }
}
