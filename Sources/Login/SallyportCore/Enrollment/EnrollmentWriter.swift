package import OneTimePassword

extension Enrollment {
  /// The text of an enrollment file (docs/enrollment-format.md); nil if memory is short.
  package func written() -> Secret? {
    var text = SecretText(capacity: 8192 + 1024 * authenticators.count)
    text.add("# Sallyport enrollment: holds secrets. Change it with sallyport(1) only.\n")
    text.add("version", bytes(of: "1"))
    text.add("user", user.bytes)
    text.add("uid", uid.map { decimalText(UInt64($0)) } ?? bytes(of: "none"))
    text.add("id", hexadecimal(id))
    text.add("created", decimalText(UInt64(max(created.seconds, 0))))
    for authenticator in authenticators { authenticator.write(to: &text) }
    if let backupCodes { backupCodes.write(to: &text) }
    for pass in passes { pass.write(to: &text) }
    for one in suspended { one.write(to: &text) }
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
      text.add("type", bytes(of: "totp"))
      text.add("period", decimalText(UInt64(period)))
    case .hotp: text.add("type", bytes(of: "hotp"))
    }
    text.add("algorithm", bytes(of: parameters.algorithm.name))
    text.add("digits", decimalText(UInt64(parameters.digits.rawValue)))
    text.add("last_accepted", initialLastAccepted.map(decimalText) ?? bytes(of: "none"))
    text.add("secret", Base32.encode(secret))
    text.add("created", decimalText(UInt64(max(created.seconds, 0))))
    guard let clockOffset else { return }
    let sign = clockOffset < 0 ? [UInt8(ascii: "-")] : []
    text.add("clock_offset", sign + decimalText(UInt64(clockOffset.magnitude)))
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

extension Pass {
  fileprivate func write(to text: inout SecretText) {
    text.add("\n[pass]\n")
    text.add("id", hexadecimal(id))
    text.add("created", decimalText(UInt64(max(created.seconds, 0))))
    text.add("expires", decimalText(UInt64(max(expires.seconds, 0))))
    text.add("uses", decimalText(UInt64(uses)))
    text.add("code", hexadecimal(digest))
    if enrolls { text.add("enrolls", bytes(of: "yes")) }
  }
}

extension Suspension {
  fileprivate func write(to text: inout SecretText) {
    text.add("\n[suspended]\n")
    text.add("id", hexadecimal(id))
    text.add("created", decimalText(UInt64(max(since.seconds, 0))))
  }
}
