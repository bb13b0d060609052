package import OneTimePassword

/// A user's note, which is stored apart from an enrollment (docs/enrollment-format.md).
package struct UserNote: Equatable, Sendable {
  /// The level that root has set for this user; it overrides the policy's level.
  package enum Level: Equatable, Sendable {
    /// `sallyport require`: no session without an enrollment, from this time on; nil for at once.
    case required(from: UnixTime?)
    /// `sallyport exempt`: may log in without an enrollment.
    case exempt
  }

  package var level: Level?

  package init(level: Level? = nil) { self.level = level }
}

extension UserNote {
  /// The text of a note's file. The level comes last: if the end of the file is lost, at any byte,
  /// there is no level and the file is refused, so that nobody passes because a line is missing.
  package func written(for user: UserName) -> Secret? {
    var text = bytes(of: "# Sallyport: change it with sallyport(1) only.\nversion = 1\nuser = ")
    text += user.bytes + bytes(of: "\nfrom = ")
    if case .required(let from?) = level {
      text += decimalText(UInt64(max(from.seconds, 0)))
    } else {
      text += bytes(of: "none")
    }
    text += bytes(of: "\nlevel = ")
    switch level {
    case nil: text += bytes(of: "none\n")
    case .required: text += bytes(of: "required\n")
    case .exempt: text += bytes(of: "exempt\n")
    }
    return Secret(text)
  }

  /// Parses such a text. Any bytes give a note and its user, or an error with its line. Unknown
  /// keys are an error.
  package static func read(_ text: Secret) throws(SettingsError) -> (UserName, UserNote) {
    var reader = NoteReader(text: text)
    var lines = try SettingsScanner(text)
    while let line = try lines.next() {
      switch line {
      case .section: throw SettingsError(line: lines.number, .unknownSection)
      case .setting(let key, let value): try reader.take(key, value, lines.number)
      }
    }
    return try reader.finish()
  }
}

private struct NoteReader {
  let text: Secret
  private var fields = InlineArray<4, Field?>(repeating: nil)

  private struct Field {
    let value: Range<Int>
    let line: Int
  }

  private enum Key: Int {
    case version, user, from, level

    var name: StaticString {
      switch self {
      case .version: "version"
      case .user: "user"
      case .from: "from"
      case .level: "level"
      }
    }
  }

  init(text: Secret) { self.text = text }

  mutating func take(_ name: Range<Int>, _ value: Range<Int>, _ line: Int) throws(SettingsError) {
    for index in 0..<4 {
      guard let key = Key(rawValue: index), text.holds(key.name, in: name) else { continue }
      if fields[index] != nil { throw SettingsError(line: line, .duplicateKey) }
      fields[index] = Field(value: value, line: line)
      return
    }
    throw SettingsError(line: line, .unknownKey, found: text.bytes(in: name))
  }

  func finish() throws(SettingsError) -> (UserName, UserNote) {
    guard try number(.version, upTo: 1, "1") == 1 else { throw try wrong(.version, "1") }
    guard let user = UserName(text.bytes(in: try field(.user).value)) else {
      throw try wrong(.user, "a login name")
    }
    return (user, UserNote(level: try level()))
  }

  private func level() throws(SettingsError) -> UserNote.Level? {
    let (level, from) = (try field(.level).value, try field(.from).value)
    if text.holds("required", in: level) {
      if text.holds("none", in: from) { return .required(from: nil) }
      let seconds = try number(.from, upTo: UInt64(Int64.max), "seconds since 1970 or none")
      return .required(from: UnixTime(Int64(bitPattern: seconds)))
    }
    let isExempt = text.holds("exempt", in: level)
    guard isExempt || text.holds("none", in: level) else {
      throw try wrong(.level, "required, exempt or none")
    }
    guard text.holds("none", in: from) else { throw try wrong(.from, "none") }
    return isExempt ? .exempt : nil
  }

  @inline(never) private func field(_ key: Key) throws(SettingsError) -> Field {
    guard let field = fields[key.rawValue] else { throw SettingsError(line: 1, .missing(key.name)) }
    return field
  }

  @inline(never) private func number(_ key: Key, upTo most: UInt64, _ wanted: StaticString)
    throws(SettingsError) -> UInt64
  {
    guard let number = decimal(text.bytes(in: try field(key).value)), number <= most else {
      throw try wrong(key, wanted)
    }
    return number
  }

  @inline(never)
  private func wrong(_ key: Key, _ wanted: StaticString) throws(SettingsError) -> SettingsError {
    let field = try field(key)
    return SettingsError(
      line: field.line, .value(key.name, wanted: wanted), found: text.bytes(in: field.value))
  }
}
