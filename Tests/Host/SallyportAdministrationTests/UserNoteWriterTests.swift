import OneTimePassword
import SallyportAdministration
import SallyportCore
import TestSupport
import Testing

@Suite struct `A note that a command writes` {
  static let alice = """
    version = 1
    user = alice
    from = 1772528400
    level = required

    """

  private func read(_ text: String) throws -> (UserName, UserNote) {
    try UserNote.read(secret(text))
  }

  @Test func `is read as it was written`() throws {
    var random = Seeded(60)
    for _ in 0..<500 {
      let levels: [UserNote.Level?] = [
        nil, .exempt(until: nil), .required(from: nil), .required(from: random.pastTime()),
        .exempt(until: random.pastTime()),
      ]
      let level = random.pick(levels)
      let uids: [UInt32?] = [0, 3003, .max] + (level.isExempt ? [] : [nil])
      let note = UserNote(level: level, uid: random.pick(uids))
      let name = random.userName()
      let (user, found) = try UserNote.read(try #require(note.written(for: name)))
      #expect(user == name && found == note)
    }
  }

  /// The version before reads what follows the first line, which is a comment to it.
  @Test func `has its uid in a comment, and none without that line`() throws {
    let name = try #require(UserName("alice".utf8))
    let text = String(
      decoding: bytes(
        try #require(UserNote(level: .exempt(until: nil), uid: 3003).written(for: name))),
      as: UTF8.self)
    let old = bytes(try #require(UserNote(level: .exempt(until: nil)).written(for: name)))
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
  // shows: notes
  @Test func `that lost its tail is refused, at whichever byte`() throws {
    let name = try #require(UserName("alice".utf8))
    for level in [
      nil, UserNote.Level.exempt(until: nil), .exempt(until: UnixTime(1_772_528_400)),
      .required(from: UnixTime(1_772_528_400)),
    ] {
      let whole = bytes(try #require(UserNote(level: level).written(for: name)))
      for length in 0..<(whole.count - 1) {
        #expect(throws: SettingsError.self) { try UserNote.read(secret(whole[..<length])) }
      }
    }
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
