package import OneTimePassword

// The wire between `sallyport`, run by somebody who is not root, and `sallyport-session`. A frame
// is one packet of a SOCK_SEQPACKET socket: version, kind, number of fields (1 byte each), then
// each field after its length (2 bytes, the lower first). Nothing may follow.

/// A frame without its meaning. The fields may be secrets, so all of them are wiped.
package struct Frame: Sendable {
  /// The only version.
  package static let version: UInt8 = 1
  /// The longest packet, either way.
  package static let longest = 16_384
  private static let headSize = 3
  private static let mostFields = 80

  package let kind: UInt8
  package let fields: [Secret]

  package init(_ kind: UInt8, _ fields: [Secret]) { (self.kind, self.fields) = (kind, fields) }

  /// nil where it is too long, or out of memory.
  package func encoded() -> Secret? {
    let size = fields.reduce(Frame.headSize) { $0 + 2 + $1.count }
    guard size <= Frame.longest, fields.count <= Frame.mostFields,
      let packet = Secret(count: size)
    else { return nil }
    packet.set(0, to: Frame.version)
    packet.set(1, to: kind)
    packet.set(2, to: UInt8(truncatingIfNeeded: fields.count))
    var position = Frame.headSize
    for field in fields {
      packet.set(position, to: UInt8(truncatingIfNeeded: field.count))
      packet.set(position + 1, to: UInt8(truncatingIfNeeded: field.count >> 8))
      position += 2
      for index in 0..<field.count { packet.set(position + index, to: field[index]) }
      position += field.count
    }
    return packet
  }

  /// Total: nil for anything that is not a frame.
  package static func decode(_ packet: Secret) -> Frame? {
    guard (headSize...longest).contains(packet.count), packet[0] == version,
      packet[2] <= mostFields
    else { return nil }
    var fields: [Secret] = []
    var position = headSize
    for _ in 0..<packet[2] {
      guard packet.count - position >= 2 else { return nil }
      let count = Int(packet[position]) | Int(packet[position + 1]) << 8
      position += 2
      guard packet.count - position >= count,
        let field = packet.slice(position..<position + count)
      else { return nil }
      fields.append(field)
      position += count
    }
    return position == packet.count ? Frame(packet[1], fields) : nil
  }
}

extension Secret {
  /// All of it, for what is no secret.
  var plain: [UInt8] { bytes(in: 0..<count) }

  /// The number that is its only byte; nil for another length.
  var number: UInt8? { count == 1 ? self[0] : nil }
}
