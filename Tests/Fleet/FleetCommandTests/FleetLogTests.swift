import FleetProtocol
import FleetTransport
import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportSupport
import SallyportSystem
import TestSupport
import Testing

@testable import FleetCommand
@testable import SallyportCLI
@testable import SallyportDoctor

/// Verifiers with these events, newest first, which answer up to a question.
private final class EventLine: FleetVerifiers {
  let events: [EventsAnswer.Entry]
  let questions: Int
  let other: VerifierAnswer?
  let asked = Locked<[EventsRequest]>([])

  init(_ events: [EventsAnswer.Entry], questions: Int = .max, other: VerifierAnswer? = nil) {
    (self.events, self.questions, self.other) = (events, questions, other)
  }

  func ask(_ kind: FrameKind, within milliseconds: UInt64, _ made: (UInt64) -> Secret?)
    throws(TransportFault) -> VerifierAnswer
  {
    guard let frame = made(milliseconds), kind == .management,
      let request = EventsRequest.decode(frame)
    else { return .notServed }
    let count = asked.withLock { asked in
      asked.append(request)
      return asked.count
    }
    if count > questions { throw .away }
    if let other { return other }
    let rest = events.filter { event in
      let isMeant = request.names.isEmpty || request.names.contains { $0.bytes == event.name }
      let isInTime = event.at <= request.upTo && event.at >= request.since
      let outcome = String(decoding: event.outcome, as: UTF8.self)
      let isTold =
        switch request.kinds {
        case .accepted: outcome == "accepted"
        case .refused: outcome != "accepted" && !outcome.hasPrefix("act-")
        case .both: !outcome.hasPrefix("act-")
        case .acts: outcome.hasPrefix("act-")
        }
      return isMeant && isInTime && isTold
    }
    let page = Array(rest.prefix(EventsAnswer.most))
    let next = rest.count > page.count ? rest[page.count].at : nil
    return VerifierAnswer(
      to: .management, EventsAnswer.told(page, next: next).encoded() ?? [])
  }
}

@Suite struct `The log of a host of a fleet` {
  private let bench = Bench()
  private let own = FileManager.default.temporaryDirectory
    .appendingPathComponent("sallyport-\(UUID().uuidString)")

  init() throws {
    try FileManager.default.createDirectory(
      at: own, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    try becomeHost(in: own.path, enrolls: true)
    try bench.policy("[default]\nverification = fleet\n")
    bench.place.directory = own.path
  }

  /// `ago`: seconds before now.
  private func event(
    _ ago: Int64, _ host: String, _ user: String, _ outcome: String = "accepted",
    from address: String = "192.0.2.7"
  ) throws -> EventsAnswer.Entry {
    let texts = [host, user, "sshd", address, outcome].map { Array($0.utf8) }
    let entry = EventsAnswer.Entry(at: UInt64(bench.now.seconds - ago) * 1_000_000, texts: texts)
    return try #require(entry)
  }

  /// Lines of sshd in the journal, each `ago` seconds before now, the newest first.
  private func journal(_ lines: [(ago: Int64, text: String)], isThere: Bool = true) throws {
    let folder = bench.root + (isThere ? "/var/log/journal/0" : "/var/log")
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    if isThere { try Data().write(to: URL(fileURLWithPath: folder + "/system.journal")) }
    var texts: [String] = []
    for line in lines {
      let fields: [String: Any] = [
        "MESSAGE": "pam_sallyport(sshd:auth): " + line.text, "_UID": "0",
        "_EXE": "/usr/sbin/sshd",
        "__REALTIME_TIMESTAMP": "\((bench.now.seconds - line.ago) * 1_000_000)",
      ]
      let data = try JSONSerialization.data(withJSONObject: fields)
      texts.append(String(decoding: data, as: UTF8.self))
    }
    let all = texts
    bench.machine = Machine(
      root: bench.root,
      run: { words in
        if words.contains("--version") { return .seen(.init(status: 0, output: "-PCRE2")) }
        return .seen(.init(status: 0, output: all.map { $0 + "\n" }.joined()))
      })
  }

  private func log(_ words: [String] = [], by line: EventLine) -> Bench.Outcome {
    bench.place.asking = { _, _, _ in line }
    return bench.runAsRoot(["log"] + words, on: FakeTerminal([]), store: own.path + "/files")
  }

  private func lines(_ done: Bench.Outcome) -> [String] {
    done.answer.split(separator: "\n").map { String($0.drop { $0 != " " }.dropFirst(8)) }
  }

  // decisive
  @Test func `tells who logged in where, in order of time, and a login here once`() throws {
    try journal([
      (20, "refused: reason=wrong-code user=alice origin=192.0.2.9"),
      (50, "code accepted: user=alice authenticator=\"phone\" origin=192.0.2.7"),
      (90, "refused: reason=not-enrolled user=alice origin=192.0.2.7"),
    ])
    let line = EventLine([
      try event(10, "web2", "bob", "wrong-code", from: "local"),
      // By a clock that is a little off.
      try event(55, "web1", "alice"), try event(60, "web2", "alice"),
      try event(70, "web1", "alice", from: "unknown"),
      try event(95, "web3", "", "unknown-user"),
    ])
    let done = log(by: line)
    #expect(done.status == 0, "\(done.aside)")
    #expect(
      lines(done) == [
        "an unknown name at sshd on web3 from 192.0.2.7: refused (unknown-user)",
        "alice at sshd from 192.0.2.7: refused (not-enrolled)",
        "alice at sshd on web1: accepted", "alice at sshd on web2 from 192.0.2.7: accepted",
        "alice at sshd from 192.0.2.7: a code of \"phone\" was accepted",
        "alice at sshd from 192.0.2.9: refused (wrong-code)",
        "bob at sshd on web2, on that machine: refused (wrong-code)",
      ])
    let json = log(["alice", "--logins", "--json"], by: line)
    struct Shown: Decodable {
      struct Login: Decodable {
        let host: String?
        let result: String
      }
      let logins: [Login]
    }
    let told = try json.json(Shown.self).logins
    #expect(told.map { $0.host ?? "here" } == ["here", "web1", "web2", "here", "here"])
    #expect(told[1].result == "accepted")
    #expect(line.asked.withLock { $0.last?.names.map(\.text) } == ["alice", "alice"])
  }

  @Test func `tells what other hosts changed, apart from logins`() throws {
    try journal([])
    let line = EventLine([
      try event(10, "web2", "alice"), try event(20, "web1", "alice", "act-block"),
      try event(30, "web2", "alice", "act-rename"), try event(40, "web3", "alice", "act-block"),
    ])
    let acts = [
      "host (web3) blocked alice [verifier]",
      "host (web2) renamed an authenticator of alice [verifier]",
    ]
    let login = "alice at sshd on web2 from 192.0.2.7: accepted"
    for (words, told) in [([], acts + [login]), (["--acts"], acts), (["--logins"], [login])] {
      #expect(lines(log(words, by: line)) == told)
    }
    #expect(line.asked.withLock { $0.map(\.kinds) } == [.both, .acts, .acts, .both])
    let json = log(["alice", "--json"], by: line).answer
    #expect(json.contains("\"by\" : \"host(web3)\"") && json.contains("\"via\" : \"verifier\""))
  }

  /// One to one: two events are not one line's, and one that is far away is another login.
  @Test func `takes a line for one event alone`() throws {
    try journal([(50, "code accepted: user=alice authenticator=\"phone\" origin=192.0.2.7")])
    for (times, count) in [([50, 51], 2), ([81], 2), ([80], 1), ([20], 1)] as [([Int64], Int)] {
      let events = try times.map { try event($0, "web1", "alice") }
      #expect(lines(log(by: EventLine(events))).count == count, "\(times)")
    }
  }

  // decisive
  @Test(
    arguments: [
      (.databaseAway, "the verifier's database does not answer"),
      (VerifierAnswer(to: .management, []), "upgrade them all"),
      (VerifierAnswer(to: .management, MoveAnswer.trouble.encoded() ?? []), "cannot read"),
      (
        VerifierAnswer(to: .management, EventsAnswer.told([], next: .max).encoded() ?? []),
        "unrecognized answer"
      ),
    ] as [(VerifierAnswer, String)])
  func `has this machine's part where the fleet does not answer`(
    _ answer: VerifierAnswer, _ why: String
  ) throws {
    try journal([(50, "code accepted: user=alice authenticator=\"phone\" origin=192.0.2.7")])
    let done = log(by: EventLine([], other: answer))
    #expect(done.status == 75, "\(done.aside)")
    #expect(done.aside.contains("sallyport: the fleet's part is missing: "))
    #expect(done.aside.contains(why) && done.aside.contains("hint: sallyport fleet status"))
    #expect(lines(done) == ["alice at sshd from 192.0.2.7: a code of \"phone\" was accepted"])
    let json = log(["--json"], by: EventLine([], other: answer)).answer
    #expect(json.contains("the fleet's part is missing"), "\(json)")
  }

  @Test func `has the pages that came, and says that there are more`() throws {
    try journal([])
    let events = try (0..<120).map { try event(Int64($0), "web2", "alice") }
    let done = log(["--logins"], by: EventLine(events, questions: 2))
    #expect(done.status == 75 && lines(done).count == 100)
    #expect(lines(log(by: EventLine(events))).count == 120)
  }

  // decisive
  @Test func `has a bound, by which refusals push no login out`() throws {
    try journal([])
    var events = try (0..<2100).map { try event(Int64($0), "web2", "bob", "wrong-code") }
    events.append(try event(5000, "web2", "alice"))
    let line = EventLine(events)
    let done = log(["--logins"], by: line)
    #expect(done.aside.contains("only the newest 2000 logins and 2000 refusals are shown"))
    #expect(lines(done).first == "alice at sshd on web2 from 192.0.2.7: accepted")
    #expect(done.answer.contains("2000 times"), "\(done.answer)")
    #expect(line.asked.withLock { $0.last?.kinds } == .accepted)
  }

  @Test func `asks no verifier where that is not wanted, or not for this host`() throws {
    try journal([])
    let line = EventLine([try event(10, "web2", "nobody")])
    try bench.policy("[rule here]\nmatch_user = nobody\nverification = local\n")
    #expect(log(["nobody", "--logins"], by: line).answer.hasPrefix("Nothing since"))
    #expect(log(["--logins", "--store", own.path], by: line).answer.hasPrefix("Nothing since"))
    try becomeHost(in: own.path, enrolls: false)
    #expect(log(["--logins"], by: line).status == 0)
    #expect(line.asked.withLock { $0.isEmpty })
  }
}
