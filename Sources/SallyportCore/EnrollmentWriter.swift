package import OneTimePassword

extension Enrollment {
  /// The text of an enrollment file (docs/enrollment-format.md); nil where memory is short.
  package func written() -> Secret? {
    var text = SecretText(capacity: 4096 + 1024 * authenticators.count)
    text.add("# Sallyport enrollment: holds secrets. Change it with sallyport(1) only.\n")
    text.add("version", "1")
    text.add("user", user.bytes)
    text.add("uid", uid.map { decimalText(UInt64($0)) } ?? [UInt8]("none".utf8))
    text.add("id", hexadecimal(id))
    text.add("created", decimalText(UInt64(max(created.seconds, 0))))
    for authenticator in authenticators { authenticator.write(to: &text) }
    if let backupCodes { backupCodes.write(to: &text) }
    text.add("\n[end]\n")
    return text.finish()
  }
}

extension Authenticator {
  fileprivate func write(to text: inout SecretText) {
    text.add("\n[authenticator]\n")
    text.add("id", hexadecimal(id))
    text.add("name", name.bytes)
    switch parameters.type {
    case .totp(let period):
      text.add("type", "totp")
      text.add("period", decimalText(UInt64(period)))
    case .hotp: text.add("type", "hotp")
    }
    text.add("algorithm", parameters.algorithm.name.utf8)
    text.add("digits", decimalText(UInt64(parameters.digits.rawValue)))
    text.add("last_accepted", initialLastAccepted.map(decimalText) ?? [UInt8]("none".utf8))
    text.add("secret", Base32.encode(secret))
    text.add("created", decimalText(UInt64(max(created.seconds, 0))))
  }
}

extension BackupCodeSet {
  fileprivate func write(to text: inout SecretText) {
    text.add("\n[backup_codes]\n")
    text.add("id", hexadecimal(id))
    text.add("salt", hexadecimal(salt))
    for digest in digests { text.add("code", hexadecimal(digest)) }
    for digest in scratchDigests { text.add("scratch_code", hexadecimal(digest)) }
  }
}

/// A text of bounded length in one wiped buffer: an array that grows leaves copies behind.
private struct SecretText {
  private let buffer: Secret?
  private var length = 0
  private var isWhole = true

  init(capacity: Int) { buffer = Secret(count: capacity) }

  mutating func add(_ key: StaticString, _ value: some Collection<UInt8>) {
    add(key)
    add(" = ")
    for byte in value { put(byte) }
    add("\n")
  }

  mutating func add(_ key: StaticString, _ value: StaticString) {
    add(key)
    add(" = ")
    add(value)
    add("\n")
  }

  mutating func add(_ key: StaticString, _ value: Secret?) {
    guard let value else {
      isWhole = false
      return
    }
    add(key)
    add(" = ")
    for index in 0..<value.count { put(value[index]) }
    add("\n")
  }

  mutating func add(_ text: StaticString) {
    // SAFETY: the pointer and the count are those of one static string.
    for index in 0..<text.utf8CodeUnitCount { put(unsafe text.utf8Start[index]) }
  }

  /// nil where memory was short or the text did not fit.
  func finish() -> Secret? { isWhole ? buffer?.slice(0..<length) : nil }

  private mutating func put(_ byte: UInt8) {
    guard let buffer, length < buffer.count else {
      isWhole = false
      return
    }
    // SAFETY: the index was compared with the count.
    unsafe buffer.withMutableBytes { unsafe $0[length] = byte }
    length += 1
  }
}
