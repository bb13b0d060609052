package import OneTimePassword

/// A user's note, which is stored apart from an enrollment (docs/enrollment-format.md).
package struct UserNote: Equatable, Sendable {
  /// The level that root has set for this user; it overrides the policy's level.
  package enum Level: Equatable, Sendable {
    /// `sallyport require`: no session without an enrollment, from this time on; nil for at once.
    case required(from: UnixTime?)
    /// `sallyport exempt`: may log in without an enrollment, up to this time; nil for good.
    case exempt(until: UnixTime?)
  }

  package var level: Level?
  /// The uid of the account for which it was set. `noUID` if there was no account with its name
  /// when it was to be given its uid; nil if it has not been given one, and in a fleet, where a
  /// name is one person.
  package var uid: UInt32?

  /// (uid_t) -1, which no account has.
  package static let noUID = UInt32.max

  package init(level: Level? = nil, uid: UInt32? = nil) { (self.level, self.uid) = (level, uid) }
}

extension UserNote.Level? {
  /// Whether it is exempt, also if that has ended.
  package var isExempt: Bool { if case .exempt? = self { true } else { false } }

  /// Whether it is exempt, and has not ended. A clock that was set back lets it hold again.
  package func isExempt(at now: UnixTime) -> Bool {
    guard case .exempt(let until)? = self else { return false }
    return until.map { now < $0 } ?? true
  }
}

extension UserNote {
  /// The level of the account with this uid, whose name the note has. `other`: what is required of
  /// another name with the same uid. What loosens holds where name and uid are the same, what
  /// tightens where one of them is.
  package func level(of uid: UInt32?, and other: Level?) -> Level? {
    switch (level, other) {
    case (.required(let from), .required(let since)):
      guard let from, let since else { return .required(from: nil) }
      return .required(from: min(from, since))
    case (_, .required): return other
    case (.exempt, _): return uid != nil && uid == self.uid ? level : nil
    case (_, _): return level
    }
  }
}

extension UserNote {
  /// Begins the first line of a note with a uid. A comment: the version before, which reads what it
  /// knows and refuses every other key, reads such notes too.
  package static let heading: StaticString = "# uid = "

  /// Begins the line after it if there is an end of being exempt. Such a note has the level `none`:
  /// the version before goes by the policy's level, and nobody is exempt for good.
  package static let ending: StaticString = "# exempt until = "

  /// Parses the text of a note's file. Any bytes give a note and its user, or an error with its
  /// line. Unknown keys are an error.
  package static func read(_ text: Secret) throws(SettingsError) -> (UserName, UserNote) {
    var reader = NoteReader(text: text)
    var lines = try SettingsScanner(text)
    while let line = try lines.next() {
      switch line {
      case .section: throw SettingsError(line: lines.number, .unknownSection)
      case .setting(let key, let value): try reader.take(key, value, lines.number)
      }
    }
    var (user, note) = try reader.finish()
    guard let (uid, next) = comment(heading, in: text, at: 0) else { return (user, note) }
    note.uid = UInt32(exactly: uid)
    if note.level == nil, let (until, _) = comment(ending, in: text, at: next),
      let until = Int64(exactly: until)
    {
      note.level = .exempt(until: UnixTime(until))
    }
    return (user, note)
  }

  /// The number in the line that begins so, and where the next line begins.
  @inline(never) private static func comment(_ head: StaticString, in text: Secret, at first: Int)
    -> (UInt64, next: Int)?
  {
    let start = first + head.utf8CodeUnitCount
    guard text.holds(head, in: first..<start),
      let end = text.first(UInt8(ascii: "\n"), in: start..<text.count),
      let number = decimal(text.bytes(in: start..<end))
    else { return nil }
    return (number, end + 1)
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
    return isExempt ? .exempt(until: nil) : nil
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
