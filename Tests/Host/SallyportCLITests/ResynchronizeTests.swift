import Foundation
import OneTimePassword
import SallyportCore
import SallyportSystem
import Testing

@testable import SallyportCLI

@Suite struct `Resynchronizing` {
  private let bench = Bench()

  private struct Verdict: Decodable, Equatable {
    let accepted: Bool
    var authenticator, reason, reopenedUntil: String?
    var drift, seconds, adjacentIntervals: Int?
  }

  private func resync(_ uri: String, _ steps: Int, _ more: String...) throws -> Bench.Outcome {
    let codes = try (steps - 1...steps).map { try uriCode(uri, at: bench.now, steps: $0) }
    return bench.run(
      arguments: ["resync", "--user", "alice"] + more,
      on: FakeTerminal(codes.map { .types($0) }))
  }

  @Test func `An HOTP that ran away is found again`() throws {
    let fob = try bench.enroll("alice", "--type", "hotp", "--name", "fob")
    #expect(bench.verify(try fob.code(at: bench.now, steps: 500)).status == 1)
    let done = try resync(fob.uri, 501)
    #expect(done.status == 0, "\(done.aside)")
    #expect(done.answer == "\"fob\" is synchronized. The next codes are accepted.\n")
    #expect(done.terminal.prompts.allSatisfy { $0.hasSuffix("(hidden)") })
    for (counter, status) in [(500, 1), (501, 1), (502, 0)] {
      #expect(bench.verify(try fob.code(at: bench.now, steps: counter)).status == Int32(status))
    }
    #expect(try resync(fob.uri, 501).status == 1)
  }

  @Test func `A machine whose clock ran ahead takes codes again, and what that means is said`()
    throws
  {
    let phone = try bench.enroll()
    let right = bench.now
    bench.now = UnixTime(right.seconds + 86_400)
    let ahead = try phone.code(at: bench.now)
    #expect(bench.verify(ahead).status == 0)
    let later = bench.now
    bench.now = right
    let refused = bench.verify(try phone.code(at: bench.now))
    #expect(refused.aside.contains("is ahead of the clock; codes are refused"))
    #expect(refused.aside.contains("hint: sallyport resync alice"))
    let done = try resync(phone.uri, 1)
    #expect(done.status == 0, "\(done.aside)")
    #expect(done.answer.contains("will be accepted again at their time, up to\n2026-03-04T09:"))
    #expect(
      done.answer.contains("sallyport enroll alice --store \(bench.directory) --force"))
    for (steps, status) in [(-1, 1), (0, 1), (1, 1), (2, 0)] {
      #expect(bench.verify(try phone.code(at: right, steps: steps)).status == Int32(status))
    }
    // The price, as it is said: nothing tells any more that this one was used.
    bench.now = later
    #expect(bench.verify(ahead).status == 0)
  }

  @Test(arguments: [
    (120, "60 min ahead"), (-120, "60 min behind"), (6, "3 min ahead"), (-41, "20 min behind"),
  ])
  func `A phone whose clock is off is told by how much`(steps: Int, told: String) throws {
    let phone = try bench.enroll()
    let done = try resync(phone.uri, steps)
    #expect(done.status == 1)
    #expect(done.aside.contains("the clock of \"phone\" is \(told), at most 2 min is"))
    let status = bench.run("status", "--user", "alice")
    #expect(status.answer.contains("clock \(told)"))
    let report = try bench.run("status", "--user", "alice", "--json").json(Looking.Report.self)
    #expect(report.authenticators.first?.drift == steps)
    #expect(bench.verify(try phone.code(at: bench.now)).status == 0)
  }

  @Test func `Programs get an object`() throws {
    let phone = try bench.enroll()
    #expect(
      try resync(phone.uri, -2, "--json").json(Verdict.self)
        == Verdict(accepted: true, authenticator: "phone", drift: -2))
    #expect(
      try resync(phone.uri, -2, "--json").json(Verdict.self)
        == Verdict(accepted: false, authenticator: "phone", reason: "replayed"))
    #expect(
      try resync(phone.uri, 20, "--json").json(Verdict.self)
        == Verdict(
          accepted: false, authenticator: "phone", reason: "clock-off", drift: 20, seconds: 600,
          adjacentIntervals: 5))
    #expect(
      try resync(phone.uri, 9000, "--json").json(Verdict.self)
        == Verdict(accepted: false, reason: "not-found"))
  }

  @Test(arguments: [
    (["000000", "000000"], "not two consecutive codes"), (["12", "345678"], "number of digits"),
    (["abc", "def"], "neither a code"), (["123456", ""], "no code given"),
    (["7KMF-2X9Q-D4TW-0HZA", "123456"], "not two consecutive codes"),
  ]) func `Anything else changes nothing and costs nothing`(typed: [String], told: String) throws {
    _ = try bench.enroll(secret: "JBSWY3DPEHPK3PXP")
    let done = bench.run(
      "resync", "--user", "alice", on: FakeTerminal(typed.map { .types($0) }))
    #expect(done.status == 1)
    #expect(done.aside.contains(told), "\(done.aside)")
    let report = try bench.run("status", "--user", "alice", "--json").json(Looking.Report.self)
    #expect(report.wrongCodes.known.left == 20)
  }

  /// The last six digits of a right code of eight are no such sign: it would tell that they are
  /// right.
  @Test func `The last digits of a right code are told of as any others`() throws {
    let phone = try bench.enroll("alice", "--digits", "8")
    let usual = try #require(phone.uri.split(separator: "&").first.map(String.init))
    let code = try uriCode(usual, at: bench.now, steps: 0)
    #expect(bench.verify(code).aside == bench.verify("000000").aside)
    #expect(try !resync(usual, 0).aside.contains("the app"))
  }

  @Test(arguments: [["--algorithm", "sha256"], ["--period", "60"]])
  func `An app that ignores the QR code is named, by verify too, and not accepted`(odd: [String])
    throws
  {
    let phone = try bench.enroll("alice", odd[0], odd[1])
    let usual = try #require(phone.uri.split(separator: "&").first.map(String.init))
    let code = try uriCode(usual, at: bench.now, steps: 0)
    let told = "sallyport: wrong code: the app of \"phone\" ignores what its QR code says, and"
    let hint = "enroll alice --store \(bench.directory) --force  # with the defaults\n"
    for refused in [bench.verify(code), try resync(usual, 0)] {
      #expect(refused.status == 1)
      #expect(refused.aside.hasPrefix(told) && refused.aside.hasSuffix(hint), "\(refused.aside)")
    }
    let program = try resync(usual, 0, "--json").json(Verdict.self)
    #expect(program == Verdict(accepted: false, reason: "not-found"))
    #expect(!bench.verify("12").aside.contains("the app"))
    #expect(bench.verify(try phone.code(at: bench.now)).status == 0)
    _ = try bench.add("tablet")
    let two = try resync(usual, 0, "--name", "phone").aside
    #expect(two.contains("hint: sallyport remove alice") && two.contains("sallyport add alice"))
    #expect(!(try resync(usual, 0, "--name", "tablet").aside.contains("the app")))
  }

  @Test func `Leaving at the second prompt changes nothing`() throws {
    let phone = try bench.enroll()
    let before = try bench.content()
    let code = try phone.code(at: bench.now)
    let done = bench.run(
      "resync", "--user", "alice", on: FakeTerminal([.types(code), .signals(2)]))
    #expect((done.status, done.aside) == (130, "sallyport: nothing was changed\n"))
    #expect(try bench.content() == before)
  }

  @Test func `A token is followed by its serial number, of who has it`() throws {
    let key = "3132333435363738393031323334353637383930"
    let list = "77,\(key)\n78,\(key.replacing("31", with: "41"))\n"
    #expect(bench.run("import", "csv", "-", on: FakeTerminal([.types(list)])).status == 0)
    func codes(_ steps: Int...) throws -> FakeTerminal {
      let uri = "otpauth://totp/x?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
      return FakeTerminal(try steps.map { .types(try uriCode(uri, at: bench.now, steps: $0)) })
    }
    let assign = ["token", "assign", "77", "alice", "--allow-missing"]
    #expect(bench.run(arguments: assign, on: try codes(0)).status == 0)
    let done = bench.run("resync", "--token", "77", on: try codes(60, 61))
    #expect(done.answer.hasPrefix("\"77\" is synchronized; its clock is 30 min ahead."))
    #expect(done.terminal.prompts.first == "Code shown by the token: (hidden)")
    let wrong = bench.run("resync", "--token", "77", on: try codes(60, 61))
    #expect(wrong.status == 1 && wrong.aside.contains("codes of \"77\" have already been used"))
    for (words, told) in [
      ("79", "there is no token 79"), ("77 alice", "either a user or --token"),
      ("78", "nobody has the token 78\nhint: sallyport token assign"),
      ("77 --name 77", "either a user or --token"),
    ] {
      let words = words.split(separator: " ").map(String.init)
      #expect(bench.run(arguments: ["resync", "--token"] + words).aside.contains(told))
    }
  }
}
