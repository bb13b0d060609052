package import OneTimePassword
import SallyportAdministration
import SallyportCore

/// A picture of Google Authenticator's export: `otpauth-migration://offline?data=`, one of one or
/// more parts.
package struct GoogleExport: Sendable {
  /// Which parts belong together.
  package let batch: Int64
  /// From 0.
  package let part: Int64
  package let parts: Int64
  package let entries: [AppEntry]

  private static let head = Array("otpauth-migration://".utf8)

  /// Whether a line is one, well formed or not.
  package static func isMeant(_ line: Secret) -> Bool {
    line.bytes(in: 0..<head.count).map(lowercased) == head
  }

  package init(_ uri: Secret) throws(SourceProblem) {
    let data = try GoogleExport.data(uri)
    let tree = try ProtobufReader.read(data, as: GoogleExport.message)
    func number(_ name: String) -> Int64? {
      if case .number(let number) = tree[[name]] { number } else { nil }
    }
    batch = number("batch_id") ?? 0
    part = number("batch_index") ?? 0
    parts = max(number("batch_size") ?? 1, 1)
    guard (0..<parts).contains(part), parts <= 100 else { throw .protobuf }
    entries = AppFormat.googleAuthenticator.read(tree)
  }

  /// The parts that are missing, counted from 1, of each set that has one.
  package static func missing(_ exports: [GoogleExport]) -> (parts: [Int], of: Int)? {
    for export in exports {
      let found = exports.filter { $0.batch == export.batch }.map(\.part)
      let missing = (0..<export.parts).filter { !found.contains($0) }
      if !missing.isEmpty { return (missing.map { Int($0) + 1 }, Int(export.parts)) }
    }
    return nil
  }

  private static let message = ProtobufReader.Message(fields: [
    (
      1, "otp_parameters",
      .messages(
        ProtobufReader.Message(fields: [
          (1, "secret", .bytes), (2, "name", .bytes), (3, "issuer", .bytes),
          (4, "algorithm", .number), (5, "digits", .number), (6, "type", .number),
          (7, "counter", .number),
        ]))
    ),
    (3, "batch_size", .number), (4, "batch_index", .number), (5, "batch_id", .number),
  ])

  /// What `data=` holds: percent-encoded base64, in either alphabet. A `+` may have become a blank.
  private static func data(_ uri: Secret) throws(SourceProblem) -> Secret {
    var index = head.count
    while !uri.holds("data=", in: index..<index + 5) {
      guard index < uri.count else { throw .migration }
      index += 1
    }
    index += 5
    var builder = try SecretBuilder(most: uri.count)
    var (pending, bits) = (UInt32(0), 0)
    while index < uri.count, uri[index] != UInt8(ascii: "&") {
      var byte = uri[index]
      index += 1
      if byte == UInt8(ascii: "%") {
        guard let high = hexadecimalValue(uri[index]), let low = hexadecimalValue(uri[index + 1])
        else { throw .migration }
        byte = high << 4 | low
        index += 2
      }
      if byte == UInt8(ascii: "=") { continue }
      guard let value = base64Value(byte) else { throw .migration }
      (pending, bits) = (pending << 6 & 0xffff | UInt32(value), bits + 6)
      if bits >= 8 {
        bits -= 8
        builder.add(UInt8(truncatingIfNeeded: pending >> UInt32(bits)))
      }
    }
    guard bits != 6 else { throw .migration }
    return try builder.secret()
  }

  private static func base64Value(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte - UInt8(ascii: "A")
    case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - UInt8(ascii: "a") + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0") + 52
    case UInt8(ascii: "+"), UInt8(ascii: " "), UInt8(ascii: "-"): 62
    case UInt8(ascii: "/"), UInt8(ascii: "_"): 63
    case _: nil
    }
  }
}
