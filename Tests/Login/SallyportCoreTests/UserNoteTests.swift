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

  @Test func `is exempt for its name with its uid alone, and required for either`() {
    let exempt = UserNote(level: .exempt(until: nil), uid: 7)
    #expect(exempt.level(of: 7, and: nil) == .exempt(until: nil))
    #expect(exempt.level(of: 8, and: nil) == nil)
    #expect(exempt.level(of: nil, and: nil) == nil)
    #expect(UserNote(level: .exempt(until: nil)).level(of: nil, and: nil) == nil)
    #expect(UserNote(level: .exempt(until: nil)).level(of: 0, and: nil) == nil)
    #expect(exempt.level(of: 7, and: .required(from: nil)) == .required(from: nil))
    let (soon, later) = (UnixTime(1), UnixTime(2))
    let required = UserNote(level: .required(from: later), uid: 7)
    #expect(required.level(of: 8, and: nil) == .required(from: later))
    #expect(required.level(of: nil, and: .required(from: soon)) == .required(from: soon))
    #expect(required.level(of: 8, and: .required(from: nil)) == .required(from: nil))
    #expect(required.level(of: 7, and: .exempt(until: nil)) == .required(from: later))
    #expect(UserNote().level(of: 7, and: .exempt(until: nil)) == nil)
  }

  /// The version before takes the comment for one, and goes by the policy's level.
  @Test(
    arguments: [
      ("# uid = 7\n# exempt until = 50\n", "none", .exempt(until: UnixTime(50))),
      ("# uid = 7\n# exempt until = 50\n", "exempt", .exempt(until: nil)),
      ("# uid = 7\n# exempt until = 50\n", "required", .required(from: nil)),
      ("# exempt until = 50\n", "none", nil), ("# uid = 7\n\n# exempt until = 50\n", "none", nil),
      ("# uid = 7\n# exempt until = \n", "none", nil),
      ("# uid = 7\n# exempt until = -1\n", "none", nil),
      ("# uid = 7\n# exempt until = 9223372036854775808\n", "none", nil),
      ("# uid = x\n# exempt until = 50\n", "none", nil),
    ] as [(String, String, UserNote.Level?)])
  func `is exempt with an end by a comment beside the level none`(
    _ head: String, _ level: String, _ wanted: UserNote.Level?
  ) throws {
    let rest = "version = 1\nuser = alice\nfrom = none\nlevel = \(level)\n"
    #expect(try read(head + rest).1.level == wanted)
  }

  @Test func `is exempt until its end, and then as the policy says`() {
    let note = UserNote(level: .exempt(until: UnixTime(50)), uid: 7)
    #expect(note.level(of: 7, and: nil) == .exempt(until: UnixTime(50)))
    #expect(note.level(of: 8, and: nil) == nil)
    #expect(note.level(of: 7, and: .required(from: nil)) == .required(from: nil))
    for level in [EnrollmentLevel.refuse, .required, .offer, .remind, .voluntary] {
      var policy = Policy.strict
      (policy.enrollment, policy.isRefusedByRule) = (level, false)
      #expect(policy.level(of: note.level, at: UnixTime(49)) == .voluntary)
      for now in [50, 51] {
        #expect(policy.level(of: note.level, at: UnixTime(Int64(now))) == level)
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
}
