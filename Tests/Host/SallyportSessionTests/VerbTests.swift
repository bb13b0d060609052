import Foundation
import Glibc
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem
import SessionProtocol
import TestSupport
import Testing

@testable import SallyportSession

/// Answers a session as the service and a verifier do: a change is a question of a login.
private final class Answering: CodeAuthority {
  let isForRoot = true
  private let store: Store
  private let records: RecordAuthority<Store>
  private let loss: Loss
  private var isChanged = false

  /// What it does not answer.
  enum Loss {
    case nothing, firstChange, whateverFollows
    /// The verifiers refuse this host, from the beginning or with the change.
    case right, rightMeanwhile
  }

  init(_ store: Store, losing loss: Loss) {
    (self.store, records, self.loss) = (store, RecordAuthority(store: store), loss)
  }

  func amend(
    _ change: EnrollmentChange, of user: UserName, _ pending: PendingLogin?,
    in context: LoginContext
  ) throws(StoreTrouble) -> Amendment {
    if loss == .right || loss == .rightMeanwhile { throw Self.refused }
    var question = LoginQuestion(
      name: user.bytes, service: Array("sallyport".utf8), origin: .local, policy: context.policy,
      millisecondsLeft: 0, verb: .amend(change, to: pending?.enrollmentID ?? 0))
    question.account = Account(name: user, uid: 3001)
    question.deadline = .max
    switch try question.answer(from: store, in: context, enrolling: 3001) {
    case .done:
      let isFirst = !isChanged
      isChanged = true
      if isFirst, loss == .firstChange { throw Self.lost }
      return .done
    case .flaw(let flaw): return .flawed(flaw)
    case _: return .changed
    }
  }

  private static let lost = StoreTrouble.service(path: "/run/service", .unknown)

  private static let refused = StoreTrouble.service(path: "/run/service", .notServed)

  // MARK: as from the files

  func canBeAsked() -> Bool { true }
  func prepare(
    _ typed: [UInt8], _ account: Account?, in context: LoginContext, mayEnroll: Bool,
    after first: FirstFactor
  ) throws(StoreTrouble) -> AuthStep {
    try records.prepare(typed, account, in: context, mayEnroll: mayEnroll, after: first)
  }
  func attempt(
    _ typed: Secret, knownAs malformation: Malformation?, by pending: PendingLogin,
    as role: ResponseRole
  ) throws(StoreTrouble) -> Outcome {
    try records.attempt(typed, knownAs: malformation, by: pending, as: role)
  }
  func enrolled(_ account: Account, in context: LoginContext) throws(StoreTrouble) -> PendingLogin?
  {
    if isChanged, loss == .whateverFollows { throw Self.lost }
    return try records.enrolled(account, in: context)
  }
  func level(of account: Account, in context: LoginContext) throws(StoreTrouble)
    -> EnrollmentLevel
  {
    try records.level(of: account, in: context)
  }
  func remember(_ address: NumericAddress, for pending: PendingLogin) throws(StoreTrouble) {
    try records.remember(address, for: pending)
  }
  func rehearse(for account: Account, in context: LoginContext) throws(StoreTrouble) {
    if loss == .right { throw Self.refused }
    try records.rehearse(for: account, in: context)
  }
  func countLogin(of account: Account, in context: LoginContext) throws(StoreTrouble) -> UInt32 {
    try records.countLogin(of: account, in: context)
  }
}

/// A session over a store of its own, whose user has the right password, and the user's end of it.
private final class Visitor {
  let directory: TemporaryDirectory
  /// What has the user's record: the files of this machine, or in a fleet nothing of this machine.
  let store: Store
  let files: Store
  let account: Account
  private let connection: SessionConnection
  private let session: Session
  private let policyFile: String
  /// What the session told.
  private(set) var told: [String] = []

  /// `shows`: whether the fleet tells a session of this host what it has of its user.
  init(on way: VerbWay, losing loss: Answering.Loss = .nothing, shows: Bool = true) throws {
    let directory = try TemporaryDirectory()
    self.directory = directory
    files = Store(root: directory.path + "/store", owner: .effectiveUser)
    let store =
      way == .fleetSession ? Store(root: directory.path + "/fleet", owner: .effectiveUser) : files
    self.store = store
    try files.prepare()
    if way == .fleetSession { try store.prepare() }
    policyFile = directory.path + "/sallyport.conf"
    let verification = way == .fleetSession ? "fleet" : "local"
    let policy = "self_service = yes\nenrollment = offer\nverification = \(verification)\n"
    try Data("[default]\n\(policy)".utf8).write(to: URL(fileURLWithPath: policyFile))
    account = Account(name: try #require(UserName(Array("alice".utf8))), uid: 3001)
    var ends: [Int32] = [-1, -1]
    // SAFETY: filled within the call.
    try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &ends) == 0)
    connection = SessionConnection(ends[0], seconds: 60)
    let answering = Answering(store, losing: loss)
    var environment = SessionEnvironment(
      store: files, policyFile: Array(policyFile.utf8),
      authority: { answering }, takeTurn: { _ in true }, accepts: { _ in true })
    let (account, shows) = (account, shows)
    environment.askFleet = { request throws(StoreTrouble) in
      guard shows, case .show = request.order.verb, request.name == account.name else {
        return .notServed
      }
      let enrolled = try store.load(account).flatMap { record in
        record.enrollment.withoutSecrets.map { ($0, record.state) }
      }
      return .told(HelpedPerson(enrolled, block: .nobody, hasEnough: (false, false)))
    }
    session = Session(
      Client(process: getpid(), user: 3001, account: account),
      SessionConnection(ends[1], seconds: 60), environment)
  }

  /// How the session ended.
  enum End {
    case done(backupCodes: [Secret])
    case status(Enrollment)
    case refused(ChangeRefusal)
    case nothing
  }

  /// Types that, each when it is asked for; `first` is the code of the secret that was shown.
  func ask(_ change: ChangeRequest, typing answers: [(Secret?) throws -> String]) throws -> End {
    let session = session
    let ended = Ended()
    Thread.detachNewThread { ended.put(session.last()) }
    try #require(connection.send(FromUser.change(change).encoded()))
    var (left, secret) = (answers[...], Secret?.none)
    while true {
      if let last = ended.last { return try end(last) }
      guard let packet = try? connection.receive(within: 20),
        let said = FromSession.decode(packet)
      else { continue }
      switch said {
      case .prompt:
        guard let answer = left.popFirst() else {
          Issue.record("asked once more than the case says")
          return .nothing
        }
        try #require(connection.send(FromUser.answer(try typed(answer, secret)).encoded()))
      case .secret(_, _, let shown): secret = shown
      case .text(let text): told.append(String(decoding: text, as: UTF8.self))
      case .done, .status, .refused, .passed, .lent: return try end(said)
      }
    }
  }

  /// The lines of the file of acts, which is on this machine also where the record is not.
  func acts() throws -> [String] {
    try files.monthsOfActs().flatMap { month in
      try files.acts(of: month)?.lines.map { String(decoding: $0, as: UTF8.self) } ?? []
    }
  }

  private func typed(_ answer: (Secret?) throws -> String, _ secret: Secret?) throws -> Secret {
    try TestSupport.secret(try answer(secret))
  }

  private func end(_ last: FromSession) throws -> End {
    switch last {
    case .done(_, let codes, _): return .done(backupCodes: codes)
    case .status(let enrollment, _): return .status(try Enrollment.read(enrollment))
    case .refused(let refusal, _): return .refused(refusal)
    case .prompt, .text, .secret, .passed, .lent: return .nothing
    }
  }
}

/// What the thread of the session gives.
private final class Ended: @unchecked Sendable {
  private let lock = NSLock()
  private var value: FromSession?

  var last: FromSession? { lock.withLock { value } }
  func put(_ last: FromSession) { lock.withLock { value = last } }
}

extension Session: @unchecked Sendable {}

@Suite struct `The verbs of a session` {
  @Test(arguments: [VerbWay.session, .fleetSession])
  func `do to one person what the table of all ways says`(way: VerbWay) throws {
    for one in try VerbCase.all(on: way) { try run(one, on: way) }
  }

  private func run(_ one: VerbCase, on way: VerbWay) throws {
    let visitor = try Visitor(on: way)
    let account = visitor.account
    let now = try Clock.now()
    if let (enrollment, state) = try one.stored(for: account.name, uid: account.uid, at: now) {
      try visitor.store.create(enrollment, state)
    }
    if one.isBlocked { _ = try visitor.store.block(account, until: nil, at: now) }
    let end = try visitor.ask(
      try change(one),
      typing: one.typed(on: way).map { word in
        { secret in try one.answer(word, at: now, new: secret) }
      })
    #expect(word(end) == one.outcome(on: way), "\(one)")
    let found = try visitor.store.load(account).map { ($0.enrollment, $0.state) }
    let facts = try one.facts(
      on: way, found, for: account.name, uid: account.uid, at: now)
    #expect(facts.found == facts.expected, "\(one)")
    let acts = try visitor.acts()
    if case .done = end {
      let start = "by=alice for=alice"
      #expect(acts.count == 2 && acts.allSatisfy { $0.contains(start) }, "\(one)")
      let ends = ["will", "done"].map { "via=session stage=\($0)" }
      #expect(zip(acts, ends).allSatisfy { $0.hasSuffix($1) }, "\(acts)")
    } else {
      #expect(!acts.contains { $0.hasSuffix("stage=done") }, "\(one)")
    }
    if case .done(let codes) = end, facts.expected["set"] == "new" {
      #expect("\(codes.count)" == facts.expected["codes"], "\(one)")
    }
  }

  // shows: log-flood
  @Test(arguments: [398, 399, 400])
  func `add no more than their own part to the acts of a month`(before: Int) throws {
    let visitor = try Visitor(on: .session)
    let one = try #require(
      VerbCase.all(on: .session).first { $0.description == "another name changes nothing else" })
    let now = try Clock.now()
    let (enrollment, state) = try #require(
      try one.stored(for: visitor.account.name, uid: visitor.account.uid, at: now))
    try visitor.store.create(enrollment, state)
    let month = String(try #require(now.internetText).prefix(7))
    let line = "act=rename by=alice for=alice via=session stage=done"
    let others = [
      "by=root for=alice via=command", "by=alice for=bob via=session", "by=bob for=bob via=session",
    ]
    try visitor.files.append(
      acts: Array(repeating: line, count: before) + others.map { "act=pass \($0) stage=done" },
      month: month)
    let end = try visitor.ask(
      try change(one),
      typing: one.typed(on: .session).map { word in
        { secret in try one.answer(word, at: now, new: secret) }
      })
    #expect(word(end) == "done")
    // Both lines of an act, or neither.
    #expect(try visitor.acts().count == before + others.count + (before < 400 ? 2 : 0))
  }

  @Test func `show nobody of the fleet what is left in the files of the machine`() throws {
    let visitor = try Visitor(on: .fleetSession, shows: false)
    let one = try #require(
      VerbCase.all(on: .session).first {
        $0.verb == ["status"] && $0.outcome(on: .session) == "done"
      }
    )
    let (enrollment, state) = try #require(
      try one.stored(for: visitor.account.name, uid: visitor.account.uid, at: try Clock.now()))
    for store in [visitor.store, visitor.files] { try store.create(enrollment, state) }
    let end = try visitor.ask(.status, typing: [])
    #expect(word(end) == "in-fleet", "\(end)")
  }

  @Test(arguments: [Answering.Loss.right, .rightMeanwhile])
  fileprivate func `say that nothing was changed where the verifiers refuse the host`(
    loss: Answering.Loss
  ) throws {
    let one = try #require(
      VerbCase.all(on: .fleetSession).first {
        $0.description == "another name changes nothing else"
      })
    let visitor = try Visitor(on: .fleetSession, losing: loss)
    let (account, now) = (visitor.account, try Clock.now())
    let (enrollment, state) = try #require(
      try one.stored(for: account.name, uid: account.uid, at: now))
    try visitor.store.create(enrollment, state)
    let answers = one.typed(on: .fleetSession).map { word in
      { (secret: Secret?) in try one.answer(word, at: now, new: secret) }
    }
    // No code is asked for, and used up, where it is known before.
    let end = try visitor.ask(try change(one), typing: loss == .right ? [] : answers)
    guard case .refused(.failed) = end else {
      Issue.record("\(end)")
      return
    }
    let stages = try visitor.acts().map { $0.split(separator: "=").last ?? "" }
    #expect(stages == (loss == .right ? [] : ["will", "failed"]))
  }

  // decisive: the former ones are void by then
  @Test(
    arguments: [VerbWay.session, .fleetSession], [Answering.Loss.firstChange, .whateverFollows])
  fileprivate func `give new backup codes to their owner, whatever is not answered`(
    way: VerbWay, loss: Answering.Loss
  ) throws {
    let one = try #require(
      VerbCase.all(on: way).first { one in
        one.verb == ["renew"] && one.outcome(on: way) == "done"
      })
    let visitor = try Visitor(on: way, losing: loss)
    let (account, now) = (visitor.account, try Clock.now())
    let (enrollment, state) = try #require(
      try one.stored(for: account.name, uid: account.uid, at: now))
    try visitor.store.create(enrollment, state)
    let end = try visitor.ask(
      .renew,
      typing: one.typed(on: way).map { word in
        { secret in try one.answer(word, at: now, new: secret) }
      })
    guard case .done(let codes) = end else {
      Issue.record("\(end)")
      return
    }
    let stored = try #require(try visitor.store.load(account)?.enrollment.backupCodes)
    #expect(stored.id != enrollment.backupCodes?.id)
    let isCounted = loss == .firstChange
    #expect(codes.count == (isCounted ? stored.count : BackupCodeSet.maximumCodes))
    let isTold = visitor.told.last?.contains("only the first ones work") == true
    #expect(isTold == !isCounted, "\(visitor.told)")
    let digests = try codes.prefix(stored.count).map { code in
      try BackupCode.digest(code, salt: stored.salt)
    }
    #expect(digests == stored.digests)
  }

  private func change(_ one: VerbCase) throws -> ChangeRequest {
    let names = try one.verb.dropFirst().map { try #require(Label(Array($0.utf8))) }
    switch one.verb[0] {
    case "enroll":
      return .enroll(name: names[0], .standard, backupCodes: UInt8(BackupCodeSet.usualCodes))
    case "add": return .add(name: names[0], .standard)
    case "remove": return .remove(names[0])
    case "rename": return .rename(names[0], to: names[1])
    case "renew": return .renew
    case "status": return .status
    case _:
      Issue.record("no verb of a session: \(one.verb[0])")
      return .status
    }
  }

  private func word(_ end: Visitor.End) -> String {
    switch end {
    case .done, .status: "done"
    case .nothing: "nothing"
    case .refused(let refusal):
      switch refusal {
      case .notEnrolled: "not-enrolled"
      case .enrolled: "enrolled"
      case .noSuchAuthenticator: "no-such"
      case .nameTaken: "name-taken"
      case .tooMany: "too-many"
      case .last: "last"
      case .code: "code"
      case .throttled: "throttled"
      case .inFleet: "in-fleet"
      case .off, .disabled, .level, .password, .firstCode, .busy, .root, .noAccount, .changed,
        .failed, .unknown, .notHelper, .notForHelpers, .notHelped, .unclear, .helpInFleet,
        .helpedNotEnrolled, .helpedEnough, .helpedToday, .notLocked, .nothingToLend, .blockedByRoot,
        .blockedByHelper, .notBlocked:
        "\(refusal)"
      }
    }
  }
}
