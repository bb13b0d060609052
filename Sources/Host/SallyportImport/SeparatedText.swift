import OneTimePassword

/// The records of a file of separated values (RFC 4180, and what spreadsheets make of it), as
/// ranges of its bytes: these contain secrets, which are not copied. Any bytes give a result.
struct SeparatedText {
  let bytes: Secret

  /// A record with the fields that it has, without quotes and outer blanks.
  struct Record {
    /// Of its first line, counted from 1.
    let line: Int
    var fields: [Range<Int>]
    /// A quote was opened and not closed, or something follows a closed one.
    var isBroken = false
  }

  /// Comma, semicolon or tab; nil where no record has one of them.
  private(set) var separator: UInt8?
  /// Without blank lines and comments (`#`).
  private(set) var records: [Record] = []

  init(_ bytes: Secret) {
    self.bytes = bytes
    var start = bytes.count >= 3 && bytes.bytes(in: 0..<3) == [0xef, 0xbb, 0xbf] ? 3 : 0
    var line = 1
    // What a spreadsheet writes to be told its own separator.
    if bytes.count >= start + 5, bytes.holds("sep=", in: start..<start + 4) {
      separator = bytes[start + 4]
      start = end(of: start)
      line = 2
    }
    if separator == nil { separator = guessed(from: start) }
    while start < bytes.count {
      let first = bytes[start]
      if first == UInt8(ascii: "#") || isBlankLine(start) {
        start = end(of: start)
        line += 1
      } else {
        let (record, next, lines) = record(at: start, line)
        records.append(record)
        (start, line) = (next, line + lines)
      }
    }
  }

  /// The first byte of the next line.
  private func end(of place: Int) -> Int {
    (bytes.first(UInt8(ascii: "\n"), in: place..<bytes.count) ?? bytes.count - 1) + 1
  }

  private func isBlankLine(_ place: Int) -> Bool {
    (place..<end(of: place)).allSatisfy {
      SeparatedText.isBlank(bytes[$0]) || bytes[$0] == UInt8(ascii: "\n")
    }
  }

  /// The separator that the first record has most of, outside quotes.
  private func guessed(from start: Int) -> UInt8? {
    var place = start
    while place < bytes.count, bytes[place] == UInt8(ascii: "#") || isBlankLine(place) {
      place = end(of: place)
    }
    var (counts, isQuoted) = ([UInt8: Int](), false)
    for index in place..<max(place, end(of: place)) {
      let byte = bytes[index]
      if byte == UInt8(ascii: "\"") { isQuoted.toggle() }
      if !isQuoted { counts[byte, default: 0] += 1 }
    }
    let known = [UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: "\t")]
    return known.filter { counts[$0] != nil }.max { counts[$0] ?? 0 < counts[$1] ?? 0 }
  }

  static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0d }

  /// The record that begins here, where the next one does, and how many lines it has.
  private func record(at start: Int, _ line: Int) -> (Record, next: Int, lines: Int) {
    var record = Record(line: line, fields: [])
    var (place, lines) = (start, 1)
    while true {
      let (field, next, isWhole) = field(at: place)
      record.fields.append(field)
      if !isWhole {
        record.isBroken = true
        return (record, end(of: start), 1)
      }
      lines += (place..<min(next, bytes.count)).count { bytes[$0] == UInt8(ascii: "\n") }
      if next >= bytes.count || bytes[next] == UInt8(ascii: "\n") {
        return (record, next + 1, lines)
      }
      place = next + 1
    }
  }

  /// A field, and the place of the separator or line feed behind it.
  private func field(at start: Int) -> (Range<Int>, next: Int, isWhole: Bool) {
    var place = start
    while place < bytes.count, isInner(place), SeparatedText.isBlank(bytes[place]) { place += 1 }
    // ="00123" is how a spreadsheet is kept from taking the zeros away.
    let isKept = bytes[place] == UInt8(ascii: "=") && bytes[place + 1] == UInt8(ascii: "\"")
    let quote = isKept ? place + 1 : place
    guard quote < bytes.count, bytes[quote] == UInt8(ascii: "\"") else {
      var end = place
      while end < bytes.count, isInner(end) { end += 1 }
      return (trimmed(place..<end), end, true)
    }
    guard let close = closing(from: quote + 1) else { return (quote + 1..<quote + 1, quote, false) }
    var next = close + 1
    while next < bytes.count, isInner(next), SeparatedText.isBlank(bytes[next]) { next += 1 }
    return (trimmed(quote + 1..<close), next, next >= bytes.count || !isInner(next))
  }

  /// Whether this byte ends no field.
  private func isInner(_ place: Int) -> Bool {
    bytes[place] != UInt8(ascii: "\n") && bytes[place] != separator
  }

  /// The quote that ends a field: not one of two in a row.
  private func closing(from start: Int) -> Int? {
    var place = start
    while let quote = bytes.first(UInt8(ascii: "\""), in: place..<bytes.count) {
      if bytes[quote + 1] != UInt8(ascii: "\"") { return quote }
      place = quote + 2
    }
    return nil
  }

  /// Whether it begins as XML does.
  var isMarkup: Bool {
    records.first?.fields.first.map { !$0.isEmpty && bytes[$0.lowerBound] == UInt8(ascii: "<") }
      ?? false
  }

  /// Whether blanks stand between words of its first field.
  func hasBlanks(_ record: Record) -> Bool {
    record.fields.first?.contains { SeparatedText.isBlank(bytes[$0]) } ?? false
  }

  private func trimmed(_ range: Range<Int>) -> Range<Int> {
    var (start, end) = (range.lowerBound, range.upperBound)
    while start < end, SeparatedText.isBlank(bytes[start]) { start += 1 }
    while end > start, SeparatedText.isBlank(bytes[end - 1]) { end -= 1 }
    return start..<end
  }
}
