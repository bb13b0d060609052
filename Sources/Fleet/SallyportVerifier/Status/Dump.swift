import Glibc
import SallyportSupport

/// A dump of a fleet's database that `pg_dump` made, in its custom form or as SQL. Nothing of it is
/// run: of its statements those count that say which tables there are and which rows they have.
package enum Dump {
  /// Why it cannot be read to its end.
  package enum Fault: Error, Equatable {
    case system(errno: Int32)
    /// Neither of the two forms.
    case otherForm
    /// There is no pg_restore, which makes SQL of the custom form.
    case noProgram
    /// pg_restore ended with this status, and has said why.
    case program(Int32)
  }

  /// What the dump has to say, in this order.
  enum Part {
    /// A table is made.
    case table(String)
    /// Its rows follow.
    case rows(String)
    case row(DumpRow)
    /// As pg_dump ends.
    case end
  }

  private static let custom = Array("PGDMP".utf8)
  private static let head = Array("--".utf8)
  /// In bytes: a hundred times the longest row of a fleet.
  private static let longestLine = 16 << 20

  /// `wanted`: the tables whose rows are told. The file is left where reading has ended.
  static func read(
    _ file: borrowing OpenFile, wanted: Set<String>, _ body: (Part) -> Void
  ) throws(Fault) {
    let number = file.number
    let start: [UInt8]
    do throws(SystemError) {
      start = try file.bytes(5)
      // SAFETY: no memory is involved.
      guard lseek(number, 0, SEEK_SET) == 0 else { throw .last }
    } catch {
      throw .system(errno: error.number)
    }
    var script = DumpScript(wanted)
    if start == custom { return try convert(number) { script.take($0, body) } }
    guard start.starts(with: head) else { throw .otherForm }
    try lines(of: number) { script.take($0, body) }
  }

  /// The same of what pg_restore makes of it, which works without a server.
  private static func convert(_ number: Int32, _ body: (ArraySlice<UInt8>) -> Void)
    throws(Fault)
  {
    guard dup2(number, 0) == 0 else { throw .system(errno: errno) }
    // SAFETY: the C strings live for the call; the stream is closed once, below.
    guard let pipe = unsafe popen("exec pg_restore --file=-", "re") else {
      throw .system(errno: errno)
    }
    var fault: Fault?
    do throws(Fault) { try lines(of: unsafe fileno(pipe), body) } catch { fault = error }
    let status = unsafe pclose(pipe)
    if let fault { throw fault }
    if status == 127 << 8 { throw .noProgram }
    if status != 0 { throw .program(status & 0x7f == 0 ? status >> 8 & 0xff : 128 + status & 0x7f) }
  }

  /// Each without its end. What follows the last end of a line is none.
  private static func lines(of number: Int32, _ body: (ArraySlice<UInt8>) -> Void) throws(Fault) {
    var text: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 20)
    while true {
      // SAFETY: as many bytes as there is room for; it lives for the call.
      let count = unsafe chunk.withUnsafeMutableBytes {
        unsafe Glibc.read(number, $0.baseAddress, $0.count)
      }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw .system(errno: errno) }
      if count == 0 { return }
      text += chunk.prefix(count)
      var start = text.startIndex
      while let end = text[start...].firstIndex(of: UInt8(ascii: "\n")) {
        body(text[start..<end])
        start = end + 1
      }
      text.removeSubrange(..<start)
      guard text.count <= longestLine else { throw .otherForm }
    }
  }
}

/// A row of a table, as COPY writes it.
struct DumpRow {
  let table: String
  fileprivate let columns: [String]
  fileprivate let fields: [ArraySlice<UInt8>]

  /// nil for NULL, and where there is no such column.
  func text(_ column: String) -> [UInt8]? {
    guard let place = columns.firstIndex(of: column), place < fields.count else { return nil }
    return Self.value(fields[place])
  }

  func bytes(_ column: String) -> [UInt8]? {
    guard let text = text(column), text.starts(with: [UInt8(ascii: "\\"), UInt8(ascii: "x")]) else {
      return nil
    }
    let digits = text.dropFirst(2).map { Self.digit($0) }
    guard digits.count % 2 == 0, !digits.contains(nil) else { return nil }
    let values = digits.compactMap { $0 }
    return stride(from: 0, to: values.count, by: 2).map { values[$0] << 4 | values[$0 + 1] }
  }

  func number(_ column: String) -> Int64? {
    text(column).flatMap { Int64(String(decoding: $0, as: UTF8.self)) }
  }

  func natural(_ column: String) -> UInt64? { number(column).flatMap { UInt64(exactly: $0) } }

  func flag(_ column: String) -> Bool? {
    switch text(column) {
    case [UInt8(ascii: "t")]: true
    case [UInt8(ascii: "f")]: false
    case _: nil
    }
  }

  /// A timestamptz, in seconds since 1970: `2026-02-03 04:05:06.7+05:30`.
  func time(_ column: String) -> Int64? {
    guard let text = text(column) else { return nil }
    let numbers = text.split { !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
      .compactMap { Int32(String(decoding: $0, as: UTF8.self)) }
    let hasFraction = text.contains(UInt8(ascii: "."))
    guard numbers.count >= 6, numbers.count <= (hasFraction ? 10 : 9), text.count > 10,
      text[10] == UInt8(ascii: " ")
    else { return nil }
    // SAFETY: a structure of numbers and a text that is not used; it lives for the call.
    var parts = unsafe tm()
    unsafe (parts.tm_year, parts.tm_mon, parts.tm_mday) = (
      numbers[0] - 1900, numbers[1] - 1, numbers[2]
    )
    unsafe (parts.tm_hour, parts.tm_min, parts.tm_sec) = (numbers[3], numbers[4], numbers[5])
    let local = Int64(unsafe timegm(&parts))
    let zone = numbers.dropFirst(hasFraction ? 7 : 6).map { Int64($0) }
    let shift = zip(zone, [3600, 60, 1]).reduce(0) { $0 + $1.0 * $1.1 }
    return text[11...].contains(UInt8(ascii: "-")) ? local + shift : local - shift
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case _: nil
    }
  }

  /// PostgreSQL's manual, COPY, "Text Format".
  private static func value(_ field: ArraySlice<UInt8>) -> [UInt8]? {
    let escape = UInt8(ascii: "\\")
    if field.elementsEqual([escape, UInt8(ascii: "N")]) { return nil }
    guard field.contains(escape) else { return Array(field) }
    var (value, isEscaped): ([UInt8], Bool) = ([], false)
    for byte in field {
      if isEscaped {
        value.append(meaning[byte] ?? byte)
        isEscaped = false
      } else if byte == escape {
        isEscaped = true
      } else {
        value.append(byte)
      }
    }
    return value
  }

  private static let meaning: [UInt8: UInt8] = [
    UInt8(ascii: "b"): 8, UInt8(ascii: "f"): 12, UInt8(ascii: "n"): 10, UInt8(ascii: "r"): 13,
    UInt8(ascii: "t"): 9, UInt8(ascii: "v"): 11,
  ]
}

/// The lines of a script of pg_dump, one after the other.
private struct DumpScript {
  private static let schema = "public."
  private let wanted: Set<String>
  /// The table whose rows these lines are, and its columns; the columns are empty where nobody
  /// wants them.
  private var copied: (table: String, columns: [String])?

  init(_ wanted: Set<String>) { self.wanted = wanted }

  mutating func take(_ line: ArraySlice<UInt8>, _ body: (Dump.Part) -> Void) {
    if let copied {
      if line.elementsEqual([UInt8(ascii: "\\"), UInt8(ascii: ".")]) {
        self.copied = nil
      } else if !copied.columns.isEmpty {
        body(
          .row(
            DumpRow(
              table: copied.table, columns: copied.columns,
              fields: line.split(separator: 9, omittingEmptySubsequences: false))))
      }
    } else if let first = line.first, first == UInt8(ascii: "C") || first == UInt8(ascii: "-") {
      statement(String(decoding: line, as: UTF8.self), body)
    }
  }

  private mutating func statement(_ line: String, _ body: (Dump.Part) -> Void) {
    let words = line.split(separator: " ")
    if line == "-- PostgreSQL database dump complete" {
      body(.end)
    } else if words.count > 2, words[1] == "TABLE", words[2].hasPrefix(Self.schema) {
      body(.table(String(words[2].dropFirst(Self.schema.count))))
    } else if line.hasPrefix("COPY \(Self.schema)"), line.hasSuffix(") FROM stdin;") {
      let table = String(words[1].dropFirst(Self.schema.count))
      let list = line.drop { $0 != "(" }.dropFirst().prefix { $0 != ")" }
      let columns = list.split(separator: ", ").map { $0.filter { $0 != "\"" } }
      copied = (table, wanted.contains(table) ? columns : [])
      body(.rows(table))
    }
  }
}
