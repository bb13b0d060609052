import OneTimePassword
import PAMStack
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

/// What is shown of a changed stack beside who gets in, and why it may not be written.
struct ForecastReport {
  private let analysis: StackAnalysis
  private let enrolled: [String]
  private let policy: Policy
  /// What is wrong with the policy file.
  private let policyProblem: String?
  /// What to type where the fleet is to verify codes, and this machine is in none; else nil.
  private let joining: String?
  private let dependents: [String]
  /// The sudo service that the change affects, and the sudoers option that makes sudo ask for the
  /// target user's code.
  private let otherAccount: (sudo: String, word: String)?

  private let side: SSHSide?
  /// sshd's time for a login, if people enroll there and it is short.
  private let shortGrace: Finding?

  init(
    of change: StackChange, _ side: SSHSide?, sudoers: Sudoers, nullok: Bool,
    _ options: StoreOptions, _ context: Context
  ) throws(CommandError) {
    analysis = change.analysis
    self.side = side
    let enrolls = analysis.lines.contains { $0.phase == .auth && $0.arguments.contains("enroll") }
    shortGrace = side != nil && enrolls ? context.machine.shortGrace : nil
    dependents = change.dependents.filter { !KnownServices.withoutAuth.contains($0) }
    let store = try context.store(options)
    enrolled = try ForecastReport.enrolled(in: store)
    (policy, policyProblem) = ForecastReport.policy(change.service, nullok: nullok, store, context)
    let isJoined = !policy.isFleet || context.fleet?.isHost == true
    let join = context.fleet == nil ? "sallyport config edit" : "sallyport fleet join"
    joining = isJoined ? nil : join
    otherAccount = ForecastReport.otherAccount([change.service] + dependents, sudoers)
  }

  private static func otherAccount(_ services: [String], _ sudoers: Sudoers) -> (String, String)? {
    guard let sudo = services.first(where: sudoers.runs) else { return nil }
    return sudoers.otherAccountForAll.map { (sudo, $0) }
  }

  static func enrolled(in store: Store) throws(CommandError) -> [String] {
    do throws(StoreTrouble) {
      return try store.enrolledNames().compactMap { name in
        name.user.map { String(decoding: $0.bytes, as: UTF8.self) }
      }
    } catch {
      if case .noStore = error { return [] }
      throw .store(error)
    }
  }

  private var level: EnrollmentLevel { policy.enrollment }

  /// The policy that applies to users who are not enrolled: tightened if it cannot be read.
  private static func policy(
    _ service: String, nullok: Bool, _ store: Store, _ context: Context
  ) -> (Policy, problem: String?) {
    var base = Policy()
    if nullok { base.enrollment = .voluntary }
    let everybody = PolicyRequest(
      service: Array(service.utf8), user: nil,
      isRemote: !base.isLocal(service: Array(service.utf8)),
      address: nil, parse: Addresses.numeric, membership: { _ in .unknown })
    let shown = context.policyFile ?? "\(Store.usualPolicy)"
    let path = context.policyFile ?? context.stacks.root + shown
    do throws(StoreTrouble) {
      guard let text = try store.policyText(at: Array(path.utf8), optional: true) else {
        return (base, nil)
      }
      let file = PolicyFile(text, base: base, everybody)
      let policy = file.policy(base)
      let off = FactorKind.allCases.filter { policy.use(of: $0) == .off }
      let problem = file.problem.map { problem in
        "\(shown):\(problem.line): \(problem.problem.text): the strict policy applies"
          + PolicyText.refused(off)
      }
      return (policy, problem)
    } catch {
      base.tighten()
      return (base, Message(error, at: Invocation(verb: "pam")).text)
    }
  }

  /// The service, and those that change with it.
  var services: [String] { [analysis.stack.service] + dependents }

  /// Why nobody could log in, or only those who are asked for no code while others no longer get
  /// in; else nil. `isWhole`: everybody is in the table.
  func obstacle(_ loss: AccessLoss, isWhole: Bool) -> CommandError? {
    let service = analysis.stack.service
    let words = analysis.lines.filter { $0.phase == .auth }.flatMap(\.arguments)
    if words.contains("after-key"), !policy.isSSHD(service: Array(service.utf8)) {
      return CommandError(
        .configuration,
        "sshd_services of the policy does not name \(service): users with a key would be refused",
        hints: ["sallyport config check --service \(service)"])
    }
    if let joining {
      return CommandError(
        .configuration,
        "the policy has verification = fleet for \(service), and this machine is in no fleet: "
          + "everybody would be refused whose codes the fleet is to verify", hints: [joining])
    }
    // Otherwise users who are not enrolled are let in, or can enroll here.
    let refuses = level == .refuse || level == .required && !words.contains("enroll")
    if refuses, let otherAccount, !enrolled.contains("root") {
      return CommandError(
        .configuration,
        "root is not enrolled, and \(otherAccount.sudo) would ask for root's code "
          + "(\(otherAccount.word) in sudoers)", hints: ["sallyport enroll root"])
    }
    guard !loss.leavesAsked, isWhole || refuses else { return nil }
    if !loss.lockedOut.isEmpty { return locksOutEverybody(service, loss) }
    // Nobody got in before, or it is a file that others include.
    let isIdle = !loss.withoutRule.isEmpty || refuses && enrolled.isEmpty
    return loss.isTotal && isIdle ? locksOutEverybody(service, loss) : nil
  }

  private func locksOutEverybody(_ service: String, _ loss: AccessLoss) -> CommandError {
    let (people, idle) = (loss.lockedOutNames.map { shown($0) }, loss.withoutRule.map { shown($0) })
    let isIdle = people.isEmpty && !idle.isEmpty
    let are = idle.count == 1 ? "is" : "are"
    let nobody =
      isIdle
      ? "sudoers has no rule for \(listed(idle)), who \(are) enrolled" : "nobody is enrolled"
    let who = people.isEmpty ? nobody : listed(people)
    return CommandError {
      Message(
        "nobody could log in to \(service)\(loss.isTotal ? "" : " with a code") after this: \(who)",
        .configuration,
        hints: [
          isIdle ? "visudo" : "sallyport enroll NAME",
          $0.typed.isEmpty ? "sallyport pam enable \(service) --force" : $0.again("--force"),
        ])
    }
  }

  private func shown(_ name: String) -> String { printable(name.utf8, limit: 64) }

  /// In lines of at most `width` columns, but for long names.
  func text(width: Int, proposes: Bool) -> String {
    let included =
      dependents.isEmpty
      ? [] : wrapped(["The same in: \(dependents[0])"] + dependents.dropFirst(), width: width)
    let warnings = [policyProblem].compactMap { $0 } + analysis.findings.map(\.text) + oldLines
    let lines =
      rootsCode + included + (side?.text(width: width, proposes: proposes) ?? []) + timeToEnroll
    return (lines + warnings.map { "warning: \($0)" }).joined(separator: "\n")
  }

  /// A line for each user would hide the question.
  private static let mostNames = 20

  static func list(_ heading: String, _ names: [String], width: Int) -> [String] {
    guard let first = names.first else { return [] }
    let more = names.count - mostNames
    var shown = ["\(heading): \(first)"] + names.dropFirst().prefix(mostNames - 1)
    if more > 0 { shown.append("and \(more) more") }
    return wrapped(shown.map { printable($0.utf8, limit: 400) }, width: width)
  }

  /// What sudoers sets, which no stack shows.
  private var rootsCode: [String] {
    guard let otherAccount, !dependents.contains(otherAccount.sudo) else { return [] }
    return ["sudo asks for root's code, as sudoers says \(otherAccount.word)."]
  }

  /// What sshd leaves, and the line that gives more.
  private var timeToEnroll: [String] {
    guard let shortGrace else { return [] }
    let file = shortGrace.location.map { " to \($0.text)" } ?? ""
    return ["\(shortGrace.text)."]
      + shortGrace.fixes.map { "    \($0.kind)\(file): \($0.text)" }
  }

  /// Warnings about lines of other modules that keep asking for their own code after an import.
  private var oldLines: [String] {
    analysis.stack[.auth].filter {
      ["pam_google_authenticator", "pam_oath"].contains($0.moduleName)
    }.map { line in
      "\(line.location.text): asks for a code of its own; "
        + "remove the line once its users are imported"
    }
  }
}

extension AccessLoss {
  /// Each with the reason.
  var lockedOutNames: [String] { lockedOut.map { "\($0.user) (\($0.verdict.words))" } }
}
