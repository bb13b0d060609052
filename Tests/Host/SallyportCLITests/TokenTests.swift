import OneTimePassword
import SallyportCore
import Testing

@testable import SallyportCLI

@Suite struct `A token of root's command` {
  private let bench = Bench()
  private let words = ["enroll", "--user", "alice", "--allow-missing", "--device", "token"]

  private struct Report: Decodable {
    struct Authenticator: Decodable { let device: String?, clockOffset: Int?, drift: Int }
    let authenticators: [Authenticator]
  }

  private struct Listed: Decodable {
    struct Token: Decodable, Equatable { let authenticator: String, clockOffset: Int }
    struct User: Decodable { let tokens: [Token]? }
    let users: [User]
  }

  private func report() throws -> Report.Authenticator {
    let report = try bench.run("status", "--user", "alice", "--json").json(Report.self)
    return try #require(report.authenticators.first)
  }

  /// Its clock is 7 min ahead: what logins accept is 2.
  @Test func `is enrolled by two codes in a row, used by its own clock and set by two more`() throws
  {
    let terminal = FakeTerminal([
      .types("12345"), shownCode(at: bench.now, steps: 14), shownCode(at: bench.now, steps: 15),
    ])
    let done = bench.run(arguments: words, on: terminal)
    #expect(done.status == 0, "\(done.aside)")
    #expect(
      terminal.prompts == [
        "Code shown by the token: ", "Code shown by the token: ",
        "Wait for the next code and type it: ",
      ])
    #expect(terminal.answer.contains("A code has 6 digits. 5 more codes can be typed."))
    let clock = "its clock is 7 min ahead, accepted so"
    #expect(done.answer.contains("Enrolled as \"token\" (TOTP, 6 digits, every 30 s; \(clock))."))
    let uri = try terminal.uri()
    for (steps, status) in [(14, 1), (15, 1), (0, 1), (16, 0), (16, 1)] {
      let code = try uriCode(uri, at: bench.now, steps: steps)
      #expect(bench.verify(code).status == Int32(status), "\(steps)")
    }
    #expect(bench.run("status", "--user", "alice").answer.contains("clock a token's, 7 min ahead"))
    #expect(try report().device == "token" && (421...450).contains(report().clockOffset ?? 0))

    let off = try uriCode(uri, at: bench.now, steps: 60)
    let refused = bench.run("verify", "--user", "alice", on: FakeTerminal([.types(off)]))
    #expect(refused.aside.contains("wrong code; a clock that is 30 min ahead shows it now\n"))
    #expect(refused.aside.contains("hint: sallyport resync alice"))
    #expect(!refused.aside.contains("phone"))
    let pair = try [60, 61].map { Act.types(try uriCode(uri, at: bench.now, steps: $0)) }
    let set = bench.run("resync", "--user", "alice", on: FakeTerminal(pair))
    #expect(set.terminal.prompts.first == "Code shown by the token: (hidden)")
    #expect(set.answer.contains("\"token\" is synchronized; its clock is 30 min ahead. The next"))
    for (steps, status) in [(61, 1), (16, 1), (62, 0)] {
      let code = try uriCode(uri, at: bench.now, steps: steps)
      #expect(bench.verify(code).status == Int32(status), "\(steps)")
    }
    // Of a week ago: its clock goes on, ours as well.
    bench.now = UnixTime(bench.now.seconds + 604_800)
    #expect(bench.verify(try uriCode(uri, at: bench.now, steps: 61)).status == 0)
  }

  @Test func `whose first code is of now is right at once, and one of no time is not stored`()
    throws
  {
    let wrong = [wrongCode(at: bench.now), shownCode(at: bench.now, steps: 1000)]
    let odd = FakeTerminal(
      wrong + [.types("7KMF-2X9Q-D4TW-0HZA")] + Array(repeating: .types(""), count: 3))
    let refused = bench.run(arguments: words, on: odd)
    #expect(refused.status == 1 && odd.answer.contains("Wrong code. 5 more codes can be typed."))
    #expect(odd.answer.contains("that is 8 h ahead shows it now, too far off to follow."))
    #expect(odd.answer.contains("A backup code does not show what the clock is."))
    #expect(try bench.content().isEmpty)
    let done = bench.run(arguments: words, on: FakeTerminal([shownCode(at: bench.now)]))
    #expect(done.answer.contains("Enrolled as \"token\" (TOTP, 6 digits, every 30 s)."))
    #expect(try report().clockOffset == 0)
    let tokens = try bench.run("list", "--json").json(Listed.self).users.map(\.tokens)
    #expect(tokens == [[Listed.Token(authenticator: "token", clockOffset: 0)]])
  }

  @Test func `is no phone, and no counter`() throws {
    let counter = bench.run(arguments: words + ["--type", "hotp", "--no-confirm"])
    #expect(counter.status == 64 && counter.aside.contains("a counter has no clock"))
    _ = try bench.enroll("alice", "--device", "phone")
    #expect(try report().device == nil && report().clockOffset == nil)
    #expect(try bench.run("list", "--json").json(Listed.self).users.map(\.tokens) == [nil])
  }
}
