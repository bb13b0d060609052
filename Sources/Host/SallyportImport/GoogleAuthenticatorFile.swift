package import OneTimePassword
import SallyportCore

/// A user's `.google_authenticator`, parsed as pam_google_authenticator does: a line with the
/// secret, then options and scratch codes in any order.
package struct GoogleAuthenticatorFile: Sendable {
  /// The type of the codes.
  package enum Kind: Equatable, Sendable {
    /// The time step in seconds.
    case totp(period: UInt32)
    /// The counter of the next code, from 1.
    case hotp(next: UInt64)
  }

  package let secret: Secret
  package let kind: Kind
  /// The time steps whose codes were used recently; nil if codes may be reused, or if the list
  /// cannot be parsed.
  package let usedSteps: [UInt64]?
  /// How many codes are accepted at any moment.
  package let window: UInt32
  /// The clock offset that is allowed for, in time steps.
  package let skew: Int64
  /// The ones that work, of eight digits each.
  package let scratchCodes: [Secret]
  /// How many scratch codes come after a line at which the other module stops looking for them.
  package let deadScratchCodes: Int

  /// In bytes: the most that the other module reads.
  package static let longest = 65536

  /// Any bytes give a result. Accepts what the other module accepts, and rejects what it rejects.
  package static func parse(_ bytes: Secret) throws(LineProblem) -> GoogleAuthenticatorFile {
    if bytes.count > longest { throw LineProblem(1, .tooLong) }
    let text = SourceText(bytes)
    if text.offset(of: 0, in: 0..<bytes.count) != nil { throw LineProblem(1, .notText) }
    return try GoogleAuthenticatorFile(text)
  }

  private init(_ text: SourceText) throws(LineProblem) {
    let lines = text.lines
    guard let first = lines.first else { throw LineProblem(1, .empty) }
    secret = try GoogleAuthenticatorFile.secret(text, first)
    let options = GoogleAuthenticatorOptions(text, lines)
    kind = try options.kind()
    usedSteps = options.usedSteps()
    window = try options.number("WINDOW_SIZE", in: 1...100) ?? 3
    skew = options.skew()
    let scratch = GoogleAuthenticatorScratchCodes(text, lines.dropFirst())
    (scratchCodes, deadScratchCodes) = (scratch.codes, scratch.dead)
  }

  /// Parses the first line. Spaces and hyphens are ignored, 0, 1 and 8 stand for O, L and B, and
  /// leftover bits that do not fill a byte are dropped.
  private static func secret(_ text: SourceText, _ line: SourceText.Line) throws(LineProblem)
    -> Secret
  {
    guard let decoded = Secret(count: line.range.count) else { throw LineProblem(1, .outOfMemory) }
    var (count, pending, bits) = (0, UInt32(0), 0)
    for index in line.range {
      let byte = text.bytes[index]
      if text.isBlank(byte) || byte == UInt8(ascii: "-") { continue }
      guard let value = value(of: byte) else { throw LineProblem(line.number, .base32) }
      pending = (pending << 5 | value) & 0xfff
      bits += 5
      if bits >= 8 {
        bits -= 8
        decoded.set(count, to: UInt8(truncatingIfNeeded: pending >> UInt32(bits)))
        count += 1
      }
    }
    if count == 0 { throw LineProblem(line.number, .base32) }
    guard let secret = decoded.slice(0..<count) else { throw LineProblem(1, .outOfMemory) }
    return secret
  }

  private static func value(of byte: UInt8) -> UInt32? {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(byte - UInt8(ascii: "a"))
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(byte - UInt8(ascii: "A"))
    case UInt8(ascii: "2")...UInt8(ascii: "7"): UInt32(byte - UInt8(ascii: "2")) + 26
    case UInt8(ascii: "0"): 14
    case UInt8(ascii: "1"): 11
    case UInt8(ascii: "8"): 1
    case _: nil
    }
  }
}

/// The lines `" NAME value`. If a name is repeated, the first counts.
private struct GoogleAuthenticatorOptions {
  private let text: SourceText
  private let lines: [SourceText.Line]

  init(_ text: SourceText, _ lines: [SourceText.Line]) { (self.text, self.lines) = (text, lines) }

  /// HOTP if there is a counter above 0, whatever else is set.
  func kind() throws(LineProblem) -> GoogleAuthenticatorFile.Kind {
    if let (next, _) = integer("HOTP_COUNTER"), next > 0 { return .hotp(next: UInt64(next)) }
    // The other module looks for just this text, anywhere in the file.
    guard contains("\" TOTP_AUTH") else { throw LineProblem(1, .noType) }
    let period = try number("STEP_SIZE", in: 1...60) ?? 30
    guard CodeParameters.periods.contains(period) else {
      throw LineProblem(integer("STEP_SIZE")?.line ?? 1, .period(UInt64(period)))
    }
    return .totp(period: period)
  }

  /// Returns nil also if one of the steps is not a number, since it may be the latest.
  func usedSteps() -> [UInt64]? {
    guard let (range, _) = value("DISALLOW_REUSE") else { return nil }
    var steps: [UInt64] = []
    for word in text.words(in: range) {
      guard let step = text.number(in: word) else { return nil }
      steps.append(step)
    }
    return steps
  }

  func skew() -> Int64 { integer("TIME_SKEW")?.value ?? 0 }

  func number(_ name: StaticString, in range: ClosedRange<UInt64>) throws(LineProblem) -> UInt32? {
    guard let (place, line) = value(name) else { return nil }
    guard let number = text.number(in: place), range.contains(number) else {
      throw LineProblem(line, .option("\(name)"))
    }
    return UInt32(truncatingIfNeeded: number)
  }

  /// The number at the start of the value, as strtol(3) parses it; 0 if there is none.
  private func integer(_ name: StaticString) -> (value: Int64, line: Int)? {
    guard let (range, line) = value(name) else { return nil }
    var (index, isNegative) = (range.lowerBound, false)
    if index < range.upperBound, [0x2b, 0x2d].contains(text.bytes[index]) {
      isNegative = text.bytes[index] == 0x2d
      index += 1
    }
    var number: Int64 = 0
    while index < range.upperBound, (0x30...0x39).contains(text.bytes[index]) {
      let (tens, tooBig) = number.multipliedReportingOverflow(by: 10)
      let (sum, over) = tens.addingReportingOverflow(Int64(text.bytes[index] & 15))
      number = tooBig || over ? Int64.max : sum
      index += 1
    }
    return (isNegative ? -number : number, line)
  }

  private func value(_ name: StaticString) -> (range: Range<Int>, line: Int)? {
    for line in lines {
      if let range = value(name, in: line.range) { return (range, line.number) }
    }
    return nil
  }

  private func value(_ name: StaticString, in line: Range<Int>) -> Range<Int>? {
    let end = text.offset(of: 0x0d, in: line) ?? line.upperBound
    let start = line.lowerBound + 2 + name.utf8CodeUnitCount
    guard start <= end, text.bytes.holds("\" ", in: line.lowerBound..<line.lowerBound + 2),
      text.bytes.holds(name, in: line.lowerBound + 2..<start)
    else { return nil }
    guard start == end || text.isBlank(text.bytes[start]) else { return nil }
    let value = (start..<end).drop { text.isBlank(text.bytes[$0]) }
    return value.startIndex..<end
  }

  private func contains(_ part: StaticString) -> Bool {
    let last = text.bytes.count - part.utf8CodeUnitCount
    guard last >= 0 else { return false }
    return (0...last).contains { text.bytes.holds(part, in: $0..<$0 + part.utf8CodeUnitCount) }
  }
}

/// The lines of eight digits, up to the first line that is neither that, nor blank, nor an option.
private struct GoogleAuthenticatorScratchCodes {
  private(set) var codes: [Secret] = []
  private(set) var dead = 0

  init(_ text: SourceText, _ lines: ArraySlice<SourceText.Line>) {
    var isOver = false
    for line in lines {
      let words = text.words(in: line.range)
      guard let word = words.first, text.first(of: line.range) != UInt8(ascii: "\"") else {
        continue
      }
      let end = word.upperBound
      let isAlone = end == line.range.upperBound || text.bytes[end] == 0x0d
      guard words.count == 1, isAlone, let code = Self.code(text, word) else {
        isOver = true
        continue
      }
      if isOver {
        dead += 1
      } else if !codes.contains(where: { constantTimeEquals($0, code) }) {
        codes.append(code)
      }
    }
  }

  /// Returns nil unless the number has eight digits, without leading zeros.
  private static func code(_ text: SourceText, _ word: Range<Int>) -> Secret? {
    let digits = (word.lowerBound..<word.upperBound).drop { text.bytes[$0] == UInt8(ascii: "0") }
    guard digits.count == 8, digits.allSatisfy({ (0x30...0x39).contains(text.bytes[$0]) }) else {
      return nil
    }
    return text.bytes.slice(digits.startIndex..<digits.endIndex)
  }
}
