extension OtpauthURI {
  /// The URI. `omittingDefaults` leaves out SHA1, 6 digits and 30 s, which readers assume: a
  /// smaller QR code to draw. The complete form is the one to print and keep. nil if memory is
  /// short.
  package func text(omittingDefaults: Bool = false) -> Secret? {
    guard let key = Base32.encode(secret) else { return nil }
    var measure = OtpauthURIWriter(target: nil)
    measure.put(self, key: key, omittingDefaults: omittingDefaults)
    guard let text = Secret(count: measure.count) else { return nil }
    var writer = OtpauthURIWriter(target: text)
    writer.put(self, key: key, omittingDefaults: omittingDefaults)
    return text
  }
}

/// Writes a URI into a secret of the right size, or without a target only counts its bytes.
private struct OtpauthURIWriter {
  let target: Secret?
  private(set) var count = 0

  init(target: Secret?) {
    self.target = target
  }

  mutating func put(_ uri: OtpauthURI, key: Secret, omittingDefaults: Bool) {
    put(uri.parameters.type == .hotp ? "otpauth://hotp/" : "otpauth://totp/")
    putLabel(uri)
    put("?secret=")
    for index in 0..<key.count { put(key[index]) }
    if !uri.issuer.isEmpty { put(.issuer, uri.issuer) }
    let standard = CodeParameters.standard
    let (algorithm, digits) = (uri.parameters.algorithm, uri.parameters.digits)
    if !omittingDefaults || algorithm != standard.algorithm {
      put(.algorithm, bytes(of: algorithm.name))
    }
    if !omittingDefaults || digits != standard.digits { put(.digits, UInt64(digits.rawValue)) }
    switch uri.parameters.type {
    case .hotp: put(.counter, uri.counter)
    case .totp(let period):
      if !omittingDefaults || uri.parameters.type != standard.type { put(.period, UInt64(period)) }
    }
  }

  /// The one ':' that is not encoded parts issuer and account, so the label needs it even without
  /// an issuer where the account has a ':' of its own.
  private mutating func putLabel(_ uri: OtpauthURI) {
    putEncoded(uri.issuer)
    if !uri.issuer.isEmpty || uri.account.contains(UInt8(ascii: ":")) { put(UInt8(ascii: ":")) }
    putEncoded(uri.account)
  }

  private mutating func put(_ parameter: OtpauthURI.Parameter, _ number: UInt64) {
    var digits: [UInt8] = []
    var rest = number
    repeat {
      digits.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
      rest /= 10
    } while rest > 0
    put(parameter, digits.reversed())
  }

  private mutating func put(_ parameter: OtpauthURI.Parameter, _ value: [UInt8]) {
    put(UInt8(ascii: "&"))
    put(parameter.name)
    put(UInt8(ascii: "="))
    putEncoded(value)
  }

  /// RFC 3986 §2.1; '@' may stand in a path and in a query (§3.3, §3.4) and is common in accounts.
  private mutating func putEncoded(_ bytes: [UInt8]) {
    for byte in bytes {
      if isUnreserved(byte) || byte == UInt8(ascii: "@") {
        put(byte)
      } else {
        put(UInt8(ascii: "%"))
        put(hexadecimalDigit(byte >> 4))
        put(hexadecimalDigit(byte & 15))
      }
    }
  }

  private mutating func put(_ text: StaticString) {
    for byte in bytes(of: text) { put(byte) }
  }

  private mutating func put(_ byte: UInt8) {
    target?.set(count, to: byte)
    count += 1
  }
}

/// RFC 3986 §2.3.
private func isUnreserved(_ byte: UInt8) -> Bool {
  let letter = lowercased(byte)
  if letter >= UInt8(ascii: "a"), letter <= UInt8(ascii: "z") { return true }
  if byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") { return true }
  return byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_")
    || byte == UInt8(ascii: "~")
}

/// Of 0 to 15, in upper case as RFC 3986 §2.1 asks.
private func hexadecimalDigit(_ value: UInt8) -> UInt8 {
  value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + (value - 10)
}
