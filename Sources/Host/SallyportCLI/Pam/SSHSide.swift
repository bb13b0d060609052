import ArgumentParser
import Glibc
import PAMStack
import SallyportCore
import SallyportDoctor
import SallyportSupport

extension SSHMethod: ExpressibleByArgument {
  /// As --help explains each.
  package var defaultValueDescription: String {
    switch self {
    case .passwordCode: "The password and a code."
    case .keyCode: "A key and a code."
    case .keyPasswordCode: "A key, the password and a code."
    case .match: "Each account what it has, a robot its key alone."
    case .either: "A code, and a key or the password, as each person likes."
    case .none: "sshd's settings stay as they are."
    }
  }
}

/// The sshd side of `pam enable`: our file in sshd's configuration, and the check that the running
/// sshd has read it.
///
/// Wherever the command is interrupted, nobody gets in by a code alone and nobody is locked out:
/// first sshd asks for the password by prompts, then the PAM lines ask for the code as well.
struct SSHSide {
  private let plan: SSHPlan
  private let division: SSHDivision
  private let isAsked: Bool
  private let running: RunningSSHD
  private let file: SSHFile
  /// Why it could not be written now; only in a dry run.
  private var obstacle: SSHTrouble?

  /// Returns nil if sshd is not installed and no method was given.
  init?(
    _ method: SSHMethod?, keyGroup: String?, _ facts: AccessFacts, enrolled: [String],
    isDryRun: Bool, _ context: Context
  ) throws(SSHTrouble) {
    let hasAfterKey = context.stacks.stack(of: "sshd")[.auth].contains(where: \.isAfterKey)
    let old = method == SSHMethod.none ? nil : try context.machine.sshStage()
    let group = method == nil ? old?.people.keyGroup : keyGroup
    division = SSHDivision(facts, keyGroup: group)
    guard
      let plan = try SSHPlan(
        method, division.people, of: context.machine, enrolled: enrolled,
        hasAfterKey: hasAfterKey)
    else { return nil }
    (self.plan, isAsked) = (plan, method != nil)
    running = RunningSSHD(context.machine, as: plan.witness ?? context.caller ?? "root")
    file = SSHFile(root: context.stacks.root)
    do throws(SSHTrouble) {
      if plan.method != .none, !isAsWanted { try running.needListener() }
    } catch {
      guard isDryRun else { throw error }
      obstacle = error
    }
  }

  var method: SSHMethod { plan.method }
  private var last: SSHStage { plan.last }
  /// Whether our file is written: not if sshd is already set that way by another file.
  private var writes: Bool { plan.method != .none && !plan.isSetByOthers }

  /// The settings are in effect for an sshd that reads them now.
  private var isAsWanted: Bool { plan.isSetByOthers || plan.current == last }

  /// Also if none runs, which has nothing to read then.
  func changesNothing() throws(SSHTrouble) -> Bool {
    guard plan.method != .none else { return true }
    guard isAsWanted else { return false }
    if try running.isCurrent() { return true }
    return try !running.listens()
  }

  /// Writes our file, and calls `write` at its place among the steps; `write` adds the PAM lines if
  /// `changesPAM`. `undo` removes them again and returns whether that succeeded.
  func turnOn<Value>(
    changesPAM: Bool, _ write: () throws(CommandError) -> Value, undo: () -> Bool
  ) throws(CommandError) -> Value {
    guard plan.method != .none else { return try write() }
    let old = try asSSH { () throws(SSHTrouble) in
      (text: try file.text(), offers: try running.offers())
    }
    guard old.text == plan.current?.text else {
      throw .stack(.changedMeanwhile(path: SSHStage.path))
    }
    let first = writes ? last.steps(before: changesPAM, plan.passing) : [last]
    let second = writes ? last.steps(after: changesPAM) : []
    var (isTold, mayBeWritten) = (false, false)
    do throws(CommandError) {
      try set(first, &isTold)
      mayBeWritten = true
      let value = try write()
      try set(second, &isTold)
      return value
    } catch {
      // Undo the steps in reverse order. If the PAM lines cannot be removed, keep the settings that
      // fit them.
      if mayBeWritten, !second.isEmpty { setAgain(first) }
      if mayBeWritten, !undo() { throw error }
      throw file.takenBack(old.text, isTold ? running : nil, wanted: old.offers, error)
    }
  }

  private func setAgain(_ stages: [SSHStage]) {
    do throws(CommandError) {
      var isTold = false
      try set(stages, &isTold)
    } catch {
      // The caller reports the first error.
    }
  }

  private func set(_ stages: [SSHStage], _ isTold: inout Bool) throws(CommandError) {
    for stage in stages {
      try asSSH { () throws(SSHTrouble) in
        if writes { try file.put(stage.text) }
        try plan.verify(stage)
      }
      isTold = true
      try asSSH { () throws(SSHTrouble) in try running.reload(stage.lines) }
    }
  }

  // MARK: what is shown before the question

  /// `proposes`: another method too, if none was named.
  func text(width: Int, proposes: Bool) -> [String] {
    people(width: width, proposes: proposes) + warning
      + ForecastReport.list("Still in by key alone", plan.byKeyAlone, width: width)
      + (obstacle.map { ["warning: \($0.message.text)"] } ?? [])
  }

  private var warning: [String] {
    plan.method == .either
      ? [
        "warning: each person chooses: a stolen password then takes the place of the key"
      ] : []
  }

  /// Each account below what it is asked for; if no method was named, as a proposal.
  private func people(width: Int, proposes: Bool) -> [String] {
    let isProposed = proposes && !isAsked && plan.method == .passwordCode && plan.current == nil
    guard plan.method == .match || isProposed && division.isMixed else { return [] }
    let head =
      isProposed
      ? [
        "Instead, `sallyport pam enable sshd --sshd match` asks each for what they have:"
      ] : []
    let blocks = isProposed ? SSHStage(method: .match, people: division.people).blockLines : []
    let lists = [
      ("By a key alone, as now", division.alone), ("A key and a code", division.keyed),
      ("Refused until they are enrolled", division.shutOut),
      ("The password and a code", division.others), ("Not known", division.unknown),
    ]
    return head + blocks.map { "    \($0)" }
      + lists.flatMap { ForecastReport.list($0, $1, width: width) }
  }

  /// What our file says now, if it will say something else.
  var settingsBefore: PendingRevert.Settings {
    guard diff != nil else { return .unchanged }
    return plan.current.map { .stage($0) } ?? .absent
  }
  /// Our file says what it said when this was planned.
  var isAsBefore: Bool {
    do throws(SSHTrouble) { return try file.text() == plan.current?.text } catch { return false }
  }
  /// What is written to our file; nil if sshd has the settings already.
  var text: String? { writes ? last.text : nil }

  /// The new content of our file, as a diff; nil if it does not change.
  var diff: String? {
    guard writes, plan.current != last else { return nil }
    let head = plan.current == nil ? "\(SSHStage.path) (new)" : SSHStage.path
    let old = plan.current?.lines ?? []
    let gone = old.filter { !last.lines.contains($0) }.map { "-  \($0)" }
    let lines = last.lines.map { "\(old.contains($0) ? " " : "+")  \($0)" }
    return ([head] + gone + lines).joined(separator: "\n")
  }

  var facts: SSHSideFacts {
    SSHSideFacts(
      method: plan.method.rawValue, file: writes ? SSHStage.path : nil,
      settings: writes ? last.lines : [], byKeyAlone: plan.byKeyAlone + last.people.aloneUsers)
  }
}

/// sshd's side in JSON.
struct SSHSideFacts: Encodable {
  let method: String
  @OrNull var file: String?
  let settings, byKeyAlone: [String]
}

extension CommandError {
  /// sshd's side of its service was not changed.
  init(_ trouble: SSHTrouble) { self.init { _ in trouble.message } }
}

/// Runs `step` and rethrows its error as a `CommandError`.
func asSSH<Value>(_ step: () throws(SSHTrouble) -> Value) throws(CommandError) -> Value {
  try rethrow(step) { CommandError($0) }
}
