import OneTimePassword

/// Comma-separated values (RFC 4180), of which the first line has the names: a list of objects.
struct CSVReader {
  private let text: SourceText
  private var position: Int

  /// In columns.
  private static let widest = 256

  static func read(_ text: SourceText) throws(LineProblem) -> ExportNode {
    var reader = CSVReader(text: text, position: text.start)
    do throws(SourceProblem) {
      let names = try reader.row().map { $0.bytes(in: 0..<min($0.count, 64)) }
      var rows: [ExportNode] = []
      while reader.position < text.bytes.count {
        let fields = try reader.row()
        // An empty line has one empty field.
        if fields.count == 1, fields[0].count == 0 { continue }
        guard fields.count == names.count else { throw .columns }
        rows.append(.object(zip(names, fields).map { .init($0, .text($1)) }))
      }
      return .object([.init("rows", .list(rows))])
    } catch {
      throw LineProblem(text.lineNumber(at: max(reader.position - 1, 0)), error)
    }
  }

  /// Whether the first line names a column so.
  static func hasColumn(_ name: String, _ text: SourceText) -> Bool {
    var reader = CSVReader(text: text, position: text.start)
    guard let names = try? reader.row() else { return false }
    return names.contains {
      $0.count == name.utf8.count && $0.bytes(in: 0..<$0.count) == Array(name.utf8)
    }
  }

  private mutating func row() throws(SourceProblem) -> [Secret] {
    var fields: [Secret] = []
    while true {
      guard fields.count < CSVReader.widest else { throw .columns }
      fields.append(try field())
      let byte = text.bytes[position]
      let isEnd = position >= text.bytes.count
      position += 1
      if byte == UInt8(ascii: "\r"), text.bytes[position] == UInt8(ascii: "\n") { position += 1 }
      if isEnd || byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") { return fields }
      guard byte == UInt8(ascii: ",") else { throw .quotes }
    }
  }

  private mutating func field() throws(SourceProblem) -> Secret {
    guard text.bytes[position] == UInt8(ascii: "\"") else {
      let start = position
      while position < text.bytes.count, !isEnd(text.bytes[position]) { position += 1 }
      guard let field = text.bytes.slice(start..<position) else { throw .outOfMemory }
      return field
    }
    position += 1
    var end = position
    while true {
      guard let quote = text.offset(of: UInt8(ascii: "\""), in: end..<text.bytes.count) else {
        throw .quotes
      }
      end = quote + 1
      if text.bytes[end] != UInt8(ascii: "\"") { break }
      end += 1
    }
    var builder = try SecretBuilder(most: end - position)
    while position < end - 1 {
      builder.add(text.bytes[position])
      position += text.bytes[position] == UInt8(ascii: "\"") ? 2 : 1
    }
    position = end
    return try builder.secret()
  }

  private func isEnd(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: ",") || byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r")
  }
}
