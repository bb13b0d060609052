/// Splits a file of pam.d into lines as libpam does (`_pam_assemble_line` of 1.5.2,
/// `_pam_line_assemble` of 1.7): `\` at the end continues a line, and `#` starts a comment. Before
/// 1.6, a line longer than the buffer is cut as by fgets(3), and a comment or a blank line inside a
/// continued line is passed over; since then, either ends it.
struct StackText {
  /// The size of libpam's line buffer, with the NUL.
  private static let buffer = 1024

  /// A line as libpam assembles it: a backslash at the end joins the next one.
  package struct Line: Equatable {
    /// Without the comment; spaces are kept.
    var bytes: [UInt8]
    /// Its first and last line in the file, counted from 1.
    var numbers: ClosedRange<Int>
  }

  enum Item: Equatable {
    case line(Line)
    /// libpam fails the whole service: the file ends in a continued line, or before 1.6 a continued
    /// line fills the buffer (1.5.2 then never returns).
    case broken(line: Int)
    case end
  }

  private let bytes: [UInt8]
  private var place = 0
  private var number = 1
  /// Whether a line of the file was longer than the buffer, and so cut.
  private(set) var isOverlong = false
  private let rules: LibpamRules

  init(_ bytes: [UInt8], _ rules: LibpamRules) { (self.bytes, self.rules) = (bytes, rules) }

  /// Returns the next line that is neither blank nor a comment.
  mutating func next() -> Item {
    var line: Line?
    while true {
      let room =
        rules == .since16 ? Int.max : StackText.buffer - (line?.bytes.count ?? 0)
      guard room > 1 else { return .broken(line: number) }
      let at = number
      guard let chunk = chunk(atMost: room - 1) else {
        return line.map { .broken(line: $0.numbers.lowerBound) } ?? .end
      }
      guard let start = chunk.firstIndex(where: { !isBlank($0) }), chunk[start] != hash else {
        if rules == .since16, let ended = line {
          guard ended.bytes.allSatisfy(isBlank) else { return .line(ended) }
          line = nil
        }
        continue
      }
      let first = line?.numbers.lowerBound ?? at
      let sofar = line?.bytes ?? []
      if let comment = chunk.firstIndex(of: hash) {
        return .line(Line(bytes: sofar + chunk[..<comment], numbers: first...at))
      }
      guard let last = chunk.lastIndex(where: { !isBlank($0) }), chunk[last] == backslash else {
        return .line(Line(bytes: sofar + chunk, numbers: first...at))
      }
      line = Line(bytes: sofar + chunk[..<last] + [0x20], numbers: first...at)
    }
  }

  /// As fgets(3): up to the end of the line, at most `count` bytes. As in a C string, a NUL ends
  /// it.
  private mutating func chunk(atMost count: Int) -> ArraySlice<UInt8>? {
    guard place < bytes.count else { return nil }
    let most = bytes[place...].prefix(count)
    let end: Int
    if let newline = most.firstIndex(of: 0x0a) {
      end = newline + 1
      number += 1
    } else {
      end = most.endIndex
      if end < bytes.count { isOverlong = true }
    }
    let chunk = bytes[place..<end]
    place = end
    return chunk.prefix { $0 != 0 }
  }
}

/// Splits a line into words as `_pam_StrTok` does: at whitespace, or in brackets, where `\]` stands
/// for a bracket.
struct StackWords {
  private let bytes: [UInt8]
  /// nil after the last word.
  private var place: Int?

  init(_ bytes: [UInt8]) { (self.bytes, place) = (bytes, 0) }

  mutating func next() -> [UInt8]? {
    guard var start = place else { return nil }
    while start < bytes.count, isBlank(bytes[start]) { start += 1 }
    guard start < bytes.count else {
      place = nil
      return nil
    }
    return bytes[start] == UInt8(ascii: "[") ? bracket(start + 1) : plain(start)
  }

  private mutating func plain(_ start: Int) -> [UInt8] {
    let end = bytes[start...].firstIndex(where: isBlank) ?? bytes.count
    go(past: end)
    return Array(bytes[start..<end])
  }

  private mutating func bracket(_ start: Int) -> [UInt8] {
    var word: [UInt8] = []
    var end = start
    while end < bytes.count, bytes[end] != close {
      if bytes[end] == backslash, end + 1 < bytes.count, bytes[end + 1] == close { end += 1 }
      word.append(bytes[end])
      end += 1
    }
    go(past: end)
    return word
  }

  private mutating func go(past end: Int) { place = end + 1 < bytes.count ? end + 1 : nil }

  /// The remaining words.
  mutating func rest() -> [[UInt8]] {
    var words: [[UInt8]] = []
    while let word = next() { words.append(word) }
    return words
  }
}

private let hash = UInt8(ascii: "#")
private let backslash = UInt8(ascii: "\\")
private let close = UInt8(ascii: "]")

private func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x0a || byte == 0x09 }
