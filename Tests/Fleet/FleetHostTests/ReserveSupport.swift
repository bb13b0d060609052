import FleetProtocol
import FleetTransport
import Foundation
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport
import TestSupport
import Testing

@testable import FleetHost
@testable import SallyportService
@testable import SallyportSystem

func name(_ text: String) throws -> UserName { try #require(UserName(Array(text.utf8))) }

/// Codes of one person, `7KMF2X9QD4TW0HZA` and `M3PC8RV1KX5N6GDJ`, and as many as are said.
func codes(_ id: UInt64, _ count: Int = 2) throws -> BackupCodeSet {
  let texts = ["7KMF2X9QD4TW0HZA", "M3PC8RV1KX5N6GDJ"]
  let salt = [UInt8](0..<16)
  return BackupCodeSet(
    id: id, salt: salt,
    digests: try texts.prefix(count).map { try hmacSHA256(key: salt, message: secret($0)) })
}

/// A fleet of one verifier, on the other side of a cable.
final class ScriptedFleet: FleetVerifiers {
  struct Person: Sendable {
    var enrollment: UInt64
    var set: BackupCodeSet
    var used: UInt64 = 0
  }

  struct Condition: Sendable {
    var isCut = false
    var isDatabaseAway = false
    var isRevoked = false
    /// What it was told of the host's starts, and what it says to that.
    var starts: [HostStart] = []
    var reply = HostStartReply.fine
    /// What was in its pings, and what it answers.
    var pings: [[UInt8]] = []
    var pong: [UInt8] = []
    var isStranger = false
    /// Its rows, so that it saves nothing.
    var disbelieves = false
    /// Instead of what it should say.
    var garbage: [UInt8]?
    /// How often it has no time.
    var busy = 0
    /// How many entries it looks at in one question.
    var most = ReserveQuestion.most
    var people: [[UInt8]: Person] = [:]
    /// What was asked, in its order.
    var asked: [ReserveQuestion] = []
  }

  let state = Locked(Condition())

  static let receipt = [UInt8](repeating: 9, count: 32)

  func ask(_ kind: FrameKind, within milliseconds: UInt64, _ made: (UInt64) -> Secret?)
    throws(TransportFault) -> VerifierAnswer
  {
    guard let body = made(milliseconds) else { throw .away }
    let found = state.withLock { state -> Result<VerifierAnswer, TransportFault> in
      if state.isCut { return .failure(.away) }
      if state.isRevoked { return .failure(.revoked) }
      if state.isStranger { return .failure(.stranger) }
      if state.isDatabaseAway { return .success(.databaseAway) }
      if kind == .ping {
        state.pings.append(bytes(body))
        return .success(VerifierAnswer(to: kind, state.pong))
      }
      guard kind == .reserve else { return .success(VerifierAnswer(to: kind, [])) }
      if let garbage = state.garbage { return .success(VerifierAnswer(to: kind, garbage)) }
      guard let question = ReserveQuestion.decode(body) else { return .success(.notServed) }
      if state.busy > 0 {
        state.busy -= 1
        return .success(VerifierAnswer(to: kind, ReserveAnswer.busy.encoded() ?? []))
      }
      if case .start(let start) = question {
        state.starts.append(start)
        return .success(
          VerifierAnswer(to: kind, ReserveAnswer.start(state.reply).encoded() ?? []))
      }
      state.asked.append(question)
      return .success(VerifierAnswer(to: kind, Self.answer(question, &state).encoded() ?? []))
    }
    return try found.get()
  }

  private static func answer(_ question: ReserveQuestion, _ state: inout Condition)
    -> ReserveAnswer
  {
    switch question {
    case .start: return .start(state.reply)
    case .fetch(let name, _):
      guard let person = state.people[name.bytes] else { return ReserveAnswer.none }
      return .section(
        ReserveAnswer.Section(
          enrollmentID: person.enrollment, receipt: receipt, set: person.set, used: person.used))
    case .confirm(let entries):
      return .confirmed(entries.prefix(state.most).map { verdict($0, &state) })
    }
  }

  private static func verdict(_ entry: ReserveQuestion.Entry, _ state: inout Condition)
    -> ReserveAnswer.Verdict
  {
    guard var person = state.people[entry.name.bytes], person.enrollment == entry.enrollmentID,
      entry.receipt == receipt
    else { return .delete }
    guard person.set.id == entry.setID else { return .replace }
    if state.disbelieves { return .keep(used: 0) }
    person.used |= entry.used
    state.people[entry.name.bytes] = person
    return .keep(used: person.used)
  }

  func change(_ body: (inout Condition) -> Void) { state.withLock { body(&$0) } }
  func used(_ name: String) -> UInt64? {
    state.withLock { $0.people[Array(name.utf8)]?.used }
  }
}

/// A host of that fleet, with a reserve of its own and a clock that stands.
final class CutHost: Sendable {
  let reserve: Reserve
  let fleet = ScriptedFleet()
  let keeper: ReserveSync
  let moment: Locked<ReserveAge.Moment>
  let lines = Locked<[(LogLevel, String)]>([])
  let isMember = Locked(true)
  private let own: TemporaryDirectory

  static let start = ReserveAge.Moment(
    clock: UnixTime(1_800_000_000), boot: Array("first".utf8), uptime: 1000)

  /// `pace`: nil for one that asks only when it is told to.
  init(pace: ReserveSync.Pace = ReserveSync.Pace()) throws {
    own = try TemporaryDirectory()
    let moment = Locked(Self.start)
    self.moment = moment
    reserve = Reserve(at: own.path + "/store/reserve", owner: .effectiveUser) {
      moment.withLock { $0 }
    }
    try reserve.prepare()
    let (lines, isMember) = (lines, isMember)
    keeper = try ReserveSync(
      reserve, fleet, pace: pace, isMember: { isMember.withLock { $0 } },
      log: { level, line in
        lines.withLock { $0.append((level, String(decoding: line.bytes, as: UTF8.self))) }
      })
  }

  deinit { keeper.stop() }

  var path: String { own.path + "/store/reserve" }

  /// The same files, as a restarted service finds them.
  func restarted() throws -> Reserve {
    let moment = moment
    let again = Reserve(at: path, owner: .effectiveUser) { moment.withLock { $0 } }
    try again.prepare()
    return again
  }

  /// Enrolled in the fleet, and logs in here.
  func logIn(_ person: String, set: UInt64 = 0xb0b0, used: UInt64 = 0) throws {
    let set = try codes(set)
    fleet.change {
      $0.people[Array(person.utf8)] = ScriptedFleet.Person(
        enrollment: 0xe0e0, set: set, used: used)
    }
    keeper.fetch(try name(person))
    keeper.work()
  }

  func pass(_ seconds: UInt64) {
    moment.withLock {
      $0 = ReserveAge.Moment(
        clock: UnixTime($0.clock.seconds + Int64(seconds)), boot: $0.boot,
        uptime: $0.uptime + seconds)
    }
  }

  var log: [String] { lines.withLock { $0.map(\.1) } }

  func logins(_ reserve: Reserve? = nil) -> ReserveLogins {
    let lines = lines
    return ReserveLogins(reserve ?? self.reserve) { level, line in
      lines.withLock { $0.append((level, String(decoding: line.bytes, as: UTF8.self))) }
    }
  }

  func ask(
    _ verb: LoginQuestion.Verb, _ person: String, policy: Policy = Policy(), uid: UInt32? = 1000,
    in reserve: Reserve? = nil
  ) throws -> ServiceAnswer? {
    try logins(reserve).answer(question(verb, of: person, policy: policy, uid: uid))
  }

  /// What a response comes to here, while no verifier can be asked.
  func type(
    _ text: String, as person: String, policy: Policy = Policy(), uid: UInt32? = 1000,
    in reserve: Reserve? = nil
  ) throws -> Outcome {
    let verb = LoginQuestion.Verb.attempt(
      try secret(text), knownAs: nil, as: .last(givingBack: nil))
    let answer = try ask(verb, person, policy: policy, uid: uid, in: reserve)
    var found: Outcome?
    if case .outcome(let outcome)? = answer { found = outcome }
    return try #require(found)
  }

  func entry(_ person: String) throws -> Reserve.Entry? {
    try reserve.entries().first { $0.name.bytes == Array(person.utf8) }
  }
}

let wrong = Outcome.refused(
  .response(.wrongCode(nil), left: BudgetLeft(known: 0, other: 0)))
let (first, second) = ("7KMF-2X9Q-D4TW-0HZA", "m3pc8rv1kx5n6gdj")

/// As the service of a host has settled it.
func question(
  _ verb: LoginQuestion.Verb, of person: String = "alice", policy: Policy = Policy(),
  uid: UInt32? = 1000, until deadline: UInt64 = .max
) throws -> LoginQuestion {
  var question = LoginQuestion(
    name: Array(person.utf8), service: Array("sshd".utf8), origin: .local, policy: policy,
    millisecondsLeft: 5000, verb: verb)
  question.account = UserName(question.name).map { Account(name: $0, uid: uid) }
  (question.isOwn, question.deadline) = (true, deadline)
  return question
}
