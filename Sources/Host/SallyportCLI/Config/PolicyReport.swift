import OneTimePassword
import PAMStack
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

#if canImport(Glibc)
  import Glibc
#endif

/// What a policy file sets for one login.
struct PolicyReport {
  private let file: PolicyFile
  private let policy: Policy
  private let path: String
  private let account: Account?
  private let hasOrigin: Bool
  /// The level of the user, if one is named.
  private let userLevel: UserLevel?
  private let local: (services: String, line: Int)
  private let sshd: (services: String, line: Int)
  private let withoutCode: (words: String, line: Int)
  private let helpdesk: [(key: String, words: String, line: Int)]
  /// Why `remember` has no effect in the service; nil if it has, or is off.
  private let idleRemember: IdleRemember?
  private let isSSHD: Bool

  init(
    _ text: PolicyText, for login: LoginOptions, _ store: StoreOptions, _ context: Context
  ) throws(CommandError) {
    let account: Account? = if let user = login.user { try context.account(user) } else { nil }
    let host = login.origin == "local" ? nil : login.origin
    let request = PolicyRequest(
      service: Array(login.service.utf8), user: account?.name.bytes,
      isSuperuser: account?.uid == 0, isRemote: host != nil,
      address: host.flatMap { Addresses.withoutZone(Array($0.utf8)) }, parse: Addresses.numeric,
      membership: { group in account.map { Accounts.isMember($0, of: group) } ?? .unknown })
    file = PolicyFile(text.content, base: Policy(), request)
    policy = file.policy(Policy())
    (path, self.account) = (printable(text.path.utf8, limit: 255), account)
    hasOrigin = file.isLocal || login.origin != nil
    (local, sshd) = (text.localServices(), text.sshdServices())
    withoutCode = text.withoutCode()
    helpdesk = text.helpdeskLines()
    isSSHD = login.service == "sshd"
    idleRemember =
      policy.remember > 0 ? context.stacks.analysis(of: login.service).idleRemember : nil
    userLevel =
      if let account { try UserLevel(account, under: policy, store, context) } else { nil }
  }

  private var keys: [PolicyKey] { PolicyKey.allCases.filter(\.isScalar) }

  /// In lines of at most `width` columns, but for the table.
  func text(width: Int) -> String {
    let rows = keys.map { key in
      let line = file.line(of: key)
      return ["\(key.name)", value(key), source(line)]
    }
    var doubt: [String] = []
    if let account, account.uid == nil {
      doubt.append("there is no account \(account.name.text): what would apply if there were,")
      doubt.append("in no group but those that list this name")
    } else if account == nil {
      doubt.append("no --user: rules on users and groups apply where they are stricter")
    }
    if !hasOrigin { doubt.append("no --origin: rules on addresses apply where they are stricter") }
    let services = wrapped(
      local.services.split(separator: ",").map { trimmed(String($0)) }, width: width - 4)
    let more =
      [
        "sshd_services  \(sshd.services)  \(source(sshd.line))",
        "without_code  \(withoutCode.words)  \(source(withoutCode.line))",
        "language before a code  \(promptLanguage)  \(source(file.lineOfPromptLanguage))",
      ]
      + helpdesk.map { "\($0.key)  \($0.words)  \(source($0.line))" }
      + ["local_services, \(source(local.line)):"] + services.map { "  \($0)" }
    return
      (doubt + table(rows) + more
      + [userLevel?.text, idle, pace, deadEnd].compactMap { $0 }.flatMap { folded($0, width) })
      .joined(separator: "\n")
  }

  private var idle: String? {
    idleRemember.map { idle in
      let keys = isSSHD && !idle.isOneField ? "; after a key it has" : ""
      return "\(idle.text) (\(idle.location.text))\(keys)"
    }
  }

  private func source(_ line: Int) -> String { line > 0 ? "\(path):\(line)" : "built in" }

  /// The values by their keys, and `More`.
  var facts: some Encodable {
    var values: [String: Value] = [:]
    for key in keys { values["\(key.name)"] = fact(value(key), file.line(of: key)) }
    for line in helpdesk { values[line.key] = fact(line.words, line.line) }
    return Joined(
      values,
      More(
        localServices: fact(local.services, local.line),
        sshdServices: fact(sshd.services, sshd.line),
        withoutCode: fact(withoutCode.words, withoutCode.line),
        promptLanguage: fact(promptLanguage, file.lineOfPromptLanguage), local: file.isLocal,
        rememberIdle: idleRemember.map {
          Idle(why: $0.text, file: $0.location.file, line: $0.location.line)
        }, account: account.map { $0.uid != nil }, level: userLevel?.facts))
  }

  private struct Value: Encodable {
    let value: String
    /// null for a built-in value.
    @OrNull var file: String?
    @OrNull var line: Int?
  }

  private struct Idle: Encodable {
    let why, file: String
    let line: Int?
  }

  private struct More: Encodable {
    let localServices, sshdServices, withoutCode, promptLanguage: Value
    let local: Bool
    @OrNull var rememberIdle: Idle?
    /// Whether there is an account with the name of `--user`.
    let account: Bool?
    let level: UserLevel.Facts?

    /// The spelling in the policy file.
    enum CodingKeys: String, CodingKey {
      case localServices = "local_services"
      case sshdServices = "sshd_services"
      case withoutCode = "without_code"
      case promptLanguage = "language_before_code"
      case local
      case rememberIdle = "remember_idle"
      case account, level
    }
  }

  private func fact(_ value: String, _ line: Int) -> Value {
    Value(value: value, file: line > 0 ? path : nil, line: line > 0 ? line : nil)
  }

  private func value(_ key: PolicyKey) -> String {
    let number = policy[key]
    if let word = key.word(number) { return "\(word)" }
    switch key {
    case .guessBudget:
      let hundredths = number / (GuessProbability.percent.units / 100)
      let (whole, rest) = hundredths.quotientAndRemainder(dividingBy: 100)
      return rest == 0 ? "\(whole) %" : "\(whole).\(rest < 10 ? "0" : "")\(rest) %"
    case .requiredFrom:
      guard number > 0 else { return "-" }
      return CalendarDate(policy.requiredFrom, inUTC: true)?.isoDay ?? "\(number)"
    case .remember, .reserveFor: return number == 0 ? "0" : exactDuration(number)
    case .language: return language(number)
    case .factorOrder:
      let order = policy.factorOrder
      return "\(order.first.name), \(order.second.name), \(order.third.name)"
    case .state, .enrollment, .factorTOTP, .factorHOTP, .factorBackupCode, .hints,
      .tell, .selfService, .verification, .away, .factorPass, .adjacentIntervals, .lookAhead,
      .tries, .remindEvery,
      .minimumFactors, .localServices, .sshdServices, .matchService, .matchUser, .matchGroup,
      .matchOrigin:
      return "\(number)"
    }
  }

  private var promptLanguage: String { language(policy.promptLanguage) }

  private func language(_ number: UInt64) -> String {
    number == 0 ? "en" : String(decoding: Policy.name(ofLanguage: number), as: UTF8.self)
  }

  /// A warning if nobody can log in, or enroll at login, with these factors.
  private var deadEnd: String? {
    guard policy.totp == .off, policy.hotp == .off else { return nil }
    return policy.backupCode == .off
      ? "all factors are off: nobody who is enrolled gets in"
      : "factor_totp and factor_hotp are off: nobody can enroll at login"
  }

  /// The pace of guesses for one TOTP authenticator with six digits, as most users have.
  private var pace: String {
    let one = Authenticator(
      id: 1, name: Label("one"), parameters: .standard, secret: inMemory(Secret(count: 20)),
      initialLastAccepted: nil, created: UnixTime(0))
    let throttle = Throttle(for: [one], under: policy)
    let cost = throttle.cost(of: .six).units
    guard cost > 0 else { return "no time-based codes are accepted" }
    let hundredths = throttle.refillPerYear.units * 10_000 / cost / 36_525
    let day = "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100)"
    let narrowed =
      throttle.adjacentIntervals < policy.adjacentIntervals
      ? "; the budget narrows adjacent_intervals to \(throttle.adjacentIntervals)" : ""
    return "with one TOTP of six digits \(throttle.capacity.units / cost) wrong codes at once, "
      + "then \(day) a day, from known places, and as many from others\(narrowed)"
  }
}

/// The level that currently applies to one user.
private struct UserLevel {
  private let user: String
  private let level: EnrollmentLevel
  private let own: UserNote.Level?
  /// nil if the caller may not read the store.
  private let isEnrolled: Bool?

  /// Uses the user's own level if the caller may read the store.
  init(
    _ account: Account, under policy: Policy, _ options: StoreOptions, _ context: Context
  ) throws(CommandError) {
    user = account.name.text
    own = try UserLevel.own(account, options, context)
    isEnrolled = try? context.store(options).load(account) != nil
    level = policy.level(of: own, at: try context.time())
  }

  private static func own(_ account: Account, _ options: StoreOptions, _ context: Context)
    throws(CommandError) -> UserNote.Level?
  {
    do throws(CommandError) {
      return try context.level(of: account, in: try context.store(options))
    } catch {
      switch error.cause {
      case .notRoot, .store(.noStore), .store(.system(_, _, errno: EACCES)): return nil
      case _: throw error
      }
    }
  }

  var text: String {
    let kept = own.map { " (\(levelText($0)) by name)" } ?? ""
    let asked = isEnrolled == true ? "; \(user) is enrolled, and is asked for a code" : ""
    return "without an enrollment the level of \(user) is \(level.name) now\(kept)\(asked)"
  }

  struct Facts: Encodable {
    let value: String
    @OrNull var own: LevelFacts?
    /// null if the store cannot be read.
    @OrNull var enrolled: Bool?
  }

  var facts: Facts {
    Facts(value: "\(level.name)", own: LevelFacts(own), enrolled: isEnrolled)
  }
}
