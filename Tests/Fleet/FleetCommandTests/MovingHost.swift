import FleetProtocol
import FleetTransport
import Foundation
import Glibc
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportLogin
import SallyportSystem
import Synchronization
import TestSupport
import Testing

@testable import FleetCommand
@testable import SallyportCLI

/// A fleet in memory that does with enrollments what a verifier does.
final class MovingFleet: FleetVerifiers {
  struct Book: Sendable {
    var people: [String: (moving: MoveRequest.Moving, version: UInt64)] = [:]
    /// Who was there, with which id and version.
    var removed: [String: (id: UInt64, version: UInt64)] = [:]
    /// By whose taking.
    var tokens: [String: UInt64] = [:]
    /// Other hosts where somebody was let in.
    var used: [String: [FleetHostName]] = [:]
    /// Whether nobody is given away for a while.
    var isHeld = false
    /// For the next question of this kind, once: what comes instead of it, or of its answer.
    var fault: (verb: String, isDone: Bool, what: Result<VerifierAnswer, TransportFault>)?
    var asked: [String] = []
    /// What this host may do; nil where no verifier says it.
    var rights: RightsAnswer?
    /// Before a question is answered.
    var before: (@Sendable () -> Void)?
  }

  let book = Mutex(Book())

  func ask(_ kind: FrameKind, within milliseconds: UInt64, _ made: (UInt64) -> Secret?)
    throws(TransportFault) -> VerifierAnswer
  {
    guard let body = made(milliseconds) else { throw .away }
    guard kind == .management else { return .notServed }
    guard let request = MoveRequest.decode(body) else { return book.withLock { $0.told(body) } }
    book.withLock { $0.before }?()
    let result = book.withLock { book -> Result<VerifierAnswer, TransportFault> in
      let verb = request.verb
      book.asked.append(verb)
      if let fault = book.fault, fault.verb == verb {
        book.fault = nil
        if fault.isDone { _ = book.told(request) }
        return fault.what
      }
      return .success(VerifierAnswer(to: .management, book.told(request)))
    }
    return try result.get()
  }

  var asked: [String] { book.withLock { $0.asked } }
  func has(_ name: String) -> MoveRequest.Moving? { book.withLock { $0.people[name]?.moving } }
}

extension MoveRequest {
  fileprivate var verb: String {
    switch self {
    case .look: "look"
    case .put: "put"
    case .merge: "merge"
    case .fetch: "fetch"
    case .bury: "bury"
    }
  }
}

extension MovingFleet.Book {
  /// Of what moves nobody.
  fileprivate func told(_ body: Secret) -> VerifierAnswer {
    if RightsRequest.decode(body) != nil, let rights {
      return VerifierAnswer(to: .management, rights.encoded() ?? [])
    }
    if let request = PersonRequest.decode(body), let one = people[request.name.text]?.moving {
      let facts = PersonFacts(.enrolled(one), UserNote(), logins: 0)
      return VerifierAnswer(to: .management, PersonAnswer.told(facts).encoded() ?? [])
    }
    return .notServed
  }

  private func standing(_ name: String) -> FleetStanding {
    if let one = people[name] {
      return FleetStanding(.enrolled(one.moving.enrollment.id), version: one.version)
    }
    if let one = removed[name] { return FleetStanding(.removed(one.id), version: one.version) }
    return FleetStanding(.nobody, version: 0)
  }

  fileprivate mutating func told(_ request: MoveRequest) -> [UInt8] {
    if case .fetch(let name, let isForced) = request {
      return fetched(name.text, isForced).encoded() ?? []
    }
    return answer(request).encoded() ?? []
  }

  private func fetched(_ name: String, _ isForced: Bool) -> FetchAnswer {
    if isHeld { return .held }
    guard let one = people[name] else { return .other(.standing(standing(name))) }
    if !isForced, let hosts = used[name] { return .used(on: hosts) }
    return .copy(one.moving, version: one.version)
  }

  private mutating func buried(_ name: String, _ burial: MoveRequest.Tombstone) -> MoveAnswer {
    let standing = standing(name)
    if standing.person == .removed(burial.id), tokens[name] == burial.token { return .done }
    guard standing == FleetStanding(.enrolled(burial.id), version: burial.version) else {
      return .standing(standing)
    }
    people[name] = nil
    removed[name] = (burial.id, burial.version + 1)
    tokens[name] = burial.token
    return .done
  }

  private mutating func answer(_ request: MoveRequest) -> MoveAnswer {
    let name = request.name.text
    let standing = standing(name)
    switch request {
    case .put(let moving, let version):
      if standing.person == .enrolled(moving.enrollment.id) { return .done }
      guard standing.version == version, people[name] == nil else { return .standing(standing) }
      people[name] = (moving, version + 1)
      return .done
    case .merge: return people[name] == nil ? .standing(standing) : .done
    case .bury(_, let burial): return buried(name, burial)
    case .look, .fetch: return .standing(standing)
    }
  }
}

/// Files in `directory` that make a host of a fleet.
func becomeHost(in directory: String, enrolls: Bool) throws {
  let file = FleetFile(
    host: "web1", enrolls: enrolls, verifiers: [try #require(VerifierAddress("192.0.2.1:7353"))],
    pins: [try #require(Pin([UInt8](repeating: 7, count: 32)))])
  try write(directory + "/" + FleetFile.name, file.written(), 0o644)
  let key = try Identity.newKey()
  try write(
    directory + "/" + FleetFile.keyName,
    String(decoding: key.bytes(in: 0..<key.count), as: UTF8.self), 0o600)
}

extension Bench {
  /// A host whose fleet verifies everybody's codes, and has `fleet` for its records.
  func becomeHost(of fleet: Store, in own: URL) throws {
    try FileManager.default.createDirectory(
      at: own, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    try FleetCommandTests.becomeHost(in: own.path, enrolls: true)
    try policy("[default]\nverification = fleet\n")
    try fleet.prepare()
    place.directory = own.path
    place.authority = {
      RecordAuthority(store: fleet) { [self] () throws(StoreTrouble) in now }
    }
    place.asking = { [self] _, _, _ in PersonLine(store: fleet, now: now) }
  }
}

private func write(_ path: String, _ text: String, _ mode: Int) throws {
  try Data(text.utf8).write(to: URL(fileURLWithPath: path))
  try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
}

/// A host that enrolls, with root as the way in that needs no fleet.
final class MovingHost {
  let bench = Bench()
  let fleet = MovingFleet()
  var etc: String { bench.directory + ".security" }

  init(enrolls: Bool = true, roots: String = "root") throws {
    try FileManager.default.createDirectory(atPath: etc, withIntermediateDirectories: true)
    try FileManager.default.createDirectory(
      atPath: bench.root + "/etc", withIntermediateDirectories: true)
    try becomeHost(in: etc, enrolls: enrolls)
    try write(
      bench.root + "/etc/passwd",
      "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/:/bin/bash\n", 0o644)
    try write(bench.root + "/etc/shadow", "root:$y$j9T$x:19000::::::\n", 0o644)
    try policy()
    if !roots.isEmpty { _ = try bench.enroll(roots) }
  }

  deinit { try? FileManager.default.removeItem(atPath: etc) }

  func policy(_ rules: String = "") throws {
    try bench.policy("[default]\nverification = fleet\n" + rules)
  }

  func push(_ arguments: String...) -> Bench.Outcome { run("push", arguments) }

  func take(_ arguments: String...) -> Bench.Outcome { run("take", arguments) }

  func run(_ verb: String, _ arguments: [String] = [], typing script: [Act] = []) -> Bench.Outcome {
    var place = FleetEnvironment(directory: etc, tellService: { _ in nil })
    place.asking = { [fleet] _, _, _ in fleet }
    place.reserve = bench.directory + ".reserve"
    bench.place = place
    bench.machine = Machine(root: bench.root) { _ in .absent }
    return bench.run(arguments: ["fleet", verb] + arguments, on: FakeTerminal(script))
  }

  var store: Store { Store(root: bench.directory, owner: .effectiveUser) }

  func account(_ name: String) throws -> Account {
    try Accounts.find(try #require(UserName(Array(name.utf8))))
  }

  /// nil: he has no files here.
  func mark(_ name: String) throws -> String? {
    try store.moving(try account(name)) { user in user.mark.map { "\($0)" } ?? "none" }
  }

  /// Whether a login would use the files.
  func isJudgedHere(_ name: String) throws -> Bool { try record(name) != nil }

  func record(_ name: String) throws -> Record? { (try? store.load(try account(name))) ?? nil }

  /// As a login that is accepted leaves it.
  func use(_ name: String, step: UInt64) throws {
    let record = try #require(try store.load(try account(name)))
    _ = try store.transact(record, asKnown: true) { (_, state) throws(StoreTrouble) in
      var state = state
      state.authenticators[0].lastAccepted = step
      state.backupCodes?.used = 5
      state.other = Bucket(spent: GuessProbability(units: 9), since: UnixTime(77))
      return (true, state)
    }
  }
}
