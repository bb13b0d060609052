/// A JSON value (RFC 8259) to be printed. Members stay in the order they were given.
indirect enum JSON {
  case null
  case flag(Bool)
  case number(Int64)
  case counter(UInt64)
  case text(String)
  case list([JSON])
  case object([(String, JSON)])

  /// Indented by two blanks a level, without a last newline. Everything is escaped that RFC 8259 §7
  /// wants escaped, and DEL.
  func written() -> String {
    var text: [UInt8] = []
    write(to: &text, 0)
    return String(decoding: text, as: UTF8.self)
  }

  private func write(to text: inout [UInt8], _ level: Int) {
    switch self {
    case .null: text += "null".utf8
    case .flag(let value): text += (value ? "true" : "false").utf8
    case .number(let value): text += "\(value)".utf8
    case .counter(let value): text += "\(value)".utf8
    case .text(let value): JSON.quote(value, to: &text)
    case .list(let values):
      JSON.block("[", "]", values, to: &text, level) { $0.write(to: &$1, level + 1) }
    case .object(let members):
      JSON.block("{", "}", members, to: &text, level) { member, text in
        JSON.quote(member.0, to: &text)
        text += ": ".utf8
        member.1.write(to: &text, level + 1)
      }
    }
  }

  private static func block<Part>(
    _ open: Unicode.Scalar, _ close: Unicode.Scalar, _ parts: [Part], to text: inout [UInt8],
    _ level: Int, _ write: (Part, inout [UInt8]) -> Void
  ) {
    text.append(UInt8(ascii: open))
    for (index, part) in parts.enumerated() {
      if index > 0 { text.append(UInt8(ascii: ",")) }
      startLine(&text, level + 1)
      write(part, &text)
    }
    if !parts.isEmpty { startLine(&text, level) }
    text.append(UInt8(ascii: close))
  }

  private static func startLine(_ text: inout [UInt8], _ level: Int) {
    text.append(UInt8(ascii: "\n"))
    for _ in 0..<level { text += [0x20, 0x20] }
  }

  private static func quote(_ value: String, to text: inout [UInt8]) {
    text.append(UInt8(ascii: "\""))
    for byte in value.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): text += [UInt8(ascii: "\\"), byte]
      case UInt8(ascii: "\n"): text += "\\n".utf8
      case 0...0x1f, 0x7f:
        let digits = String(byte, radix: 16)
        text += ("\\u" + String(repeating: "0", count: 4 - digits.count) + digits).utf8
      case _: text.append(byte)
      }
    }
    text.append(UInt8(ascii: "\""))
  }
}

extension JSON {
  /// The text, or null.
  static func maybe(_ text: String?) -> JSON { text.map { .text($0) } ?? .null }
}
