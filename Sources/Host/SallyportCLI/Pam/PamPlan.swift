import PAMStack
import SallyportDoctor
import SallyportSupport

/// What turning on one service changes, before anything is written.
struct PamPlan {
  let change: StackChange
  let side: SSHSide?
  /// sshd is as wanted already, or is not concerned.
  let isSet: Bool
  /// nil if nothing changes.
  var forecast: ForecastReport?
  /// Who gets in no longer; nil if nothing changes.
  var loss: AccessLoss?

  var service: String { change.service }
  var changesNothing: Bool { change.changesNothing && isSet }

  /// What is shown before the question. `proposes`: another method too.
  func text(width: Int, proposes: Bool) -> String {
    let diffs = [side?.diff, change.changesNothing ? nil : StackDiff(change).text]
    let parts = (diffs + [forecast?.text(width: width, proposes: proposes)]).compactMap { $0 }
    return parts.filter { !$0.isEmpty }.joined(separator: "\n")
  }

  /// Why it may not be written.
  func obstacle(_ facts: AccessFacts) -> CommandError? {
    loss.flatMap { forecast?.obstacle($0, isWhole: facts.isWhole) }
  }

  func step(in context: Context) -> PamStep<StackWriter.Written?> {
    PamStep(service: service, change: change.changesNothing ? nil : change) {
      () throws(CommandError) in
      try write(in: context)
    }
  }

  /// Returns nil if the lines are in the file already.
  private func write(in context: Context) throws(CommandError) -> StackWriter.Written? {
    let put = { () throws(CommandError) in
      change.changesNothing ? nil : try context.write(change)
    }
    guard let side else { return try put() }
    let written = try side.turnOn(changesPAM: !change.changesNothing, put) {
      guard !change.changesNothing, change.isWritten(in: context.stacks) else { return true }
      guard let problem = context.takeBack(change) else { return true }
      context.terminal.write(Array(Message(problem, .inputOutput).written.utf8), to: .aside)
      return false
    }
    // sshd's side may be all that has changed.
    if change.changesNothing { context.keepAsking(of: service) }
    return written
  }

  /// The command or login that tries out the service.
  var trial: String {
    switch service {
    case "sshd": "ssh NAME@HOST  # sallyport doctor sshd checks sshd's own settings"
    case "sudo": "sudo -k true"
    case "sudo-i": "sudo -k -i true"
    case "su", "su-l": "su - NAME"
    case "polkit-1": "pkexec true"
    case "login": "a login on the console"
    case _ where KnownServices.hasOneField(service):
      "a login with PASSWORD123456 as the password, where 123456 is the code"
    case _: "pamtester \(service) NAME authenticate acct_mgmt"
    }
  }
}
