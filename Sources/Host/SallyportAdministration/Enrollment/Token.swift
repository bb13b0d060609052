package import OneTimePassword
package import SallyportCore

/// The serial number of a token, as its vendor prints it: 1 to 64 printable ASCII characters
/// without `/`, not beginning with `.` or `-`, and without a blank at either end.
package struct TokenSerial: Hashable, Sendable {
  package let bytes: [UInt8]

  /// nil if the bytes break one of these rules.
  package init?(_ bytes: some Collection<UInt8>) {
    guard bytes.count <= Label.maximumLength, bytes.allSatisfy({ (0x20...0x7e).contains($0) }),
      let name = UserName(bytes)
    else { return nil }
    self.bytes = name.bytes
  }

  package var text: String { String(decoding: bytes, as: UTF8.self) }

  /// The name of its file: that of a user who is called so, which is never too long.
  package var fileName: [UInt8] { UserName(bytes)?.fileName ?? [] }
}

/// A hardware token that this machine knows, whether or not somebody has it: a file of the
/// inventory (docs/enrollment-format.md).
package struct Token: Sendable {
  /// Whose authenticator it is.
  package struct Holder: Equatable, Sendable {
    package let user: UserName
    /// Of the account when it was assigned; nil if there was none.
    package let uid: UInt32?
    /// nil: not known, as after `fleet leave`.
    package var authority: Authority?

    package init(user: UserName, uid: UInt32?, authority: Authority?) {
      (self.user, self.uid, self.authority) = (user, uid, authority)
    }
  }

  /// What verifies the codes of the holder, and alone knows whether he still has the token.
  package enum Authority: String, Sendable {
    /// The files of the store that has this inventory.
    case files
    /// The fleet of this machine.
    case fleet
  }

  package let serial: TokenSerial
  /// nil: nobody has it.
  package var holder: Holder?
  /// Of a token that somebody has, as he got it: its id is that of his authenticator, and what has
  /// come of it since is in his record alone.
  package var authenticator: Authenticator

  package init(_ serial: TokenSerial, _ authenticator: Authenticator, holder: Holder? = nil) {
    (self.serial, self.authenticator, self.holder) = (serial, authenticator, holder)
  }

  /// Whether the secret and what codes are made by are the same.
  package func isSame(as other: Token) -> Bool {
    authenticator.parameters == other.authenticator.parameters
      && constantTimeEquals(authenticator.secret, other.authenticator.secret)
  }
}

// MARK: from hand to hand

extension Token {
  /// The authenticator that the holder gets. `confirmed`: by a code, so that its clock is known;
  /// else what a token can have shown by now counts as used, however far its clock is ahead: what
  /// was learnt of that may have been lost with a former holder's record, or forgotten.
  package func given(as name: Label, id: UInt64, at now: UnixTime, confirmed: Bool) -> Authenticator
  {
    let own = (confirmed ? self : unshown(at: now)).authenticator
    return Authenticator(
      id: id, name: name, parameters: own.parameters, secret: own.secret,
      initialLastAccepted: own.initialLastAccepted,
      created: confirmed ? now : own.created, clockOffset: own.clockOffset)
  }

  /// Of a counter it is not known which codes were used, as the inventory may have forgotten it
  /// once: a code that it shows tells.
  package var needsCode: Bool { authenticator.parameters.type == .hotp }

  /// As nobody's. `state`: what the holder's record had of it. What the token has shown up to now
  /// counts as used, by its own time, which may be ahead by the adjacent intervals; a counter needs
  /// a code before it is assigned again, as one may have been used since the record was read.
  package func returned(_ state: AuthenticatorState, at now: UnixTime, under policy: Policy)
    -> Token
  {
    let last: UInt64
    switch authenticator.parameters.type {
    case .hotp: last = HeldCounter.hold(state.lastAccepted)
    case .totp(let period):
      let own = timeStep(at: state.time(at: now).seconds, period: period)
      last = max(state.lastAccepted ?? 0, own + UInt64(policy.adjacentIntervals))
    }
    return with(lastAccepted: last, clock: state.clock)
  }

  private func unshown(at now: UnixTime) -> Token {
    guard case .totp(let period) = authenticator.parameters.type else {
      let held = HeldCounter.hold(authenticator.initialLastAccepted)
      return with(lastAccepted: held, clock: nil)
    }
    let shown =
      timeStep(at: now.seconds, period: period) + UInt64(Authenticator.mostClockSteps)
      + UInt64(Policy.mostAdjacentIntervals)
    return with(lastAccepted: max(authenticator.initialLastAccepted ?? 0, shown), clock: nil)
  }

  func with(lastAccepted last: UInt64, clock: TokenClock?) -> Token {
    Token(
      serial,
      Authenticator(
        id: authenticator.id, name: authenticator.name, parameters: authenticator.parameters,
        secret: authenticator.secret, initialLastAccepted: last,
        created: clock?.since ?? authenticator.created,
        clockOffset: clock?.offset ?? authenticator.clockOffset))
  }
}

extension Authenticator {
  /// When the first code is shown that may be accepted, by the clock as it is known; nil where one
  /// is now, and for a counter.
  package func firstUse(after now: UnixTime) -> UnixTime? {
    guard case .totp(let period) = parameters.type, let last = initialLastAccepted,
      last < UInt64(Int64.max) / UInt64(period) - 1
    else { return nil }
    let start = Int64((last + 1) * UInt64(period)) - Int64(clockOffset ?? 0)
    return start > now.seconds ? UnixTime(start) : nil
  }
}

// MARK: the file

extension Token {
  /// The text of its file; nil if memory is short.
  package func written() -> Secret? {
    guard let name = UserName(bytes(of: "token")),
      let whole = Enrollment(
        id: 1, user: name, uid: nil, created: authenticator.created,
        authenticators: [authenticator], backupCodes: nil
      ).written(),
      // None is before the first section.
      let start = whole.first(UInt8(ascii: "["), in: 0..<whole.count),
      let section = whole.slice(start..<whole.count)
    else { return nil }
    var text = SecretText(capacity: section.count + 1024)
    text.add("# Sallyport token: holds a secret. Change it with sallyport(1) only.\n")
    text.add("version", bytes(of: "1"))
    text.add("serial", serial.bytes)
    if let holder {
      text.add("assigned", holder.user.bytes)
      text.add("uid", holder.uid.map { decimalText(UInt64($0)) } ?? bytes(of: "none"))
      if let authority = holder.authority { text.add("authority", Array(authority.rawValue.utf8)) }
    }
    text.add("\n")
    text.add(section)
    return text.finish()
  }

  /// Parses it. Any bytes give a token, or an error with its line. What stands before the section
  /// is read here, the section as in an enrollment.
  package static func read(_ text: Secret) throws(SettingsError) -> Token {
    var head = TokenHead(text: text)
    var lines = try SettingsScanner(text)
    while let line = try lines.next() {
      switch line {
      case .setting(let key, let value): try head.take(key, value, lines.number)
      case .section(let name):
        guard text.holds("authenticator", in: name) else {
          throw SettingsError(line: lines.number, .unknownSection)
        }
        let (serial, holder) = try head.finish()
        let authenticator = try section(of: text, at: name.lowerBound, line: lines.number)
        return Token(serial, authenticator, holder: holder)
      }
    }
    throw SettingsError(line: 1, .missing("authenticator"))
  }

  /// The section that begins in this line, and is the only one: read behind the head of an
  /// enrollment of nobody.
  private static func section(of text: Secret, at place: Int, line: Int) throws(SettingsError)
    -> Authenticator
  {
    var start = place
    while start > 0, text[start - 1] != UInt8(ascii: "\n") { start -= 1 }
    let head: StaticString =
      "version = 1\nuser = token\nuid = none\nid = 0000000000000001\ncreated = 0\n"
    let before = 5
    guard let section = text.slice(start..<text.count) else {
      throw SettingsError(line: 1, .outOfMemory)
    }
    var whole = SecretText(capacity: section.count + head.utf8CodeUnitCount)
    whole.add(head)
    whole.add(section)
    guard let whole = whole.finish() else { throw SettingsError(line: 1, .outOfMemory) }
    let read: Enrollment
    do throws(SettingsError) {
      read = try Enrollment.read(whole)
    } catch {
      throw SettingsError(
        line: max(1, error.line - before + line - 1), error.problem, found: error.found)
    }
    guard read.authenticators.count == 1, read.backupCodes == nil, read.passes.isEmpty,
      read.suspended.isEmpty
    else { throw SettingsError(line: line, .tooMany("sections")) }
    return read.authenticators[0]
  }
}

/// The keys before the section.
private struct TokenHead {
  let text: Secret
  private var hasVersion = false
  private var serial: TokenSerial?
  private var user: UserName?
  /// nil in the second: an account that was not there.
  private var uid: UInt32??
  private var authority: Token.Authority?

  init(text: Secret) { self.text = text }

  mutating func take(_ key: Range<Int>, _ value: Range<Int>, _ line: Int) throws(SettingsError) {
    if text.holds("version", in: key) {
      if hasVersion { throw SettingsError(line: line, .duplicateKey) }
      guard text.holds("1", in: value) else {
        throw SettingsError(line: line, .value("version", wanted: "1"))
      }
      hasVersion = true
    } else if text.holds("serial", in: key) {
      if serial != nil { throw SettingsError(line: line, .duplicateKey) }
      serial = TokenSerial(text.bytes(in: value))
      if serial == nil {
        throw SettingsError(line: line, .value("serial", wanted: "a serial number"))
      }
    } else if text.holds("assigned", in: key) {
      if user != nil { throw SettingsError(line: line, .duplicateKey) }
      user = UserName(text.bytes(in: value))
      if user == nil { throw SettingsError(line: line, .value("assigned", wanted: "a login name")) }
    } else if text.holds("uid", in: key) {
      if uid != nil { throw SettingsError(line: line, .duplicateKey) }
      uid = .some(try readUID(value, line))
    } else if text.holds("authority", in: key) {
      if authority != nil { throw SettingsError(line: line, .duplicateKey) }
      authority = Token.Authority(
        rawValue: String(decoding: text.bytes(in: value), as: UTF8.self))
      if authority == nil {
        throw SettingsError(line: line, .value("authority", wanted: "files or fleet"))
      }
    } else {
      throw SettingsError(line: line, .unknownKey)
    }
  }

  private func readUID(_ value: Range<Int>, _ line: Int) throws(SettingsError) -> UInt32? {
    if text.holds("none", in: value) { return nil }
    let digits = text.bytes(in: value)
    guard let number = decimal(digits), number < UInt64(UInt32.max),
      digits.count == 1 || digits.first != UInt8(ascii: "0")
    else { throw SettingsError(line: line, .value("uid", wanted: "a whole number in its range")) }
    return UInt32(number)
  }

  func finish() throws(SettingsError) -> (TokenSerial, Token.Holder?) {
    guard hasVersion else { throw SettingsError(line: 1, .missing("version")) }
    guard let serial else { throw SettingsError(line: 1, .missing("serial")) }
    guard let user else {
      if uid != nil || authority != nil {
        throw SettingsError(line: 1, .missing("assigned"))
      }
      return (serial, nil)
    }
    guard let uid else { throw SettingsError(line: 1, .missing("uid")) }
    return (serial, Token.Holder(user: user, uid: uid, authority: authority))
  }
}
