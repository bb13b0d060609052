import FleetProtocol
import FleetTransport
import Foundation
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem
import Synchronization
import TestSupport
import Testing

@testable import SallyportVerifier

/// Where the PostgreSQL of these tests is, as libpq has it, without a user; Tests/Fleet/run starts
/// one. nil: the tests that need one are skipped.
let testDatabase = ProcessInfo.processInfo.environment["SALLYPORT_TESTS_DATABASE"]

/// The tables, made once for all tests.
private let tables: Result<Database.Made, any Error> = Result {
  try Database.makeSchema((testDatabase ?? "") + " user=postgres", key: try fleetKey())
}

func fleetKey() throws -> FleetKey {
  FleetKey(id: 1, try secret([UInt8](repeating: 7, count: FleetKey.length)))
}

extension HostIdentity {
  /// With all rights, as often as it likes.
  init(_ pin: Pin, host: [UInt8], enrolls: Bool, holdsReserve: Bool = true) {
    var rights = HostRights(enrolls ? HostRight.allCases : [])
    if enrolls { for right in HostRight.allCases { rights[right].daily = .max } }
    self.init(pin, host: host, rights: rights, holdsReserve: holdsReserve)
  }
}

/// A database with the schema that no other test has, for what concerns everybody in it.
struct OwnDatabase {
  let words: String

  init() throws {
    let name = "own_\(UUID().uuidString.replacing("-", with: "").lowercased())"
    let test = try #require(testDatabase)
    _ = try DatabaseConnection(test + " user=postgres", worker: 0)
      .ask("CREATE DATABASE \(name)", [], 60_000)
    words = test + " dbname=\(name)"
    _ = try Database.makeSchema(words + " user=postgres", key: try fleetKey())
  }
}

/// One verifier, and a database administrator beside it.
final class Verifier: Sendable {
  let database: Database
  let admin: DatabaseConnection
  private let log = Log()

  private final class Log: Sendable {
    let lines = Mutex<[String]>([])
    let acts = Mutex<[String]>([])
    let warnings = Mutex<[String]>([])
    let notices = Mutex<[String]>([])
  }

  init(
    _ name: String = "one", options: String = "", in own: OwnDatabase? = nil,
    clock: (@Sendable () -> Int64)? = nil, now: (@Sendable () -> UnixTime)? = nil,
    incarnation: IncarnationFile? = nil, memory: String? = nil, patienceAtStart: UInt64 = 6000,
    directory: String? = nil, key: FleetKey? = nil
  ) throws {
    if own == nil { _ = try tables.get() }
    let words = try own?.words ?? #require(testDatabase)
    let key = try key ?? fleetKey()
    let log = log
    database = try Database(
      words + " user=sallyport_verifier " + options, key: key, verifier: Array(name.utf8),
      directory: directory, incarnation: incarnation, memory: memory,
      patienceAtStart: patienceAtStart, clock: clock, now: now
    ) { level, line in
      let text = String(decoding: line.bytes, as: UTF8.self)
      if text.hasPrefix("act=") { log.acts.withLock { $0.append(text) } }
      if level == .notice { log.notices.withLock { $0.append(text) } }
      if level == .warning { log.warnings.withLock { $0.append(text) } }
      guard level == .alert || level == .error else { return }
      log.lines.withLock { $0.append(text) }
    }
    admin = try DatabaseConnection(words + " user=postgres", worker: 0)
    // What a test writes is not a verifier's: it may take as long as `ask` waits.
    _ = try admin.ask("SET statement_timeout = '10s'")
    try database.begin()
    if !database.isAway { try store().makeDecoys() }
  }

  /// What it has logged as an error or an alert.
  var complaints: [String] { log.lines.withLock { $0 } }

  /// What it has logged as a warning.
  var warnings: [String] { log.warnings.withLock { $0 } }

  /// What it has logged as a notice.
  var notices: [String] { log.notices.withLock { $0 } }

  /// The acts that it has logged.
  var acts: [String] { log.acts.withLock { $0 } }

  func store(for name: String = "", uid: UInt32? = 1000) -> FleetStore {
    let event = Event(of: "sshd", on: Array("web1".utf8), name: Array(name.utf8))
    return FleetStore(database, event, uid: uid)
  }

  /// Types a code at a time at which nothing is throttled.
  func type(_ code: String, as name: String, at time: Int64 = 59, uid: UInt32? = 1000) throws
    -> Outcome
  {
    let authority = RecordAuthority(store: store(for: name, uid: uid)) { UnixTime(time) }
    let account = try #require(UserName(Array(name.utf8)).map { Account(name: $0, uid: uid) })
    let context = LoginContext(policy: Policy(), origin: .unknown, service: try label("sshd"))
    let pending = try authority.claimant(Array(name.utf8), account, in: context)
    return try authority.attempt(
      try secret(code), knownAs: nil, by: pending, as: .last(givingBack: nil))
  }

  /// Enrolls under a name that no other test has, with the secret of the RFCs' examples.
  func enroll(_ type: AuthenticatorType = .totp(period: 30)) throws -> String {
    let name = "user-\(UUID().uuidString)"
    let one = try authenticator(parameters(type))
    let enrollment = try fleetEnrollment([one], name)
    try store(for: name).create(enrollment, LoginState(initialFor: enrollment))
    return name
  }

  func ask(_ statement: String, _ values: [Value] = []) throws -> Rows {
    try admin.ask(statement, values, 10_000)
  }

  /// The outcomes of a user's events, in their order.
  func events(of name: String) throws -> [String] {
    let rows = try ask(
      "SELECT concat_ws(' ', outcome, position) FROM event WHERE name = $1 ORDER BY at",
      [.bytes(Array(name.utf8))])
    return (0..<rows.count).compactMap { rows.text($0, 0) }
  }
}

func authenticator(_ parameters: CodeParameters) throws -> Authenticator {
  try authenticator(1, "phone", parameters)
}

func fleetEnrollment(
  _ authenticators: [Authenticator], _ name: String, codes: BackupCodeSet? = nil
) throws -> Enrollment {
  Enrollment(
    id: 0xe0e0, user: try #require(UserName(Array(name.utf8))), uid: nil,
    created: UnixTime(1_700_000_000), authenticators: authenticators, backupCodes: codes)
}

extension Outcome {
  var isAccepted: Bool { if case .accepted = self { true } else { false } }

  var verdict: Decision.Verdict? {
    switch self {
    case .accepted(let proof): .accept(proof)
    case .refused(.response(let refusal, _)): .refuse(refusal)
    case .refused(.notEnrolled), .refused(.unknownUser), .refused(.blocked): nil
    }
  }
}

extension FrameHandler {
  func answer(_ body: Secret, from asker: HostIdentity, arrived: UInt64) -> VerifierAnswer {
    answer(read(body), from: asker, arrived: arrived)
  }
}

extension ManagementHandler {
  /// Under the policy of no file.
  init(_ database: Database) { self.init(database, FleetPolicy(in: "/var/empty/no-policy")) }
}

/// As a host asks it.
func hostFrame(_ asked: LoginQuestion, isOwn: Bool, uid: UInt32?) throws -> Secret {
  var question = asked
  question.account = Account(name: try #require(UserName(asked.name)), uid: uid)
  question.isOwn = isOwn
  return try #require(question.hostFrame())
}
