package import OneTimePassword

extension Enrollment {
  /// Reads an enrollment file (docs/enrollment-format.md). Total: any bytes give an enrollment that
  /// keeps all rules, or an error with its line. Unknown keys are refused, not skipped: whoever
  /// does not know them would decide without them.
  package static func read(_ text: Secret) throws(SettingsError) -> Enrollment {
    var reader = EnrollmentReader(text: text)
    for line in try settingsLines(of: text) {
      switch line {
      case .section(let name, let number): try reader.open(name, number)
      case .setting(let key, let value, let number): try reader.take(key, value, number)
      }
    }
    return try reader.finish()
  }
}

private struct EnrollmentReader {
  let text: Secret
  private var section = Section.head
  private var sectionLine = 1
  private var fields: [Field] = []
  private var head: [Field] = []
  private var authenticators: [Authenticator] = []
  private var backupCodes: BackupCodeSet?

  private enum Section { case head, authenticator, backupCodes, end }

  private struct Field {
    let key: [UInt8]
    let value: Range<Int>
    let line: Int
  }

  init(text: Secret) { self.text = text }

  // MARK: lines

  mutating func open(_ name: [UInt8], _ line: Int) throws(SettingsError) {
    guard section != .end else { throw SettingsError(line: line, .unknownSection) }
    try close()
    if same("authenticator", name) {
      section = .authenticator
    } else if same("backup_codes", name) {
      section = .backupCodes
    } else if same("end", name) {
      section = .end
    } else {
      throw SettingsError(line: line, .unknownSection)
    }
    sectionLine = line
  }

  mutating func take(_ key: [UInt8], _ value: Range<Int>, _ line: Int) throws(SettingsError) {
    guard isKnown(key) else { throw SettingsError(line: line, .unknownKey) }
    if !same("code", key), fields.contains(where: { $0.key == key }) {
      throw SettingsError(line: line, .duplicateKey)
    }
    fields.append(Field(key: key, value: value, line: line))
  }

  // Comparisons, not one array for each section: Embedded Swift 6.3 numbers the constant arrays of
  // a function anew in every module that repeats it, and the linker then mixes them up.
  private func isKnown(_ key: [UInt8]) -> Bool {
    switch section {
    case .head:
      same("version", key) || same("user", key) || same("uid", key) || same("id", key)
        || same("created", key)
    case .authenticator:
      same("id", key) || same("name", key) || same("type", key) || same("algorithm", key)
        || same("digits", key) || same("period", key) || same("last_accepted", key)
        || same("secret", key) || same("created", key)
    case .backupCodes: same("id", key) || same("salt", key) || same("code", key)
    case .end: false
    }
  }

  private mutating func close() throws(SettingsError) {
    switch section {
    case .head:
      let version = try number("version", in: 1...1)
      _ = version
      head = fields
    case .authenticator: try closeAuthenticator()
    case .backupCodes: try closeBackupCodes()
    case .end: break
    }
    fields = []
  }

  // MARK: sections

  private mutating func closeAuthenticator() throws(SettingsError) {
    guard authenticators.count < Enrollment.maximumAuthenticators else {
      throw SettingsError(line: sectionLine, .tooMany("authenticator"))
    }
    let authenticator = Authenticator(
      id: try identifier(), name: try label("name"), parameters: try parameters(),
      secret: try secret(), initialLastAccepted: try lastAccepted(), created: try time())
    if authenticators.contains(where: { $0.id == authenticator.id }) {
      throw SettingsError(line: sectionLine, .notUnique("id"))
    }
    if authenticators.contains(where: { $0.name == authenticator.name }) {
      throw SettingsError(line: sectionLine, .notUnique("name"))
    }
    authenticators.append(authenticator)
  }

  private mutating func closeBackupCodes() throws(SettingsError) {
    guard backupCodes == nil else {
      throw SettingsError(line: sectionLine, .tooMany("backup_codes"))
    }
    var digests: [[UInt8]] = []
    for field in fields where same("code", field.key) {
      digests.append(try octets(field, "code", count: 32, wanted: "64 hexadecimal digits"))
    }
    guard digests.count <= BackupCodeSet.maximumCodes else {
      throw SettingsError(line: sectionLine, .tooMany("code"))
    }
    let salt = try octets(
      try field("salt"), "salt", count: BackupCodeSet.saltLength, wanted: "32 hexadecimal digits")
    backupCodes = BackupCodeSet(id: try identifier(), salt: salt, digests: digests)
  }

  /// Without its `[end]` a text has lost its tail: it could be a whole enrollment with fewer
  /// authenticators or backup codes, whose state would then be forgotten.
  mutating func finish() throws(SettingsError) -> Enrollment {
    guard section == .end else { throw SettingsError(line: sectionLine, .missing("[end]")) }
    guard !authenticators.isEmpty else { throw SettingsError(line: 1, .missing("authenticator")) }
    (fields, sectionLine) = (head, 1)
    let name = try field("user")
    guard let user = UserName(name.value.map { text[$0] }) else {
      throw SettingsError(line: name.line, .value("user", wanted: "a login name"))
    }
    return Enrollment(
      id: try identifier(), user: user, uid: try uid(), created: try time(),
      authenticators: authenticators, backupCodes: backupCodes)
  }

  // MARK: values

  private func field(_ key: StaticString) throws(SettingsError) -> Field {
    guard let field = fields.first(where: { same(key, $0.key) }) else {
      throw SettingsError(line: sectionLine, .missing(key))
    }
    return field
  }

  private func number(_ key: StaticString, in range: ClosedRange<UInt64>)
    throws(SettingsError) -> UInt64
  {
    let field = try field(key)
    guard let value = decimal(field.value.map { text[$0] }), range.contains(value) else {
      throw SettingsError(line: field.line, .value(key, wanted: "a whole number in its range"))
    }
    return value
  }

  private func octets(_ field: Field, _ key: StaticString, count: Int, wanted: StaticString)
    throws(SettingsError) -> [UInt8]
  {
    guard let octets = bytes(fromHexadecimal: field.value.map { text[$0] }), octets.count == count
    else { throw SettingsError(line: field.line, .value(key, wanted: wanted)) }
    return octets
  }

  private func identifier() throws(SettingsError) -> UInt64 {
    let field = try field("id")
    let octets = try octets(field, "id", count: 8, wanted: "16 hexadecimal digits, not all 0")
    let id = octets.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    guard id != 0 else {
      throw SettingsError(
        line: field.line, .value("id", wanted: "16 hexadecimal digits, not all 0"))
    }
    return id
  }

  private func label(_ key: StaticString) throws(SettingsError) -> Label {
    let field = try field(key)
    guard let label = Label(field.value.map { text[$0] }) else {
      throw SettingsError(line: field.line, .value(key, wanted: "1 to 64 bytes of printable UTF-8"))
    }
    return label
  }

  private func time() throws(SettingsError) -> UnixTime {
    UnixTime(Int64(try number("created", in: 0...UInt64(Int64.max))))
  }

  private func uid() throws(SettingsError) -> UInt32? {
    let field = try field("uid")
    if same("none", field.value.map { text[$0] }) { return nil }
    return UInt32(try number("uid", in: 0...UInt64(UInt32.max - 1)))
  }

  private func lastAccepted() throws(SettingsError) -> UInt64? {
    let field = try field("last_accepted")
    if same("none", field.value.map { text[$0] }) { return nil }
    return try number("last_accepted", in: 0...UInt64.max)
  }

  private func parameters() throws(SettingsError) -> CodeParameters {
    let (algorithm, type) = (try field("algorithm"), try field("type"))
    guard let hash = HashAlgorithm(name: algorithm.value.map({ text[$0] })) else {
      throw SettingsError(
        line: algorithm.line, .value("algorithm", wanted: "SHA1, SHA256 or SHA512"))
    }
    let count = try number("digits", in: 6...8)
    guard let digits = Digits(rawValue: UInt8(count)),
      let parameters = CodeParameters(
        type: try authenticatorType(type), algorithm: hash, digits: digits)
    else { throw SettingsError(line: type.line, .value("period", wanted: "15 to 300 seconds")) }
    return parameters
  }

  private func authenticatorType(_ type: Field) throws(SettingsError) -> AuthenticatorType {
    let name = type.value.map { text[$0] }
    if same("totp", name) { return .totp(period: UInt32(try number("period", in: 15...300))) }
    guard same("hotp", name) else {
      throw SettingsError(line: type.line, .value("type", wanted: "totp or hotp"))
    }
    if let period = fields.first(where: { same("period", $0.key) }) {
      throw SettingsError(line: period.line, .value("period", wanted: "totp"))
    }
    return .hotp
  }

  private func secret() throws(SettingsError) -> Secret {
    let field = try field("secret")
    guard let base32 = text.slice(field.value) else {
      throw SettingsError(line: field.line, .outOfMemory)
    }
    let secret: Secret
    do throws(Base32.Error) {
      secret = try Base32.decode(base32)
    } catch {
      throw SettingsError(line: field.line, .value("secret", wanted: "base32 (RFC 4648)"))
    }
    guard (Secret.shortestKey...Secret.longestKey).contains(secret.count) else {
      throw SettingsError(line: field.line, .value("secret", wanted: "10 to 128 bytes in base32"))
    }
    return secret
  }
}

extension Secret {
  /// Bytes of the shortest key that is taken: 80 bits, as the oldest authenticator apps made.
  package static let shortestKey = 10
  /// Bytes of the longest key that is taken.
  package static let longestKey = 128
}
