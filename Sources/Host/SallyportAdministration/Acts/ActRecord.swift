import Glibc
package import SallyportCore

/// A line of the file of acts, as it was read (docs/enrollment-format.md). Its values are whatever
/// somebody chose.
package struct ActRecord: Equatable, Sendable {
  package let time: UnixTime
  /// In the order of the line: `act` first, `stage` last.
  package let fields: [Act.Fact]

  /// nil for what is no whole line of an act: one that was cut short does not end with its stage.
  package init?(line: some Collection<UInt8>) {
    let words = line.split(separator: 0x20, omittingEmptySubsequences: false).map { Array($0) }
    guard let first = words.first, let time = UnixTime(internet: first) else { return nil }
    var fields: [Act.Fact] = []
    for word in words.dropFirst() {
      guard let field = Act.Fact(word: word) else { return nil }
      fields.append(field)
    }
    self.init(time, fields)
  }

  /// nil unless the fields are those of an act.
  package init?(_ time: UnixTime, _ fields: [Act.Fact]) {
    guard fields.first?.key == "act", fields.contains(where: { $0.key == "by" }),
      fields.last?.key == "stage",
      let stage = fields.last.flatMap({ Act.Stage(rawValue: $0.text) })
    else { return nil }
    (self.time, self.fields, self.stage) = (time, fields, stage)
  }

  package let stage: Act.Stage

  /// The first value of the key, whose bytes are hostile; nil: there is none.
  package subscript(key: String) -> [UInt8]? { fields.first { $0.key == key }?.value }

  /// All values of a key.
  package func all(_ key: String) -> [[UInt8]] { fields.filter { $0.key == key }.map(\.value) }

  /// What a line before the change and the one after it have in common.
  package var common: [Act.Fact] { fields.dropLast() }
}

extension Act.Fact {
  /// `key=value`, escaped; nil for anything else.
  package init?(word: [UInt8]) {
    guard let sign = word.firstIndex(of: UInt8(ascii: "=")), sign > 0 else { return nil }
    let key = word[..<sign]
    let isKey = key.allSatisfy { (0x61...0x7a).contains($0) || $0 == UInt8(ascii: "-") }
    guard isKey, let value = unescaped(word[(sign + 1)...]) else { return nil }
    self.init(String(decoding: key, as: UTF8.self), value)
  }

  var text: String { String(decoding: value, as: UTF8.self) }
}

/// The bytes that `escaped` wrote as a field; nil for what it never writes.
package func unescaped(_ text: some Collection<UInt8>) -> [UInt8]? {
  func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x41...0x46: byte - 0x41 + 10
    case _: nil
    }
  }
  var (bytes, rest) = ([UInt8](), Array(text)[...])
  while let byte = rest.popFirst() {
    guard byte == UInt8(ascii: "%") else {
      guard (0x21...0x7e).contains(byte), byte != 0x22, byte != 0x3d else { return nil }
      bytes.append(byte)
      continue
    }
    guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else {
      return nil
    }
    bytes.append(high << 4 | low)
  }
  return bytes
}

extension UnixTime {
  /// `2026-11-28T09:12:00Z` (RFC 3339), and nothing else.
  package init?(internet text: [UInt8]) {
    guard text.count == 20, let day = UnixTime(date: Array(text[..<10])), text[10] == 0x54,
      text[13] == 0x3a, text[16] == 0x3a, text[19] == 0x5a,
      let hour = decimal(Array(text[11..<13])), let minute = decimal(Array(text[14..<16])),
      let second = decimal(Array(text[17..<19])), hour < 24, minute < 60, second < 61
    else { return nil }
    self.init(day.seconds + Int64(hour * 3600 + minute * 60 + second))
  }

  /// As above; nil for a year that is not of four digits.
  package var internetText: String? {
    // SAFETY: a structure of numbers and a text that is not used; the pointers live for the call.
    var fields = unsafe tm()
    var seconds = time_t(seconds)
    guard unsafe gmtime_r(&seconds, &fields) != nil, unsafe (0...8099).contains(fields.tm_year)
    else { return nil }
    func digits(_ number: Int32, _ count: Int = 2) -> String {
      let text = String(number)
      return String(repeating: "0", count: max(0, count - text.count)) + text
    }
    let day = unsafe [
      digits(fields.tm_year + 1900, 4), digits(fields.tm_mon + 1), digits(fields.tm_mday),
    ]
    let clock = unsafe [digits(fields.tm_hour), digits(fields.tm_min), digits(fields.tm_sec)]
    return "\(day.joined(separator: "-"))T\(clock.joined(separator: ":"))Z"
  }
}
