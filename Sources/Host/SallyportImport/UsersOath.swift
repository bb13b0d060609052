package import OneTimePassword
import SallyportCore
package import SallyportSupport

/// A users file of pam_oath (or of mod_authn_otp), line by line: each with its token, or why it
/// cannot be imported. Lines that pam_oath skips, comments and blank lines, are not included.
package struct UsersOath: Sendable {
  package let lines: [UsersOathLine]
  /// The numbers of the other lines that have content.
  package let others: [Int]

  /// Any bytes give a result.
  package init(_ bytes: Secret) {
    let text = SourceText(bytes, skipsMark: true)
    var (lines, others): ([UsersOathLine], [Int]) = ([], [])
    for line in text.lines {
      let words = text.words(in: line.range)
      guard let type = words.first, text.first(of: type) != UInt8(ascii: "#") else { continue }
      if UsersOath.isMeantAsToken(text, type) {
        lines.append(UsersOathLine(text, line.number, words))
      } else {
        others.append(line.number)
      }
    }
    (self.lines, self.others) = (lines, others)
  }

  /// pam_oath skips every line whose first word is not one of its types. A word that looks like a
  /// type, such as `TOTP` or `HOTP/T45`, was meant as one, and is reported.
  private static func isMeantAsToken(_ text: SourceText, _ word: Range<Int>) -> Bool {
    guard word.count >= 4 else { return false }
    let start = text.bytes.bytes(in: word.prefix(4)).map { $0 | 0x20 }
    return ["hotp", "totp", "motp"].contains(String(decoding: start, as: UTF8.self))
  }
}

/// One line: a user's token.
package struct UsersOathLine: Sendable {
  package let number: Int
  /// Spelled as in the file; empty if missing.
  package let user: [UInt8]
  package let token: Result<UsersOathToken, SourceProblem>

  init(_ text: SourceText, _ number: Int, _ words: [Range<Int>]) {
    self.number = number
    user = words.count > 1 ? text.bytes.bytes(in: words[1].prefix(1024)) : []
    do throws(SourceProblem) {
      token = .success(try UsersOathToken(text, words))
    } catch {
      token = .failure(error)
    }
  }
}

/// `TYPE USER PASSWORD KEY [COUNTER [LASTOTP [TIME]]]`
package struct UsersOathToken: Sendable {
  package let type: AuthenticatorType
  package let digits: Digits
  /// Whether TYPE specifies the digits; otherwise there are six.
  package let saysDigits: Bool
  package let key: Secret
  /// Whether the line has a clear-text password.
  package let hasPassword: Bool
  /// HOTP only: the counter of the last accepted code if there is one, otherwise of the next.
  package let counter: UInt64
  package let lastCode: UsedCode?
  /// The time of that, in the machine's local time, without its zone.
  package let lastUse: CalendarDate?

  /// A code that was accepted.
  package struct UsedCode: Equatable, Sendable {
    package let value: UInt32
    /// nil unless it has 6 to 8 digits.
    package let digits: Digits?
  }

  /// In bytes: the longest key that the other module accepts.
  package static let longestKey = 32

  fileprivate init(_ text: SourceText, _ words: [Range<Int>]) throws(SourceProblem) {
    (type, digits, saysDigits) = try UsersOathToken.type(text, words[0])
    guard words.count >= 4 else { throw .tooFewWords }
    let password = words[2]
    hasPassword = !text.bytes.holds("-", in: password) && !text.bytes.holds("+", in: password)
    key = try UsersOathToken.key(text, words[3])
    counter = words.count > 4 ? try UsersOathToken.counter(text, words[4]) : 0
    lastCode = words.count > 5 ? UsersOathToken.code(text, words[5]) : nil
    lastUse = words.count > 6 ? try UsersOathToken.date(text, words[6]) : nil
  }

  /// `HOTP`, `HOTP/E/8`, `HOTP/T30`, `HOTP/T60/7` and the like, in upper case.
  private static func type(_ text: SourceText, _ word: Range<Int>) throws(SourceProblem)
    -> (AuthenticatorType, Digits, Bool)
  {
    let bytes = text.bytes.bytes(in: word.prefix(16))
    let parts = bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
    guard parts[0] == "HOTP", parts.count <= 3, word.count <= 16 else { throw .unknownType }
    let type: AuthenticatorType
    switch parts.count > 1 ? parts[1] : "E" {
    case "E": type = .hotp
    case "T30": type = .totp(period: 30)
    case "T60": type = .totp(period: 60)
    case _: throw .unknownType
    }
    guard parts.count == 3 else { return (type, .six, false) }
    guard let digits = Digits.allCases.first(where: { "\($0.rawValue)" == parts[2] }) else {
      throw .unknownType
    }
    return (type, digits, true)
  }

  private static func key(_ text: SourceText, _ word: Range<Int>) throws(SourceProblem) -> Secret {
    guard word.count.isMultiple(of: 2) else { throw .hexadecimal }
    if word.count / 2 > longestKey { throw .keyTooLong }
    guard let key = Secret(count: word.count / 2) else { throw .outOfMemory }
    for index in 0..<key.count {
      let place = word.lowerBound + 2 * index
      guard let high = hexadecimalValue(text.bytes[place]),
        let low = hexadecimalValue(text.bytes[place + 1])
      else { throw .hexadecimal }
      key.set(index, to: high << 4 | low)
    }
    return key
  }

  private static func hexadecimalValue(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    case _: nil
    }
  }

  private static func counter(_ text: SourceText, _ word: Range<Int>) throws(SourceProblem)
    -> UInt64
  {
    guard let counter = text.number(in: word) else { throw .counter }
    return counter
  }

  /// Any word is allowed here. `-` is often written for none, and is never an accepted code.
  private static func code(_ text: SourceText, _ word: Range<Int>) -> UsedCode? {
    if text.bytes.holds("-", in: word) { return nil }
    guard word.count <= 9, let value = text.number(in: word) else {
      return UsedCode(value: 0, digits: nil)
    }
    let digits = UInt8(exactly: word.count).flatMap(Digits.init(rawValue:))
    return UsedCode(value: UInt32(truncatingIfNeeded: value), digits: digits)
  }

  /// `2026-03-03T09:12:00L`
  private static func date(_ text: SourceText, _ word: Range<Int>) throws(SourceProblem)
    -> CalendarDate
  {
    let pattern = Array("dddd-dd-ddTdd:dd:ddL".utf8)
    let bytes = text.bytes.bytes(in: word.prefix(32))
    guard bytes.count == pattern.count,
      zip(bytes, pattern).allSatisfy({ $1 == UInt8(ascii: "d") ? isDigit($0) : $0 == $1 })
    else { throw .date }
    let number = { (start: Int, count: Int) in
      bytes[start..<start + count].reduce(0) { $0 * 10 + Int($1 & 15) }
    }
    let date = CalendarDate(
      year: number(0, 4), month: number(5, 2), day: number(8, 2), hour: number(11, 2),
      minute: number(14, 2), second: number(17, 2))
    guard (1...12).contains(date.month), (1...31).contains(date.day), date.hour < 24,
      date.minute < 60, date.second <= 60
    else { throw .date }
    return date
  }
}
