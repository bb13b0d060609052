import OneTimePassword
import SallyportAdministration
import SallyportCore

/// What the columns of a list of tokens are.
struct TokenLayout {
  private(set) var columns: [TokenColumn]
  /// Whether the first record names them.
  private(set) var hasHead = false
  /// In which the head or the kind of list says that secrets are.
  private(set) var form: SecretForm?
  /// A log of Yubico's personalization tool, which has counters alone.
  private(set) var isYubico = false
  /// No head: serial, secret, and perhaps type, digits, and time step or counter.
  private(set) var isPlain = false
  /// The words by which lines of such a log are told apart, and where they stand.
  private var mark: (column: Int, word: String)?

  func index(of column: TokenColumn) -> Int? { columns.firstIndex(of: column) }

  init(
    of text: SeparatedText, _ first: SeparatedText.Record, _ given: [TokenColumn]?,
    _ form: SecretForm?
  ) throws(TokenListError) {
    let words = first.fields.map { text.bytes.bytes(in: $0.prefix(64)) }
    let heads = words.map { TokenColumn(head: $0) }
    hasHead = heads.count { $0 != .other } > 1
    if let given {
      columns = given
    } else if hasHead {
      columns = heads
      try check(heads)
      let name = words[heads.firstIndex(of: .secret) ?? 0].map(lowercased)
      self.form = TokenLayout.form(in: String(decoding: name, as: UTF8.self))
    } else if TokenLayout.isTraditional(text) {
      // Type, date, slot, public id, private id, key, and from the twelfth on the digits.
      columns = [.other, .other, .other, .serial, .other, .secret]
      columns += [.other, .other, .other, .other, .other, .digits]
      (self.form, isYubico, mark) = (.hexadecimal, true, (0, "oath-hotp"))
    } else if TokenLayout.isFlat(words) {
      // Serial number, public id, private id or 0, key, access code, time.
      columns = [.serial, .other, .other, .secret]
      (self.form, isYubico, mark) = (.hexadecimal, true, (2, "0"))
    } else {
      columns = [.serial, .secret, .type, .digits, .counter]
      isPlain = true
      for record in text.records where record.fields.count > 2 {
        let third = text.bytes.bytes(in: record.fields[2].prefix(16))
        guard third.isEmpty || TokenLayout.isTimed(third) != nil else {
          throw .unknownColumns(line: record.line)
        }
      }
    }
  }

  private func check(_ heads: [TokenColumn]) throws(TokenListError) {
    for column in TokenColumn.allCases where column != .other {
      if heads.count(where: { $0 == column }) > 1 { throw .doubleColumn(column) }
    }
    for column in [TokenColumn.serial, .secret] where !heads.contains(column) {
      throw .noColumn(column)
    }
  }

  /// Whether a line of such a log is about a one-time code that is computed from a counter; of
  /// other lists each is.
  func isToken(_ record: SeparatedText.Record, in text: SeparatedText) -> Bool {
    guard let mark else { return true }
    guard mark.column < record.fields.count else { return false }
    let word = text.bytes.bytes(in: record.fields[mark.column].prefix(32)).map(lowercased)
    return word == Array(mark.word.utf8)
  }

  /// The words of vendors for both kinds; nil for any other.
  static func isTimed(_ word: [UInt8]) -> Bool? {
    switch String(decoding: word.map(lowercased), as: UTF8.self) {
    case "totp", "oath-totp", "time", "time-based", "timebased": true
    case "hotp", "oath-hotp", "event", "event-based", "eventbased", "counter": false
    case _: nil
    }
  }

  private static func form(in head: String) -> SecretForm? {
    if head.utf8.count >= 3, isPart("hex", of: head) { return .hexadecimal }
    return isPart("base32", of: head) ? .base32 : nil
  }

  private static func isPart(_ part: String, of text: String) -> Bool {
    text.indices.contains { text[$0...].hasPrefix(part) }
  }

  /// The first words of its lines.
  private static let traditional = [
    "oath-hotp", "yubico otp", "static password", "static password: advanced",
    "challenge-response: yubico otp", "challenge-response: hmac-sha1", "logging start",
  ]

  private static func isTraditional(_ text: SeparatedText) -> Bool {
    text.records.contains { record in
      guard record.fields.count >= 6, let first = record.fields.first else { return false }
      let word = text.bytes.bytes(in: first.prefix(64)).map(lowercased)
      return traditional.dropLast().contains(String(decoding: word, as: UTF8.self))
    }
  }

  private static func isFlat(_ words: [[UInt8]]) -> Bool {
    guard words.count >= 6, decimal(words[0]) != nil else { return false }
    let key = words[3]
    return [32, 40].contains(key.count)
      && key.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0 | 0x20) }
  }
}
