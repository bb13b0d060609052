package import OneTimePassword

extension OtpauthURI {
  /// Why a text is no URI of ours. Never holds a byte of the secret.
  package enum Error: Swift.Error, Equatable {
    /// Does not begin with `otpauth://`.
    case scheme
    /// Neither `totp` nor `hotp`.
    case type
    /// A `%` without two hexadecimal digits, this many bytes into the text.
    case percentEncoding(offset: Int)
    /// Given twice: which one was meant?
    case duplicate(Parameter)
    /// `secret`, or `counter` of an HOTP.
    case missing(Parameter)
    /// Not a decimal number below 2^64.
    case number(Parameter)
    /// Digits other than 6, 7, 8, or a period outside 15…300 s.
    case range(Parameter, found: UInt64)
    /// Not SHA1, SHA256 or SHA512.
    case algorithm
    /// The offset counts in the value of `secret`, after percent-decoding.
    case secret(Base32.Error)
    /// The secret has not 1 to 1024 bytes.
    case secretLength(Int)
    /// No room for a copy; the text may be right.
    case outOfMemory
  }
}

extension OtpauthURI {
  /// Reads a URI forgivingly: scheme, type and parameter names in any case, parameters in any
  /// order, unknown ones skipped, a '+' as a plus. A parameter given twice is refused, and so is
  /// every number that is not one. Any bytes may be given.
  package init(_ text: Secret) throws(Error) {
    let reader = try OtpauthURIReader(text)
    let (issuer, account) = try reader.names()
    self.init(
      issuer: issuer, account: account, secret: try reader.secret(),
      parameters: try reader.parameters(), counter: try reader.counter())
  }

  /// As `init(_: Secret)`; the copy made for it is wiped, `text` is the caller's to wipe.
  package init(_ text: [UInt8]) throws(Error) {
    guard let text = Secret(text) else { throw .outOfMemory }
    try self.init(text)
  }
}

/// The parts of a URI as ranges of its text, so that nothing secret is copied on the way.
private struct OtpauthURIReader {
  private let text: Secret
  private let isHOTP: Bool
  private let label: Range<Int>
  /// By the raw value of the parameter.
  private var values: [Range<Int>?]

  init(_ text: Secret) throws(OtpauthURI.Error) {
    self.text = text
    let start = "otpauth://".utf8.count
    guard start <= text.count, text.spells("otpauth://", in: 0..<start) else { throw .scheme }
    let path = start..<(text.offset(of: "?", in: start..<text.count) ?? text.count)
    let type = start..<(text.offset(of: "/", in: path) ?? path.upperBound)
    isHOTP = text.spells("hotp", in: type)
    guard isHOTP || text.spells("totp", in: type) else { throw .type }
    label = min(type.upperBound + 1, path.upperBound)..<path.upperBound
    values = Array(repeating: nil, count: OtpauthURI.Parameter.allCases.count)
    try readQuery(min(path.upperBound + 1, text.count)..<text.count)
  }

  private mutating func readQuery(_ query: Range<Int>) throws(OtpauthURI.Error) {
    var start = query.lowerBound
    while start < query.upperBound {
      let end = text.offset(of: "&", in: start..<query.upperBound) ?? query.upperBound
      try readParameter(start..<end)
      start = end + 1
    }
  }

  private mutating func readParameter(_ range: Range<Int>) throws(OtpauthURI.Error) {
    let name = range.lowerBound..<(text.offset(of: "=", in: range) ?? range.upperBound)
    for parameter in OtpauthURI.Parameter.allCases where text.spells(parameter.name, in: name) {
      guard values[parameter.rawValue] == nil else { throw .duplicate(parameter) }
      values[parameter.rawValue] =
        min(name.upperBound + 1, range.upperBound)..<range.upperBound
    }
  }

  /// The issuer parameter, where there is one, is the issuer, and tells how far it goes in the
  /// label. Else the label's first ':' parts the two, or its first '%3A' if it has no ':'.
  func names() throws(OtpauthURI.Error) -> (issuer: [UInt8], account: [UInt8]) {
    let issuer = try value(of: .issuer) ?? []
    let whole = try decoded(label)
    let rest = whole.dropFirst(issuer.count)
    if !issuer.isEmpty, whole.starts(with: issuer), rest.first == UInt8(ascii: ":") {
      return (issuer, Array(rest.dropFirst()))
    }
    guard let separator = text.separator(in: label) else { return (issuer, whole) }
    let prefix = try decoded(label.lowerBound..<separator.lowerBound)
    let account = try decoded(separator.upperBound..<label.upperBound)
    return (issuer.isEmpty ? prefix : issuer, account)
  }

  func secret() throws(OtpauthURI.Error) -> Secret {
    guard let range = values[OtpauthURI.Parameter.secret.rawValue] else { throw .missing(.secret) }
    let secret = try decodedKey(range)
    guard HMACContext.keyLengths.contains(secret.count) else { throw .secretLength(secret.count) }
    return secret
  }

  private func decodedKey(_ range: Range<Int>) throws(OtpauthURI.Error) -> Secret {
    guard let buffer = Secret(count: range.count) else { throw .outOfMemory }
    var count = 0
    try decode(range) { byte in
      buffer.set(count, to: byte)
      count += 1
    }
    guard let key = buffer.slice(0..<count) else { throw .outOfMemory }
    do throws(Base32.Error) {
      return try Base32.decodeAsApps(key)
    } catch {
      throw .secret(error)
    }
  }

  func parameters() throws(OtpauthURI.Error) -> CodeParameters {
    let standard = CodeParameters.standard
    let algorithm = try value(of: .algorithm).map { HashAlgorithm(name: $0) } ?? standard.algorithm
    guard let algorithm else { throw .algorithm }
    let digitCount = try number(.digits) ?? UInt64(standard.digits.rawValue)
    guard let digits = UInt8(exactly: digitCount).flatMap(Digits.init(rawValue:)) else {
      throw .range(.digits, found: digitCount)
    }
    let seconds = isHOTP ? 30 : try number(.period) ?? 30
    guard let period = UInt32(exactly: seconds),
      let parameters = CodeParameters(
        type: isHOTP ? .hotp : .totp(period: period), algorithm: algorithm, digits: digits)
    else { throw .range(.period, found: seconds) }
    return parameters
  }

  /// Only an HOTP has one; a TOTP's is not looked at.
  func counter() throws(OtpauthURI.Error) -> UInt64 {
    guard isHOTP else { return 0 }
    guard let counter = try number(.counter) else { throw .missing(.counter) }
    return counter
  }

  private func number(
    _ parameter: OtpauthURI.Parameter
  ) throws(OtpauthURI.Error) -> UInt64? {
    guard let digits = try value(of: parameter) else { return nil }
    guard let number = decimalNumber(digits) else { throw .number(parameter) }
    return number
  }

  private func value(
    of parameter: OtpauthURI.Parameter
  ) throws(OtpauthURI.Error) -> [UInt8]? {
    guard let range = values[parameter.rawValue] else { return nil }
    return try decoded(range)
  }

  private func decoded(_ range: Range<Int>) throws(OtpauthURI.Error) -> [UInt8] {
    var bytes: [UInt8] = []
    try decode(range) { bytes.append($0) }
    return bytes
  }

  private func decode(
    _ range: Range<Int>, to put: (UInt8) -> Void
  ) throws(OtpauthURI.Error) {
    var index = range.lowerBound
    while index < range.upperBound {
      let byte = text[index]
      guard byte == UInt8(ascii: "%") else {
        put(byte)
        index += 1
        continue
      }
      guard index + 2 < range.upperBound, let high = hexadecimalValue(text[index + 1]),
        let low = hexadecimalValue(text[index + 2])
      else { throw .percentEncoding(offset: index) }
      put(high << 4 | low)
      index += 3
    }
  }
}

extension Secret {
  /// Whether the bytes in `range` are the lower-case `word`, in any case.
  fileprivate func spells(_ word: StaticString, in range: Range<Int>) -> Bool {
    same(word, bytes(in: range).map(lowercased))
  }

  fileprivate func offset(of scalar: Unicode.Scalar, in range: Range<Int>) -> Int? {
    range.first { self[$0] == UInt8(ascii: scalar) }
  }

  /// Where issuer and account part in a label that is still percent-encoded.
  fileprivate func separator(in label: Range<Int>) -> Range<Int>? {
    if let colon = offset(of: ":", in: label) { return colon..<(colon + 1) }
    let encoded = label.first { start in
      start + 3 <= label.upperBound && spells("%3a", in: start..<(start + 3))
    }
    return encoded.map { $0..<($0 + 3) }
  }
}

private func hexadecimalValue(_ byte: UInt8) -> UInt8? {
  let byte = lowercased(byte)
  if byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") { return byte - UInt8(ascii: "0") }
  if byte >= UInt8(ascii: "a"), byte <= UInt8(ascii: "f") { return byte - UInt8(ascii: "a") + 10 }
  return nil
}

/// Digits alone, at least one, and below 2^64.
private func decimalNumber(_ digits: [UInt8]) -> UInt64? {
  var number: UInt64 = 0
  for byte in digits {
    guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return nil }
    let (tens, tooBig) = number.multipliedReportingOverflow(by: 10)
    let (sum, carried) = tens.addingReportingOverflow(UInt64(byte - UInt8(ascii: "0")))
    guard !tooBig, !carried else { return nil }
    number = sum
  }
  return digits.isEmpty ? nil : number
}
