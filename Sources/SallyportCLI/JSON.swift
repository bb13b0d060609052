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
  func written(indent: String = "") -> String {
    switch self {
    case .null: "null"
    case .flag(let value): value ? "true" : "false"
    case .number(let value): "\(value)"
    case .counter(let value): "\(value)"
    case .text(let value): JSON.quoted(value)
    case .list(let values):
      JSON.block("[", values.map { $0.written(indent: indent + "  ") }, "]", indent)
    case .object(let members):
      JSON.block(
        "{", members.map { "\(JSON.quoted($0)): \($1.written(indent: indent + "  "))" }, "}", indent
      )
    }
  }

  private static func block(
    _ open: String, _ lines: [String], _ close: String, _ indent: String
  ) -> String {
    if lines.isEmpty { return open + close }
    return "\(open)\n"
      + lines.map { "\(indent)  \($0)" }.joined(separator: ",\n") + "\n\(indent)\(close)"
  }

  private static func quoted(_ text: String) -> String {
    "\"" + text.unicodeScalars.map(escaped).joined() + "\""
  }

  private static func escaped(_ scalar: Unicode.Scalar) -> String {
    switch scalar {
    case "\"": return "\\\""
    case "\\": return "\\\\"
    case "\n": return "\\n"
    case "\u{0}"..."\u{1f}", "\u{7f}":
      let digits = String(scalar.value, radix: 16)
      return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    case _: return String(Character(scalar))
    }
  }
}

extension JSON {
  /// The text, or null.
  static func maybe(_ text: String?) -> JSON { text.map { .text($0) } ?? .null }
}
