import FleetProtocol
import FleetTransport
import Foundation
import Glibc
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportSystem
import Synchronization
import Testing

@testable import FleetCommand
@testable import SallyportCLI

/// A machine that joins: its own files, and a verifier of the test's.
private final class Host {
  let bench = Bench()
  let root: String
  var etc: String { bench.directory + ".security" }
  let line: FakeVerifiers
  var told = 0

  init(known: [String] = [], enrolls: Bool = false) throws {
    let names = known.compactMap { UserName(Array($0.utf8)) }
    let welcome = JoinAnswer.Welcome(
      host: try #require(FleetHostName(Array("web1".utf8))), enrolls: enrolls, verifiers: [],
      pins: [[UInt8](repeating: 7, count: 32)], known: names)
    line = FakeVerifiers(.success(.welcome(welcome)))
    root = bench.root
    try FileManager.default.createDirectory(atPath: etc, withIntermediateDirectories: true)
    try FileManager.default.createDirectory(
      atPath: root + "/etc", withIntermediateDirectories: true)
    try write("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\n")
    try write("/etc/shadow", "root:$y$j9T$x:19000::::::\n")
    try bench.policy("[rule root]\nmatch_user = root\nverification = local\n")
  }

  deinit { try? FileManager.default.removeItem(atPath: etc) }

  private func write(_ path: String, _ text: String) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: root + path))
  }

  var place: FleetEnvironment {
    var place = FleetEnvironment(directory: etc, reserve: bench.directory + ".reserve")
    place.seal = bench.directory + ".seal"
    place.asking = { [line] file, identity, _ in
      line.script.withLock { $0.pins.append(identity.pin) }
      return line
    }
    place.tellService = { _ in nil }
    return place
  }

  static func token(_ addresses: [String] = ["192.0.2.1:7353"]) throws -> String {
    let secret = try #require(Secret([UInt8](repeating: 5, count: 16)))
    let token = try #require(
      JoinToken(
        pin: [UInt8](repeating: 7, count: 32), secret: secret,
        verifiers: addresses.map { Array($0.utf8) }))
    let text = try token.written()
    return String(decoding: text.bytes(in: 0..<text.count), as: UTF8.self)
  }

  func run(_ arguments: String..., typing script: [Act] = []) -> Bench.Outcome {
    bench.place = place
    bench.machine = Machine(root: root) { _ in .absent }
    return bench.run(arguments: ["fleet"] + arguments, on: FakeTerminal(script))
  }

  func join(_ arguments: String...) throws -> Bench.Outcome {
    bench.place = place
    bench.machine = Machine(root: root) { _ in .absent }
    return bench.run(
      arguments: ["fleet", "join"] + arguments, on: FakeTerminal([.types(try Host.token())]))
  }

  var files: [String] {
    get throws { try FileManager.default.contentsOfDirectory(atPath: etc).sorted() }
  }

  var asked: [JoinRequest.Purpose] { line.script.withLock { $0.asked } }
}

private let both = ["sallyport-fleet.conf", "sallyport-fleet.key"]

@Suite struct `A machine that joins a fleet` {
  @Test func `looks, writes its key, joins, and is a host`() throws {
    let host = try Host(enrolls: true)
    _ = try host.bench.enroll("root")
    let done = try host.join()
    #expect(done.status == 0, "\(done.aside)")
    #expect(done.terminal.prompts == ["Token: (hidden)"])
    #expect(host.asked == [.look, .join])
    #expect(try host.files == both)
    let file = try FleetFile.read(in: host.etc)
    #expect(file.host == "web1" && file.enrolls)
    #expect(file.verifiers.map(\.text) == ["192.0.2.1:7353"])
    #expect(done.answer.contains("This machine is the host web1 of the fleet"))
    #expect(done.answer.contains("sallyport fleet status"))
    let again = host.run("join")
    #expect(again.status == 73 && again.aside.contains("is a host of a fleet already: web1"))
  }

  @Test func `asks about all accounts of the machine`() throws {
    let host = try Host()
    _ = try host.bench.enroll("root")
    _ = try host.join()
    let names = host.line.script.withLock { $0.names }
    #expect(names.contains("root") && names.contains("daemon"))
    #expect(Set(names).count == names.count)
  }

  @Test(arguments: [
    (JoinAnswer.Refusal.unknownToken, "no invitation has this token"),
    (.usedToken, "another machine has used this token"), (.expiredToken, "the token has expired"),
    (.otherHost, "this machine's key is that of another host"),
  ])
  func `changes nothing where the token is refused, and says why`(
    refusal: JoinAnswer.Refusal, text: String
  ) throws {
    let host = try Host()
    _ = try host.bench.enroll("root")
    host.line.script.withLock { $0.look = .success(.refused(refusal)) }
    let done = try host.join()
    #expect(done.status == 1 && done.aside.contains(text), "\(done.aside)")
    #expect(try host.files == [])
    #expect(host.asked == [.look])
  }

  @Test(arguments: [
    (TransportFault.away, "no verifier can be reached"),
    (.unpinned, "has an unexpected key"),
    (.unknown, "the verifier did not answer: nothing was changed"),
  ])
  func `changes nothing where no verifier answers`(fault: TransportFault, text: String) throws {
    let host = try Host()
    _ = try host.bench.enroll("root")
    host.line.script.withLock { $0.look = .failure(fault) }
    let done = try host.join()
    #expect(done.status != 0 && done.aside.contains(text), "\(done.aside)")
    #expect(try host.files == [])
  }

  @Test func `goes on with the same key where the answer was lost`() throws {
    let host = try Host()
    _ = try host.bench.enroll("root")
    let answer = host.line.script.withLock { script in
      defer { script.join = .failure(.unknown) }
      return script.join
    }
    let first = try host.join()
    #expect(first.status == 75 && first.aside.contains("is not known"), "\(first.aside)")
    #expect(try host.files == ["sallyport-fleet.key"])
    host.line.script.withLock { $0.join = answer }
    #expect(try host.join().status == 0)
    #expect(try host.files == both)
    let pins = host.line.script.withLock { $0.pins }
    #expect(Set(pins).count == 1)
  }

  @Test func `goes on over what a crash left`() throws {
    let host = try Host()
    _ = try host.bench.enroll("root")
    for name in ["sallyport-fleet.key.new", "sallyport-fleet.conf.new"] {
      try Data("half".utf8).write(to: URL(fileURLWithPath: "\(host.etc)/\(name)"))
    }
    #expect(try host.join().status == 0)
    #expect(try host.files == both)
  }

  @Test(arguments: [
    ("", "no token was typed"), ("hello", "not a token"),
    ("sallyport-AAAA", "a part of the token is missing"),
  ])
  func `takes no other text for a token`(typed: String, text: String) throws {
    let host = try Host()
    _ = try host.bench.enroll("root")
    let done = host.run("join", typing: [.types(typed)])
    #expect(done.status != 0 && done.aside.contains(text), "\(done.aside)")
    #expect(host.asked == [])
    #expect(try host.files == [])
  }

  // MARK: one name, one person

  @Test func `stops at a name that may mean two people, until it is said`() throws {
    let host = try Host(known: ["daemon"])
    _ = try host.bench.enroll("root")
    _ = try host.bench.enroll("bob")
    let done = try host.join()
    #expect(done.status == 1)
    #expect(done.aside.contains("2 names may mean one person here and another one"))
    #expect(done.aside.contains("bob      enrolled here"))
    #expect(done.aside.contains("daemon      an account here, and in the fleet"))
    #expect(done.aside.contains("sallyport fleet join --same all  # or --same bob,daemon: those"))
    #expect(try host.files == [])
    #expect(host.asked == [.look])
    #expect(try host.join("--same", "bob").status == 1)
    #expect(try host.join("--same", "bob,daemon").status == 0)
  }

  // decisive
  @Test func `joins where all names are said to be the same people, and shows them`() throws {
    let host = try Host(known: ["daemon"])
    _ = try host.bench.enroll("root")
    _ = try host.bench.enroll("bob")
    let done = try host.join("--same", "all")
    #expect(done.status == 0 && done.answer.contains("The same here and there: bob, daemon.\n"))
  }

  @Test func `does not ask about those whom the policy keeps here`() throws {
    let host = try Host(known: ["daemon"])
    _ = try host.bench.enroll("root")
    _ = try host.bench.enroll("bob")
    try host.bench.policy(
      "[rule here]\nmatch_user = root, bob, daemon\nverification = local\n")
    #expect(try host.join().status == 0)
  }

  @Test func `wants no word about those who are no question`() throws {
    let host = try Host()
    _ = try host.bench.enroll("root")
    let done = try host.join("--same", "carol")
    #expect(done.status == 64 && done.aside.contains("--same is not needed for carol"))
    #expect(try host.files == [])
  }

  // MARK: break-glass

  @Test func `refuses where nobody could become root while the fleet is away`() throws {
    let host = try Host()
    let done = host.run("join")
    #expect(done.status == 1)
    #expect(done.aside.contains("nobody could log in and become root here"), "\(done.aside)")
    #expect(done.aside.contains("sallyport enroll NAME  # one of: root"))
    #expect(host.asked == [])
    #expect(try host.join("--without-break-glass").status == 0)
  }
}

@Suite struct `A host that leaves its fleet` {
  private func host() throws -> Host {
    let host = try Host()
    _ = try host.bench.enroll("root")
    #expect(try host.join().status == 0)
    return host
  }

  @Test func `removes both files, and says what is left to do`() throws {
    let host = try host()
    let reserve = Store(reserve: host.place.reserve, owner: .effectiveUser)
    defer { try? FileManager.default.removeItem(atPath: host.place.reserve) }
    try reserve.prepareWithParent()
    try reserve.markPending(try #require(UserName(Array("alice".utf8))))
    let done = host.run("leave")
    #expect(done.status == 0, "\(done.aside)")
    #expect(done.aside.contains("that a backup code was used here, of: alice; make new "))
    #expect(try host.files == [])
    #expect(done.answer.contains("sallyport-verifier revoke web1"))
    #expect(host.run("leave").status == 66)
    #expect(host.run("status").status == 66)
  }

  @Test func `has the keys of its seal until then`() throws {
    let (host, half) = (try Host(), Secret(count: SealKeys.keyLength))
    _ = try host.bench.enroll("root")
    let keys = try SealKeys(
      name: Array("the name".utf8), question: #require(half), answer: #require(half),
      proof: [UInt8](repeating: 0, count: SealKeys.proofLength))
    host.line.script.withLock { $0.keys = keys }
    #expect(try host.join().status == 0)
    let pin = try Identity.read(at: host.place.key).pin
    #expect(try HostSeal.read(at: host.place.seal, of: pin).keys?.name == keys?.name)
    // What is left of a join, of which nothing else would be believed, is gone with the next one.
    host.line.script.withLock { $0.keys = nil }
    try FileManager.default.removeItem(atPath: "\(host.etc)/sallyport-fleet.conf")
    #expect(try host.join().status == 0)
    #expect(try Identity.read(at: host.place.key).pin == pin)
    #expect(!FileManager.default.fileExists(atPath: host.place.seal))
    host.line.script.withLock { $0.keys = keys }
    #expect(host.run("leave").status == 0)
    #expect(try host.join().status == 0 && FileManager.default.fileExists(atPath: host.place.seal))
    #expect(keys != nil && host.run("leave").status == 0)
    #expect(!FileManager.default.fileExists(atPath: host.place.seal))
  }

  @Test func `does not while the policy has a user of the fleet`() throws {
    let host = try host()
    try host.bench.policy("[default]\nverification = fleet\n")
    let done = host.run("leave")
    #expect(done.status == 78 && done.aside.contains(":2: verification = fleet"), "\(done.aside)")
    #expect(try host.files == both)
    try host.bench.policy("[default]\nverification = fleet\nnonsense\n")
    #expect(host.run("leave").status == 78)
    #expect(host.run("leave", "--force").status == 0)
  }

  @Test func `goes on after a crash between its steps`() throws {
    let host = try host()
    try FileManager.default.removeItem(atPath: "\(host.etc)/sallyport-fleet.conf")
    #expect(host.run("leave").status == 0)
    #expect(try host.files == [])
  }

  @Test func `leaves with a file that cannot be read`() throws {
    let host = try host()
    try Data("garbage\n".utf8).write(
      to: URL(fileURLWithPath: "\(host.etc)/sallyport-fleet.conf"))
    #expect(host.run("status").aside.contains("sallyport-fleet.conf:1"))
    #expect(host.run("leave").status == 0)
    #expect(try host.files == [])
  }
}

@Suite struct `The status of a fleet` {
  private func host(
    _ answer: Result<VerifierAnswer, TransportFault>, enrolls: Bool = false
  ) throws -> Host {
    let host = try Host(enrolls: enrolls)
    _ = try host.bench.enroll("root")
    #expect(try host.join().status == 0)
    host.line.script.withLock { $0.status = answer }
    return host
  }

  private func status(_ now: UnixTime, awaySince: UnixTime? = nil) throws -> VerifierAnswer {
    let answer = FleetStatusAnswer(
      verifier: Label("one"), host: try #require(FleetHostName(Array("web1".utf8))), enrolls: false,
      now: now, started: UnixTime(now.seconds - 3600), awaySince: awaySince, peers: [])
    return VerifierAnswer(to: .status, try #require(answer.encoded()))
  }

  @Test func `says that a verifier can verify codes, and since when`() throws {
    let now = UnixTime(1_772_530_000)
    let host = try host(.success(try status(now)))
    let done = host.run("status")
    #expect(done.status == 0, "\(done.aside)")
    #expect(
      done.answer.contains("192.0.2.1:7353   one    verifies codes, up since 2026-03-03T08:26:40Z"))
    #expect(done.answer.contains("All of them verify codes."))
    let json = try host.run("status", "--json").json(Report.self)
    #expect(json.canVerify && json.verifiers.first?.verifies == true && json.host == "web1")
  }

  private struct Report: Decodable {
    struct Verifier: Decodable {
      let verifies: Bool
      let problem: String?
    }
    let host: String
    let enrolls: Bool
    let canVerify: Bool
    let verifiers: [Verifier]
  }

  @Test func `says that the right of its file rests, where the verifiers do not give it`() throws {
    let host = try host(.success(try status(UnixTime(1_772_530_000))), enrolls: true)
    #expect(host.run("status").answer.contains("Host web1, without the rights it joined with"))
    #expect(try !host.run("status", "--json").json(Report.self).enrolls)
  }

  @Test(arguments: [
    (TransportFault.away, "away", "cannot be reached"), (.unknown, "silent", "does not answer"),
    (.unpinned, "wrong-key", "unexpected key"), (.revoked, "revoked", "host was revoked"),
    (.stranger, "unknown", "does not know this host's key"),
  ])
  func `says why a verifier cannot verify codes`(fault: TransportFault, word: String, text: String)
    throws
  {
    let host = try host(.failure(fault))
    let done = host.run("status")
    #expect(done.status == 75)
    #expect(done.answer.contains(text) && done.answer.contains("None of them verifies codes"))
    let json = try host.run("status", "--json").json(Report.self)
    #expect(!json.canVerify && json.verifiers.first?.problem == word)
  }

  @Test func `says that the database of a verifier is away, and that a clock is off`() throws {
    let now = UnixTime(1_772_530_000)
    let away = try host(.success(try status(now, awaySince: UnixTime(now.seconds - 60))))
    #expect(away.run("status").answer.contains("its database is away, or has another time"))
    let off = try host(.success(try status(UnixTime(now.seconds + 90))))
    #expect(off.run("status").answer.contains("this host's clock is 90 s behind"))
  }
}
