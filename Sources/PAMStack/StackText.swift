/// A file of pam.d as libpam 1.5.2 cuts it into lines (`_pam_assemble_line`): with `\` at its end a
/// line goes on, `#` ends it, and what is longer than the buffer is cut as fgets(3) cuts it.
///
/// Newer versions take lines of any length: what `isOverlong` tells of may mean two things.
struct StackText {
  /// What libpam reads a line into, with the NUL.
  private static let buffer = 1024

  /// A line as libpam puts it together: a backslash at the end joins the next one.
  package struct Line: Equatable {
    /// With spaces, without the comment.
    var bytes: [UInt8]
    /// Where it starts and ends in the file, counted from 1.
    var numbers: ClosedRange<Int>
  }

  enum Item: Equatable {
    case line(Line)
    /// libpam gives up, and the service with it: the file ends in a line that goes on, or a line
    /// that goes on fills the buffer (libpam 1.5.2 then never returns).
    case broken(line: Int)
    case end
  }

  private let bytes: [UInt8]
  private var place = 0
  private var number = 1
  /// A line of the file was longer than the buffer.
  private(set) var isOverlong = false

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// The next line that is not blank and not a comment.
  mutating func next() -> Item {
    var line: Line?
    while true {
      let room = StackText.buffer - (line?.bytes.count ?? 0)
      guard room > 1 else { return .broken(line: number) }
      let at = number
      guard let chunk = chunk(atMost: room - 1) else {
        return line.map { .broken(line: $0.numbers.lowerBound) } ?? .end
      }
      guard let start = chunk.firstIndex(where: { !isBlank($0) }), chunk[start] != hash else {
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

  /// As fgets(3): up to the end of the line, at most `count` bytes; a string ends at its first NUL.
  private mutating func chunk(atMost count: Int) -> ArraySlice<UInt8>? {
    guard place < bytes.count else { return nil }
    let most = bytes[place..<min(bytes.count, place + count)]
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

/// The words of a line (`_pam_StrTok`): between whitespace, or in brackets, where `\]` is a
/// bracket.
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

  /// What is left.
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
