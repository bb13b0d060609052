package import OneTimePassword

extension Enrollment {
  /// Parses an enrollment file (docs/enrollment-format.md). Any bytes give an enrollment that keeps
  /// all rules, or an error with its line. Unknown keys are an error, since to ignore them would be
  /// to decide without them.
  package static func read(_ text: Secret) throws(SettingsError) -> Enrollment {
    let enrollment = try readPart(text)
    guard !enrollment.authenticators.isEmpty else {
      throw SettingsError(line: 1, .missing("authenticator"))
    }
    return enrollment
  }

  /// The first key of a file that is on its way between this machine and its fleet: no
  /// login is decided by it, and only the command that moves it reads the rest.
  package static var markKey: StaticString { "fleet" }

  /// The same for a part of an enrollment, which may lack authenticators.
  package static func readPart(_ text: Secret) throws(SettingsError) -> Enrollment {
    var reader = EnrollmentReader(text: text)
    var lines = try SettingsScanner(text)
    while let line = try lines.next() {
      switch line {
      case .section(let name): try reader.open(name, lines.number)
      case .setting(let key, let value): try reader.take(key, value, lines.number)
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
  private var digests: [[UInt8]] = []
  private var scratchDigests: [[UInt8]] = []
  private var authenticators: [Authenticator] = []
  private var backupCodes: BackupCodeSet?
  private var passes: [Pass] = []
  private var suspended: [Suspension] = []

  init(text: Secret) {
    self.text = text
    fields.reserveCapacity(Key.mostInASection)
    digests.reserveCapacity(BackupCodeSet.usualCodes)
  }

  // MARK: lines

  mutating func open(_ name: Range<Int>, _ line: Int) throws(SettingsError) {
    guard section != .end else { throw SettingsError(line: line, .unknownSection) }
    try close()
    if text.holds("authenticator", in: name) {
      section = .authenticator
    } else if text.holds("backup_codes", in: name) {
      section = .backupCodes
    } else if text.holds("pass", in: name) {
      section = .pass
    } else if text.holds("suspended", in: name) {
      section = .suspended
    } else if text.holds("end", in: name) {
      section = .end
    } else {
      throw SettingsError(line: line, .unknownSection)
    }
    sectionLine = line
  }

  mutating func take(_ name: Range<Int>, _ value: Range<Int>, _ line: Int) throws(SettingsError) {
    guard let key = Key(spelledIn: text, at: name), key.belongs(to: section) else {
      let isMoving = section == .head && text.holds(Enrollment.markKey, in: name)
      throw SettingsError(line: line, isMoving ? .moving : .unknownKey)
    }
    let field = Field(key: key, value: value, line: line)
    switch key {
    case .code where section == .backupCodes: digests.append(try digest(field))
    case .scratchCode: scratchDigests.append(try digest(field))
    case .code, .id, .created, .version, .user, .uid, .name, .type, .algorithm, .digits, .period,
      .lastAccepted, .secret, .salt, .expires, .uses, .enrolls, .clockOffset:
      if given(key) != nil { throw SettingsError(line: line, .duplicateKey) }
      fields.append(field)
    }
  }

  private mutating func close() throws(SettingsError) {
    switch section {
    case .head:
      _ = try number(.version, in: 1...1)
      head = fields
    case .authenticator: try closeAuthenticator()
    case .backupCodes: try closeBackupCodes()
    case .pass: try closePass()
    case .suspended: try closeSuspended()
    case .end: break
    }
    fields = []
    fields.reserveCapacity(Key.mostInASection)
  }

  // MARK: sections

  private mutating func closeAuthenticator() throws(SettingsError) {
    guard authenticators.count < Enrollment.maximumAuthenticators else {
      throw SettingsError(line: sectionLine, .tooMany("authenticator"))
    }
    let parameters = try parameters()
    let authenticator = Authenticator(
      id: try identifier(), name: try label(.name), parameters: parameters,
      secret: try secret(), initialLastAccepted: try lastAccepted(), created: try time(),
      clockOffset: try clockOffset(parameters.type))
    for other in authenticators {
      if other.id == authenticator.id { throw SettingsError(line: sectionLine, .notUnique("id")) }
      if other.name == authenticator.name {
        throw SettingsError(line: sectionLine, .notUnique("name"))
      }
    }
    authenticators.append(authenticator)
  }

  private mutating func closeBackupCodes() throws(SettingsError) {
    guard backupCodes == nil else {
      throw SettingsError(line: sectionLine, .tooMany("backup_codes"))
    }
    guard digests.count <= BackupCodeSet.maximumCodes else {
      throw SettingsError(line: sectionLine, .tooMany(Key.code.name))
    }
    guard scratchDigests.count <= BackupCodeSet.maximumCodes else {
      throw SettingsError(line: sectionLine, .tooMany(Key.scratchCode.name))
    }
    let salt = try octets(
      try field(.salt), count: BackupCodeSet.saltLength, wanted: "32 hexadecimal digits")
    backupCodes = BackupCodeSet(
      id: try identifier(), salt: salt, digests: digests, scratchDigests: scratchDigests)
  }

  private mutating func closePass() throws(SettingsError) {
    guard passes.count < Pass.maximumOpen else {
      throw SettingsError(line: sectionLine, .tooMany("pass"))
    }
    let pass = Pass(
      id: try identifier(), digest: try digest(try field(.code)), created: try time(.created),
      expires: try time(.expires),
      uses: UInt8(truncatingIfNeeded: try number(.uses, in: Pass.usesRange)),
      enrolls: try enrolls())
    for other in passes where other.id == pass.id {
      throw SettingsError(line: sectionLine, .notUnique("id"))
    }
    passes.append(pass)
  }

  private mutating func closeSuspended() throws(SettingsError) {
    guard suspended.count < Suspension.maximum else {
      throw SettingsError(line: sectionLine, .tooMany("suspended"))
    }
    let one = Suspension(id: try identifier(), since: try time())
    for other in suspended where other.id == one.id {
      throw SettingsError(line: sectionLine, .notUnique("id"))
    }
    suspended.append(one)
  }

  /// Without `[end]`, the end of the text is missing: the rest could be a valid enrollment with
  /// fewer authenticators or backup codes, whose state would then be dropped.
  mutating func finish() throws(SettingsError) -> Enrollment {
    guard section == .end else { throw SettingsError(line: sectionLine, .missing("[end]")) }
    (fields, sectionLine) = (head, 1)
    let name = try field(.user)
    guard let user = UserName(text.bytes(in: name.value)) else {
      throw wrong(name, "a login name")
    }
    return Enrollment(
      id: try identifier(), user: user, uid: try uid(), created: try time(),
      authenticators: authenticators, backupCodes: backupCodes, passes: passes,
      suspended: suspended)
  }

  // MARK: values

  private func given(_ key: Key) -> Field? {
    for field in fields where field.key == key { return field }
    return nil
  }

  @inline(never) private func field(_ key: Key) throws(SettingsError) -> Field {
    guard let field = given(key) else {
      throw SettingsError(line: sectionLine, .missing(key.name))
    }
    return field
  }

  @inline(never) private func wrong(_ field: Field, _ wanted: StaticString) -> SettingsError {
    SettingsError(line: field.line, .value(field.key.name, wanted: wanted))
  }

  @inline(never) private func number(_ key: Key, in range: ClosedRange<UInt64>)
    throws(SettingsError) -> UInt64
  {
    let field = try field(key)
    let digits = text.bytes(in: field.value)
    guard let value = decimal(digits), range.contains(value),
      digits.count == 1 || digits.first != UInt8(ascii: "0")
    else {
      throw wrong(field, "a whole number in its range")
    }
    return value
  }

  /// nil for the word `none`.
  private func numberOrNone(_ key: Key, upTo most: UInt64) throws(SettingsError) -> UInt64? {
    if text.holds("none", in: try field(key).value) { return nil }
    return try number(key, in: 0...most)
  }

  /// Without the line it does not.
  private func enrolls() throws(SettingsError) -> Bool {
    guard let field = given(.enrolls) else { return false }
    guard text.holds("yes", in: field.value) else { throw wrong(field, "yes") }
    return true
  }

  private func digest(_ field: Field) throws(SettingsError) -> [UInt8] {
    try octets(field, count: 32, wanted: "64 hexadecimal digits")
  }

  private func octets(_ field: Field, count: Int, wanted: StaticString)
    throws(SettingsError) -> [UInt8]
  {
    guard let octets = text.octets(count, spelledIn: field.value) else {
      throw wrong(field, wanted)
    }
    return octets
  }

  @inline(never) private func identifier() throws(SettingsError) -> UInt64 {
    let field = try field(.id)
    guard let id = text.hexadecimal(in: field.value), id != 0 else {
      throw wrong(field, "16 hexadecimal digits, not all 0")
    }
    return id
  }

  private func label(_ key: Key) throws(SettingsError) -> Label {
    let field = try field(key)
    guard let label = Label(text.bytes(in: field.value)) else {
      throw wrong(field, "1 to 64 bytes of printable UTF-8")
    }
    return label
  }

  private func time(_ key: Key = .created) throws(SettingsError) -> UnixTime {
    UnixTime(Int64(bitPattern: try number(key, in: 0...UInt64(Int64.max))))
  }

  private func uid() throws(SettingsError) -> UInt32? {
    try numberOrNone(.uid, upTo: UInt64(UInt32.max - 1)).map { UInt32(truncatingIfNeeded: $0) }
  }

  private func lastAccepted() throws(SettingsError) -> UInt64? {
    try numberOrNone(.lastAccepted, upTo: UInt64.max)
  }

  /// Without the line, a phone's.
  private func clockOffset(_ type: AuthenticatorType) throws(SettingsError) -> Int32? {
    guard let field = given(.clockOffset) else { return nil }
    guard case .totp(let period) = type else { throw wrong(field, "totp") }
    var digits = text.bytes(in: field.value)
    let isBehind = digits.first == UInt8(ascii: "-")
    if isBehind { digits.removeFirst() }
    guard let value = decimal(digits), value <= UInt64(Authenticator.mostClockOffset(period)),
      digits[0] != UInt8(ascii: "0") || digits.count == 1 && !isBehind
    else { throw wrong(field, "a whole number in its range") }
    return (isBehind ? -1 : 1) * Int32(truncatingIfNeeded: value)
  }

  private func parameters() throws(SettingsError) -> CodeParameters {
    let (algorithm, type) = (try field(.algorithm), try field(.type))
    guard let hash = HashAlgorithm(name: text.bytes(in: algorithm.value)),
      text.holds(hash.name, in: algorithm.value)
    else {
      throw wrong(algorithm, "SHA1, SHA256 or SHA512")
    }
    let count = try number(.digits, in: 6...8)
    guard let digits = Digits(rawValue: UInt8(truncatingIfNeeded: count)),
      let parameters = CodeParameters(
        type: try authenticatorType(type), algorithm: hash, digits: digits)
    else { throw SettingsError(line: type.line, .value("period", wanted: "15 to 300 seconds")) }
    return parameters
  }

  private func authenticatorType(_ type: Field) throws(SettingsError) -> AuthenticatorType {
    if text.holds("totp", in: type.value) {
      return .totp(period: UInt32(truncatingIfNeeded: try number(.period, in: 15...300)))
    }
    guard text.holds("hotp", in: type.value) else { throw wrong(type, "totp or hotp") }
    if let period = given(.period) { throw wrong(period, "totp") }
    return .hotp
  }

  private func secret() throws(SettingsError) -> Secret {
    let field = try field(.secret)
    guard let base32 = text.slice(field.value) else {
      throw SettingsError(line: field.line, .outOfMemory)
    }
    // What people type may have them.
    for index in 0..<base32.count where isBlank(base32[index]) || base32[index] == 0x2d {
      throw wrong(field, "base32 (RFC 4648)")
    }
    let secret: Secret
    do throws(Base32.Error) {
      secret = try Base32.decode(base32)
    } catch {
      throw wrong(field, "base32 (RFC 4648)")
    }
    guard (1...Secret.longestKey).contains(secret.count) else {
      throw wrong(field, "1 to 128 bytes in base32")
    }
    return secret
  }
}

private struct Field {
  let key: Key
  let value: Range<Int>
  let line: Int
}

private enum Section { case head, authenticator, backupCodes, pass, suspended, end }

/// In the order in which they are tried: the most frequent ones first.
private enum Key: UInt8 {
  case code, id, created, version, user, uid, name, type, algorithm, digits, period, lastAccepted
  case secret, salt, scratchCode, expires, uses, enrolls, clockOffset

  /// The most fields of a section, not counting those that may be repeated.
  static let mostInASection = 10

  init?(spelledIn text: Secret, at range: Range<Int>) {
    var number: UInt8 = 0
    while let key = Key(rawValue: number) {
      if key.name.utf8CodeUnitCount == range.count, text.holds(key.name, in: range) {
        self = key
        return
      }
      number += 1
    }
    return nil
  }

  var name: StaticString {
    switch self {
    case .version: "version"
    case .user: "user"
    case .uid: "uid"
    case .id: "id"
    case .created: "created"
    case .name: "name"
    case .type: "type"
    case .algorithm: "algorithm"
    case .digits: "digits"
    case .period: "period"
    case .lastAccepted: "last_accepted"
    case .secret: "secret"
    case .salt: "salt"
    case .code: "code"
    case .scratchCode: "scratch_code"
    case .expires: "expires"
    case .uses: "uses"
    case .enrolls: "enrolls"
    case .clockOffset: "clock_offset"
    }
  }

  func belongs(to section: Section) -> Bool {
    switch self {
    case .version, .user, .uid: section == .head
    case .id: section != .end
    case .created: section != .backupCodes && section != .end
    case .name, .type, .algorithm, .digits, .period, .lastAccepted, .secret,
      .clockOffset:
      section == .authenticator
    case .salt, .scratchCode: section == .backupCodes
    case .code: section == .backupCodes || section == .pass
    case .expires, .uses, .enrolls: section == .pass
    }
  }
}

extension Secret {
  /// In bytes: the shortest key that enrolling accepts, 80 bits, as the oldest authenticator apps
  /// made. A stored one may be shorter: `import --force` accepts what another module had.
  package static let shortestKey = 10
  /// In bytes: the longest key that is accepted.
  package static let longestKey = 128
}
