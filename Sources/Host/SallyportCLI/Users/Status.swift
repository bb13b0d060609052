import ArgumentParser
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem
import SessionProtocol

/// `sallyport status`
struct Status: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Show a user's authenticators, backup codes and wrong codes.")

  @OptionGroup var shared: SubjectOptions<Caller>

  @OptionGroup var policy: PolicyOptions

  func run(in context: Context) throws(CommandError) { _ = try status(in: context) }

  /// Of somebody who is not enrolled the answer says so, and the next command stands on standard
  /// error.
  func status(in context: Context) throws(CommandError) -> Int32 {
    if try shared.own(in: context, roots: ["--conf": policy.conf != nil]) != nil {
      let session = OwnSession(context, shared.storeOptions)
      let (enrollment, state) = try session.status()
      return try status(of: enrollment, state, session.output, context)
    }
    if case .status(let enrollment, let state)? = try shared.helped(
      .status, in: context, roots: ["--conf": policy.conf != nil])
    {
      return try status(
        of: enrollment, state, context.output(shared.storeOptions), context)
    }
    let subject = try shared.open(in: context, for: .none)
    let person = try subject.person(policy)
    let record = try person.record()
    let now = try context.time()
    let blocked = try storing { () throws(StoreTrouble) in
      let here = try subject.store.blocks(of: person.account)
      return ((record.blocked.map { [$0] } ?? []) + here).first { !$0.isOver(at: now) }
    }
    do throws(CommandError) {
      let found = try record.enrolled.get()
      let report = StatusReport(
        found.enrollment, found.state, record.note, blocked: .some(blocked),
        under: person.policy, at: now, isInFleet: person.isInFleet)
      return tell(report, try ways(of: person.account, subject.output, context), subject.output)
    } catch {
      let told =
        person.isInFleet ? error : error.hinting(at: person.account, in: subject.store)
      guard case .notEnrolled = error.cause else { throw told }
      let report = AbsenceReport(
        account: person.account, record: record, blocked: blocked, now: now,
        isInFleet: person.isInFleet)
      let ways = try ways(of: person.account, subject.output, context)
      subject.output.answer(report.facts, report.text + ways)
      return tell(hintsOf: told, in: context)
    }
  }

  /// What becomes of the account's logins, as text for people: of the usual store alone, since the
  /// services do not use another one.
  private func ways(of account: Account, _ output: Output, _ context: Context)
    throws(CommandError) -> String
  {
    let options = shared.storeOptions
    guard options.store == nil, !output.isJSON else { return "" }
    let facts = try context.accessFacts(options, user: account.name)
    let table = AccessTable(facts).narrowed(to: nil, account.name.text)
    let text = AccessText(table: table, width: output.width, store: Store())
    let rows = table.rows.flatMap { text.lines(of: $0).dropFirst() }
    return rows.isEmpty ? "" : (["", "", "Ways in:"] + rows).joined(separator: "\n")
  }

  private func tell(_ report: StatusReport, _ ways: String, _ output: Output) -> Int32 {
    output.answer(report.facts, report.text(width: output.width) + ways)
    return Sysexit.done.rawValue
  }

  private func tell(hintsOf error: CommandError, in context: Context) -> Int32 {
    let message = error.message(invocation(in: context))
    for hint in message.hints {
      context.terminal.write(Array("hint: \(hint)\n".utf8), to: .aside)
    }
    return message.status.rawValue
  }

  /// For a user who is not root: what his session tells, under the policy of this machine.
  private func status(
    of enrollment: Enrollment, _ state: LoginState, _ output: Output, _ context: Context
  ) throws(CommandError) -> Int32 {
    let account = Account(name: enrollment.user, uid: enrollment.uid)
    let policy = context.policy(at: policy.conf, for: account, in: Store())
    let report = StatusReport(
      enrollment, state, nil, blocked: nil, under: policy, at: try context.time())
    let unseen = "\n\nWays in: only root can tell"
    return tell(report, unseen, output)
  }
}

/// The status of an enrolled user.
struct StatusReport {
  private let enrollment: Enrollment
  private let state: LoginState
  private let backupCodes: (left: Int, all: Int)
  /// nil if it is not known.
  private let note: UserNote?
  /// nil if it is not known.
  private let blocked: Store.Blocked??
  private let wrongCodes: Allowances
  private let now: UnixTime
  private let isInFleet: Bool

  init(
    _ enrollment: Enrollment, _ state: LoginState, _ note: UserNote?, blocked: Store.Blocked??,
    under policy: Policy, at now: UnixTime, isInFleet: Bool = false
  ) {
    (self.note, self.blocked, self.isInFleet) = (note, blocked, isInFleet)
    (self.enrollment, self.now) = (enrollment, now)
    var state = state
    state.reconcile(with: enrollment)
    self.state = state
    backupCodes = backupCodeCount(enrollment, state)
    wrongCodes = Allowances(enrollment, state, under: policy, at: now)
  }

  // MARK: text

  /// In lines of at most `width` columns, but for long names.
  func text(width: Int) -> String {
    var rows = authenticatorRows(width: width - 40)
    rows.append(["backup codes", backupCodeText])
    rows += backupCodeUseRows
    rows.append(["wrong codes", wrongCodes.text])
    rows += passRows
    rows += passUseRows
    rows += suspendedRows
    rows += rememberedRows
    if let blocked = blocked ?? nil { rows.append(["blocked", blockText(blocked, seenFrom: now)]) }
    if let level = note?.level { rows.append(["level", StatusReport.text(level)]) }
    return ([heading, ""] + table(rows).map { "  \($0)" }).joined(separator: "\n")
  }

  private static func text(_ level: UserNote.Level) -> String {
    levelText(level)
      + (UserNote.Level?.some(level).isExempt
        ? ": enrolled, so asked for a code all the same" : "")
  }

  private var heading: String {
    let day = CalendarDate(enrollment.created).map { ", enrolled \($0.dayText)" } ?? ""
    return "\(enrollment.user.text)\(day)\(isInFleet ? " in the fleet" : "")"
  }

  /// `width`: of their last column.
  private func authenticatorRows(width: Int) -> [[String]] {
    zip(enrollment.authenticators, state.authenticators).flatMap { authenticator, values in
      let lines = wrapped(details(of: values, authenticator.parameters.type), width: width)
      return lines.enumerated().map { index, line in
        index > 0
          ? ["", "", line]
          : [authenticator.name.text, description(of: authenticator.parameters), line]
      }
    }
  }

  private func details(of values: AuthenticatorState, _ type: AuthenticatorType) -> [String] {
    let use = values.lastUse
    let parts = [
      use.map { "used \(whenText($0.time, seenFrom: now))" } ?? "never used", use?.service?.text,
      use.flatMap { originText($0.origin) },
      (values.clock.map { "a token's, \($0.text ?? "right")" } ?? driftText(values.drift, type))
        .map { "clock \($0)" },
      type == .hotp && HeldCounter.isHeld(values.lastAccepted) ? "waits for resync" : nil,
    ]
    return parts.compactMap { $0 }
  }

  private var backupCodeText: String {
    if backupCodes.all == 0 { return "none" }
    let weak =
      scratchCodesLeft > 0 ? ", \(counted(scratchCodesLeft, "weak scratch code")) among them" : ""
    return "\(backupCodes.left) of \(backupCodes.all) left\(weak)"
  }

  private var backupCodeUseRows: [[String]] {
    guard let use = state.backupCodes?.lastUse else { return [] }
    let place = [use.service?.text, originText(use.origin)].compactMap { $0 }
    return [
      ["", (["one used \(whenText(use.time, seenFrom: now))"] + place).joined(separator: ", ")]
    ]
  }

  /// As the notices of its owner have it.
  private var passUseRows: [[String]] {
    let (used, from) = (state.notices.passUsed, state.notices.passOrigin)
    guard used.seconds > 0 else { return [] }
    let place = from.high | from.low == 0 ? "" : ", \(Addresses.text(from))"
    return [["pass used", "\(whenText(used, seenFrom: now))\(place)"]]
  }

  private var scratchCodesLeft: Int {
    enrollment.backupCodes?.scratchCodesLeft(state.backupCodes) ?? 0
  }

  private var passRows: [[String]] {
    openPasses.enumerated().map { index, pass in
      let left =
        pass.pass.enrolls
        ? "one that enrolls again (\(pass.left) of \(Pass.claims) tries left)"
        : pass.left == 1 ? "one login" : "\(pass.left) logins"
      let end = whenText(pass.pass.expires, seenFrom: now)
      return [index == 0 ? "passes" : "", "\(left), until \(end)"]
    }
  }

  private var openPasses: [(pass: Pass, left: Int)] {
    zip(enrollment.passes, state.passes).map { ($0, $0.usesLeft($1, at: now)) }
      .filter { $0.1 > 0 }
  }

  private var suspendedRows: [[String]] {
    let kept = enrollment.suspended.filter { now < $0.until }
    return kept.enumerated().flatMap { index, one in
      [
        [
          index == 0 ? "by a pass" : "",
          "enrolled \(whenText(one.since, seenFrom: now)); what was before, restore brings back",
        ],
        ["", "until \(whenText(one.until, seenFrom: now)) (\(one.name))"],
      ]
    }
  }

  private var rememberedRows: [[String]] {
    state.remembered.enumerated().map { index, pair in
      let when = whenText(pair.granted, seenFrom: now)
      let pair = "\(Addresses.text(pair.origin)) for \(pair.service.text)"
      return [index == 0 ? "remembered" : "", "\(pair), since \(when)"]
    }
  }

  // MARK: JSON

  var facts: some Encodable {
    Facts(
      user: enrollment.user.text, uid: enrollment.uid, inFleet: isInFleet,
      enrolled: fact(enrollment.created),
      authenticators: zip(enrollment.authenticators, state.authenticators).map(
        StatusReport.facts),
      backupCodes: Facts.BackupCodes(
        left: backupCodes.left, total: backupCodes.all, scratchLeft: scratchCodesLeft,
        lastUse: UseFacts(state.backupCodes?.lastUse)),
      passes: openPasses.map {
        Facts.PassFacts(
          expires: fact($0.pass.expires), usesLeft: $0.left,
          enrolls: $0.pass.enrolls ? true : nil)
      },
      suspended: enrollment.suspended.filter { now < $0.until }.map(SuspensionFacts.init),
      wrongCodes: wrongCodes, remembered: state.remembered.map(RememberedFacts.init),
      level: note.map { OrNull(wrappedValue: LevelFacts($0.level)) },
      blocked: blocked.map { OrNull(wrappedValue: BlockFacts($0)) },
      lastLogin: UseFacts(state.lastUse))
  }

  private static func facts(_ authenticator: Authenticator, _ values: AuthenticatorState)
    -> Joined<AuthenticatorFacts, Facts.Use>
  {
    Joined(
      AuthenticatorFacts(
        authenticator.parameters, name: authenticator.name, after: values.lastAccepted),
      Facts.Use(
        created: fact(authenticator.created), drift: values.drift,
        device: values.clock == nil ? nil : DeviceOption.token.rawValue,
        clockOffset: values.clock?.offset,
        lastUse: UseFacts(values.lastUse)))
  }

  private struct Facts: Encodable {
    struct BackupCodes: Encodable {
      let left, total, scratchLeft: Int
      @OrNull var lastUse: UseFacts?
    }
    struct Use: Encodable {
      @OrNull var created: String?
      let drift: Int32
      /// Of a token alone, as is the offset of its clock in seconds.
      let device: String?
      let clockOffset: Int32?
      @OrNull var lastUse: UseFacts?
    }
    struct PassFacts: Encodable {
      @OrNull var expires: String?
      let usesLeft: Int
      let enrolls: Bool?
    }
    let user: String
    @OrNull var uid: UInt32?
    let inFleet: Bool
    @OrNull var enrolled: String?
    let authenticators: [Joined<AuthenticatorFacts, Use>]
    let backupCodes: BackupCodes
    let passes: [PassFacts]
    let suspended: [SuspensionFacts]
    let wrongCodes: Allowances
    let remembered: [RememberedFacts]
    let level: OrNull<LevelFacts>?
    let blocked: OrNull<BlockFacts>?
    @OrNull var lastLogin: UseFacts?
  }
}

/// The status of a user who is not enrolled.
struct AbsenceReport {
  let account: Account
  let record: PersonRecord
  let blocked: Store.Blocked?
  let now: UnixTime
  let isInFleet: Bool

  var text: String {
    var rows: [[String]] = []
    if let blocked { rows.append(["blocked", blockText(blocked, seenFrom: now)]) }
    if let level = record.note.level {
      let isOver = record.note.level.isExempt && !record.note.level.isExempt(at: now)
      rows.append(
        ["level", levelText(level) + (isOver ? ", which is past: as the policy says" : "")])
    }
    if let idleText { rows.append(["level", idleText]) }
    if record.logins > 0 {
      rows.append(["logins", "\(record.logins) without an enrollment"])
    }
    if let begun = record.begun {
      rows.append(["enrolling", "begun \(whenText(begun, seenFrom: now)) and not ended"])
    }
    let heading = "\(account.name.text), not enrolled\(isInFleet ? " in the fleet" : "")"
    return rows.isEmpty
      ? heading : ([heading, ""] + table(rows).map { "  \($0)" }).joined(separator: "\n")
  }

  /// Of a note that lets nobody in: the account is gone, or has another uid.
  private var idleText: String? {
    guard record.kept.level.isExempt, !record.note.level.isExempt else { return nil }
    let uid = record.kept.uid.flatMap { $0 == UserNote.noUID ? nil : " of uid \($0)" } ?? ""
    return account.uid == nil
      ? "exempt, for an account\(uid) that is not found"
      : "exempt has no effect: it was set for an earlier account\(uid)"
  }

  /// Those members of `StatusReport`'s object that have a value, and `enrolled`, which is null.
  var facts: some Encodable {
    Facts(
      user: account.name.text, uid: account.uid, inFleet: isInFleet,
      level: LevelFacts(record.note.level), blocked: BlockFacts(blocked),
      logins: record.logins,
      enrollingBegun: record.begun.flatMap(fact))
  }

  private struct Facts: Encodable {
    let user: String
    @OrNull var uid: UInt32?
    let inFleet: Bool
    @OrNull var enrolled: String?
    @OrNull var level: LevelFacts?
    @OrNull var blocked: BlockFacts?
    let logins: UInt32
    @OrNull var enrollingBegun: String?
  }
}
