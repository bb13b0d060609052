import SallyportCore
import Testing

@testable import SallyportAdministration

@Suite struct `A line of an act` {
  private static let time = "2026-11-28T09:12:00Z"
  private static let act = "act=remove by=root(carol) for=alice via=command stage=done"

  private func record(_ line: String) -> ActRecord? { ActRecord(line: Array(line.utf8)) }

  @Test func `Is read as it was written`() throws {
    let user = try #require(UserName(Array("eve mallory".utf8)))
    let hostile = Array("a\nact=x by=\"r\" %41 stage=done".utf8) + [0xff, 0x1b, 0x7f]
    let actor = Actor(name: "root", login: (1000, "carol"), claimed: nil)
    for verb in Act.Verb.allCases {
      for stage in Act.Stage.allCases {
        for way in Act.Way.allCases {
          let act = Act(verb, stage, for: user, [.init("authenticator", hostile)], via: way)
          let read = try #require(record("\(Self.time) \(act.text(by: actor))"))
          #expect(read.stage == stage)
          #expect(read["act"] == Array(verb.rawValue.utf8))
          #expect(read["by"] == Array("root(carol)".utf8))
          #expect(read["for"] == user.bytes)
          #expect(read["authenticator"] == hostile)
          #expect(read["via"] == Array(way.rawValue.utf8))
          #expect(read.time.internetText == Self.time)
        }
      }
    }
  }

  @Test func `That is not whole is none`() {
    let line = "\(Self.time) \(Self.act)"
    #expect(record(line) != nil)
    for end in line.indices { #expect(record(String(line[..<end])) == nil, "\(line[..<end])") }
    for start in line.indices.dropFirst() { #expect(record(String(line[start...])) == nil) }
  }

  @Test(arguments: [
    "", " ", "act=x", "2026-11-28 act=x by=y stage=done", "2026-13-28T09:12:00Z \(Self.act)",
    "2026-11-28T24:12:00Z \(Self.act)", "2026-11-28t09:12:00Z \(Self.act)",
    "\(Self.time)  \(Self.act)", "\(Self.time) \(Self.act) ", "\(Self.time) \(Self.act) x=y",
    "\(Self.time) by=y act=x stage=done", "\(Self.time) act=x by=\"y\" stage=done",
    "\(Self.time) act=x by=%4 stage=done", "\(Self.time) act=x by=%zz stage=done",
    "\(Self.time) act=x by=y\u{1b} stage=done", "\(Self.time) act=x by=y stage=perhaps",
    "\(Self.time) act=x by=a=b stage=done", "\(Self.time) ACT=x by=y stage=done",
  ])
  func `Of another form is none`(line: String) { #expect(record(line) == nil) }

  @Test(arguments: [
    ("1970-01-01T00:00:00Z", 0), ("2000-02-29T23:59:59Z", 951_868_799),
    ("2026-11-28T09:12:00Z", 1_795_857_120), ("2999-12-31T00:00:00Z", 32_503_593_600),
  ])
  func `Has its time in UTC`(text: String, seconds: Int64) {
    #expect(UnixTime(internet: Array(text.utf8)) == UnixTime(seconds))
    #expect(UnixTime(seconds).internetText == text)
  }
}
