import OneTimePassword
import SallyportCore
import Testing

@Suite struct `A note on a user` {
  static let alice = """
    version = 1
    user = alice
    logins = 7
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
    #expect(note == UserNote(logins: 7, level: .required(from: UnixTime(1_772_528_400))))
  }

  @Test func `is read as it was written`() throws {
    var random = Seeded(60)
    for _ in 0..<500 {
      let levels: [UserNote.Level?] = [
        nil, .exempt, .required(from: nil), .required(from: random.pastTime()),
      ]
      let note = UserNote(
        logins: UInt32(truncatingIfNeeded: random.number64()), level: random.pick(levels))
      let name = random.userName()
      let (user, found) = try UserNote.read(try #require(note.written(for: name)))
      #expect(user == name && found == note)
    }
  }

  /// Otherwise somebody who is `required` would pass for a file that lost its end.
  @Test func `that lost its tail is refused, at whichever byte`() throws {
    let name = try #require(UserName("alice".utf8))
    for level in [nil, UserNote.Level.exempt, .required(from: UnixTime(1_772_528_400))] {
      let whole = bytes(try #require(UserNote(logins: 3, level: level).written(for: name)))
      for length in 0..<(whole.count - 1) {
        #expect(throws: SettingsError.self) { try UserNote.read(secret(whole[..<length])) }
      }
    }
  }

  @Test(arguments: [
    ("version = 1", "version = 2", 1), ("version = 1", "version = 0", 1),
    ("user = alice", "user = a/b", 2), ("logins = 7", "logins = 4294967296", 3),
    ("logins = 7", "logins = -1", 3), ("logins = 7", "logins =", 3),
    ("from = 1772528400", "from = tomorrow", 4), ("from = 1772528400", "from = -5", 4),
    ("from = 1772528400", "from = 9223372036854775808", 4), ("level = required", "level = on", 5),
    ("level = required", "level = exempt", 4), ("level = required", "level = none", 4),
    ("level = required", "level = required\nlevel = required", 6),
    ("level = required", "levels = required", 5), ("level = required", "[end]", 5),
    ("level = required", "required", 5), ("logins = 7\n", "", 1), ("from = 1772528400\n", "", 1),
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

  @Test func `counts no further than it can`() {
    var note = UserNote(logins: .max - 1)
    note.countLogin()
    note.countLogin()
    #expect(note.logins == .max)
  }
}
