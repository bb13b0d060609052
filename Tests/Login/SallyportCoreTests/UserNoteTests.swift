import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@Suite struct `A note on a user` {
  static let alice = """
    version = 1
    user = alice
    from = 1772528400
    level = required

    """

  private func read(_ text: String) throws -> (UserName, UserNote) {
    try UserNote.read(secret(text))
  }

  private func problem(_ text: String) throws -> SettingsError? {
    let text = try secret(text)
    do throws(SettingsError) {
      _ = try UserNote.read(text)
      return nil
    } catch {
      return error
    }
  }

  @Test func `is read as documented`() throws {
    let (user, note) = try read("# comment\n" + Self.alice)
    #expect(user.text == "alice")
    #expect(note == UserNote(level: .required(from: UnixTime(1_772_528_400))))
  }

  @Test func `is read as it was written`() throws {
    var random = Seeded(60)
    for _ in 0..<500 {
      let levels: [UserNote.Level?] = [
        nil, .exempt, .required(from: nil), .required(from: random.pastTime()),
      ]
      let note = UserNote(level: random.pick(levels), uid: random.pick([nil, 0, 3003, .max]))
      let name = random.userName()
      let (user, found) = try UserNote.read(try #require(note.written(for: name)))
      #expect(user == name && found == note)
    }
  }

  @Test func `is exempt for its name with its uid alone, and required for either`() {
    let exempt = UserNote(level: .exempt, uid: 7)
    #expect(exempt.level(of: 7, and: nil) == .exempt)
    #expect(exempt.level(of: 8, and: nil) == nil)
    #expect(exempt.level(of: nil, and: nil) == nil)
    #expect(UserNote(level: .exempt).level(of: nil, and: nil) == nil)
    #expect(UserNote(level: .exempt).level(of: 0, and: nil) == nil)
    #expect(exempt.level(of: 7, and: .required(from: nil)) == .required(from: nil))
    let (soon, later) = (UnixTime(1), UnixTime(2))
    let required = UserNote(level: .required(from: later), uid: 7)
    #expect(required.level(of: 8, and: nil) == .required(from: later))
    #expect(required.level(of: nil, and: .required(from: soon)) == .required(from: soon))
    #expect(required.level(of: 8, and: .required(from: nil)) == .required(from: nil))
    #expect(required.level(of: 7, and: .exempt) == .required(from: later))
    #expect(UserNote().level(of: 7, and: .exempt) == nil)
  }

  /// The version before reads what follows the first line, which is a comment to it.
  @Test func `has its uid in a comment, and none without that line`() throws {
    let name = try #require(UserName("alice".utf8))
    let text = String(
      decoding: bytes(try #require(UserNote(level: .exempt, uid: 3003).written(for: name))),
      as: UTF8.self)
    let old = bytes(try #require(UserNote(level: .exempt).written(for: name)))
    #expect(text == "# uid = 3003\n" + String(decoding: old, as: UTF8.self))
    let read = { (text: String) in try self.read(text).1.uid }
    #expect(try read(text) == 3003)
    for (line, uid) in [
      ("# uid = 4294967295", UserNote.noUID), ("# uid = 4294967296", nil), ("# uid = ", nil),
      ("# uid = -1", nil), ("# uid = 1 ", nil), ("#uid = 1", nil), ("# x\n# uid = 1", nil),
    ] as [(String, UInt32?)] {
      #expect(try read("\(line)\n" + Self.alice) == uid, "\(line)")
    }
  }

  /// Otherwise somebody who is `required` would pass for a file that lost its end.
  @Test func `that lost its tail is refused, at whichever byte`() throws {
    let name = try #require(UserName("alice".utf8))
    for level in [nil, UserNote.Level.exempt, .required(from: UnixTime(1_772_528_400))] {
      let whole = bytes(try #require(UserNote(level: level).written(for: name)))
      for length in 0..<(whole.count - 1) {
        #expect(throws: SettingsError.self) { try UserNote.read(secret(whole[..<length])) }
      }
    }
  }

  @Test(arguments: [
    ("version = 1", "version = 2", 1), ("version = 1", "version = 0", 1),
    ("user = alice", "user = a/b", 2), ("user = alice", "logins = 7\nuser = alice", 2),
    ("from = 1772528400", "from = tomorrow", 3), ("from = 1772528400", "from = -5", 3),
    ("from = 1772528400", "from = 9223372036854775808", 3), ("level = required", "level = on", 4),
    ("level = required", "level = exempt", 3), ("level = required", "level = none", 3),
    ("level = required", "level = required\nlevel = required", 5),
    ("level = required", "levels = required", 4), ("level = required", "[end]", 4),
    ("level = required", "required", 4), ("from = 1772528400\n", "", 1),
    ("user = alice\n", "", 1), ("version = 1\n", "", 1), ("level = required\n", "", 1),
  ]) func `with anything else in it is refused, with the line`(
    _ part: String, _ other: String, _ line: Int
  ) throws {
    let text = Self.alice.replacing(part, with: other)
    #expect(text != Self.alice)
    #expect(try problem(text)?.line == line)
  }

  @Test func `of any bytes is a note or an error`() throws {
    var random = Seeded(61)
    var notes = 0
    for _ in 0..<5000 {
      guard let (user, note) = try? UserNote.read(secret(random.mutated(Array(Self.alice.utf8))))
      else { continue }
      notes += 1
      let again = try UserNote.read(try #require(note.written(for: user)))
      #expect(again == (user, note))
    }
    #expect((100..<4000).contains(notes), "\(notes)")
  }
}
