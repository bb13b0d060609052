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
  /// The words of the head, where the columns are by it.
  private(set) var names: [[UInt8]] = []
  /// No head: serial, secret, and perhaps type, digits, and time step or counter.
  private(set) var isPlain = false
  /// How lines of such a log are told apart.
  private var mark: Mark?
  /// In such a log the column of what a key types before each code.
  private var identifier: Int?

  private enum Mark {
    /// The first word.
    case mode
    /// The third is the counter of the next code; lines about anything else have none, or twelve
    /// digits.
    case counter
  }

  func index(of column: TokenColumn) -> Int? { columns.firstIndex(of: column) }

  init(
    of text: SeparatedText, _ first: SeparatedText.Record, _ given: [TokenColumn]?,
    _ form: SecretForm?
  ) throws(TokenListError) {
    let words = first.fields.compactMap { text.bytes.slice($0.prefix(64)) }
    guard words.count == first.fields.count else {
      throw .problems([TokenProblem(line: first.line, "out of memory")])
    }
    let heads = words.map { TokenColumn(head: $0) }
    // With columns that were given too: which line was left out is told.
    hasHead = heads.count { $0 != .other } > 1 || TokenLayout.hasNoDigit(words)
    if let given {
      columns = given
    } else if hasHead {
      columns = heads
      try check(heads)
      names = words.map { $0.bytes(in: 0..<$0.count) }
      try checkOthers()
      self.form = TokenLayout.form(in: TokenLayout.lower(names[heads.firstIndex(of: .secret) ?? 0]))
    } else if TokenLayout.isTraditional(text) {
      // Mode, date, slot, public id, private id, key, and from the twelfth on the digits and the
      // first counter. It has no serial number: one is written where the public id is not.
      columns = [.other, .other, .other, .serial, .other, .secret]
      columns += [.other, .other, .other, .other, .other, .digits, .counter]
      (self.form, isYubico, mark, identifier) = (.hexadecimal, true, .mode, 3)
    } else if TokenLayout.isFlat(words) {
      // Serial number, public id, private id or first counter, key, access code, time.
      columns = [.serial, .other, .counter, .secret]
      (self.form, isYubico, mark, identifier) = (.hexadecimal, true, .counter, 1)
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

  /// A column that is left out is none that codes are made by.
  private func checkOthers() throws(TokenListError) {
    for (index, column) in columns.enumerated() where column == .other {
      let name = TokenLayout.lower(names[index])
      for (part, meant) in TokenColumn.hints
      where TokenLayout.isPart(part, of: name) && !columns.contains(meant) {
        throw .unknownHead(column: index + 1, names[index], meant)
      }
    }
  }

  private static func lower(_ name: [UInt8]) -> String {
    String(decoding: name.map(lowercased), as: UTF8.self)
  }

  /// Words of a head that is not known: a serial number and a secret without a digit are none.
  private static func hasNoDigit(_ words: [Secret]) -> Bool {
    words.count > 1
      && words.allSatisfy { word in !(0..<word.count).contains { isDigit(word[$0]) } }
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

  /// Whether a line of such a log is about a one-time code that is computed from a counter; of
  /// other lists each is.
  func isToken(_ record: SeparatedText.Record, in text: SeparatedText) -> Bool {
    guard let mark else { return true }
    let index = mark == .mode ? 0 : 2
    guard index < record.fields.count else { return false }
    let word = text.bytes.bytes(in: record.fields[index].prefix(32)).map(lowercased)
    switch mark {
    case .mode: return word == Array("oath-hotp".utf8)
    case .counter: return (1..<12).contains(word.count) && word.allSatisfy(TokenLayout.isDigit)
    }
  }

  /// The column in which such a log says that the key types an identifier: six bytes in Yubico's
  /// letters or in digits.
  func identifier(in record: SeparatedText.Record, of text: SeparatedText) -> Int? {
    guard let identifier, identifier < record.fields.count else { return nil }
    let field = record.fields[identifier]
    if columns[identifier] != .serial { return field.isEmpty ? nil : identifier }
    let word = text.bytes.bytes(in: field.prefix(16)).map(lowercased)
    let signs = Array("cbdefghijklnrtuv0123456789".utf8)
    return word.count == 12 && word.allSatisfy { signs.contains($0) } ? identifier : nil
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

  /// All of its lines begin so.
  private static func isTraditional(_ text: SeparatedText) -> Bool {
    var hasKey = false
    for record in text.records {
      guard let first = record.fields.first, first.count < 64,
        traditional.contains(lower(text.bytes.bytes(in: first)))
      else { return false }
      hasKey = hasKey || record.fields.count >= 6
    }
    return hasKey
  }

  private static func isFlat(_ words: [Secret]) -> Bool {
    guard words.count >= 6, words[0].count < 20, isDigits(words[0]) else { return false }
    let (inner, key, time) = (words[2], words[3], words[5])
    return inner.count <= 12 && isHexadecimal(inner)
      && [32, 40].contains(key.count) && isHexadecimal(key)
      && time.first(UInt8(ascii: ":"), in: 0..<time.count) != nil
  }

  private static func isDigits(_ word: Secret) -> Bool {
    word.count > 0 && (0..<word.count).allSatisfy { isDigit(word[$0]) }
  }

  private static func isHexadecimal(_ word: Secret) -> Bool {
    (0..<word.count).allSatisfy { isDigit(word[$0]) || (0x61...0x66).contains(word[$0] | 0x20) }
  }
}
