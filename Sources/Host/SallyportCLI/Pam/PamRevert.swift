import ArgumentParser
import Glibc
import PAMStack
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportSupport

/// `sallyport pam confirm`
struct PamConfirm: Verb {
  static let configuration = CommandConfiguration(
    commandName: "confirm", abstract: "Keep what pam enable --revert-in has changed.",
    discussion: """
      To be typed in a new login, which shows that the changed services let somebody in.
      """)

  @Flag(help: "Confirm it from the login that made the change as well.")
  var force = false

  @OptionGroup var shared: StoreOptions

  func run(in context: Context) throws(CommandError) {
    try context.needRoot("pam confirm")
    let lock = try context.lockPam()
    let pending = try context.pendingRevert()
    let session = context.machine.session
    if !force, pending.names.contains("sshd"), session != nil, session == pending.session {
      throw CommandError(
        .notPermitted,
        "this is the login that made the change: only a new one shows that it works",
        hints: ["ssh NAME@HOST", "sallyport pam confirm --force"])
    }
    try context.recorded(.pamConfirm, of: pending.names) { () throws(CommandError) in
      try context.forgetRevert()
    }
    lock.end()
    let names = pending.names.joined(separator: ", ")
    context.output(shared).answer(
      RevertAnswer(services: pending.names), "Confirmed: the change of \(names) stays.")
  }
}

/// `sallyport pam revert`
struct PamRevert: Verb {
  static let configuration = CommandConfiguration(
    commandName: "revert", abstract: "Take back what pam enable --revert-in has changed.")

  @Option(help: ArgumentHelp("Only this change, for a timer.", visibility: .hidden))
  var due: String?

  @Option(help: ArgumentHelp("Seconds to wait before.", visibility: .hidden))
  var after: UInt32?

  @OptionGroup var shared: StoreOptions

  func run(in context: Context) throws(CommandError) {
    try context.needRoot("pam revert")
    if let due, let after { waitForRevert(due, seconds: after, of: context.machine) }
    let lock = try context.lockPam(waiting: due != nil)
    let pending: PendingRevert
    if let due {
      // Confirmed, or taken back by hand.
      guard let found = context.machine.pendingRevert().value, found.id == due else { return }
      pending = found
    } else {
      pending = try context.pendingRevert()
    }
    let output = context.output(shared)
    try context.recorded(.pamRevert, of: pending.names) { () throws(CommandError) in
      try context.takeBack(pending)
      try context.forgetRevert()
    }
    lock.end()
    let names = pending.names.joined(separator: ", ")
    if due != nil {
      context.tellLog(LOG_WARNING, "the change of \(names) was not confirmed, and was taken back")
    }
    output.answer(RevertAnswer(services: pending.names), "The change of \(names) was taken back.")
  }
}

private struct RevertAnswer: Encodable {
  let services: [String]
}

extension Context {
  fileprivate func pendingRevert() throws(CommandError) -> PendingRevert {
    switch machine.pendingRevert() {
    case .absent:
      throw CommandError(
        .noInput, "no change waits to be confirmed: what is not confirmed in time is taken back",
        hints: ["sallyport pam status", "journalctl -t sallyport  # says when"])
    case .unseen(let reason):
      throw CommandError(
        .configuration, printable(reason.utf8, limit: 300),
        hints: ["sallyport pam status", "rm \(PendingRevert.path)"])
    case .seen(let pending): return pending
    }
  }

  /// sshd first, which was written last. What fails does not keep the others from being taken back,
  /// and leaves the file, so that it can be tried again.
  fileprivate func takeBack(_ pending: PendingRevert) throws(CommandError) {
    var problems: [CommandError] = []
    for service in pending.names.reversed() {
      do throws(CommandError) {
        if service == "sshd" {
          try takeBackSSHD(pending)
        } else {
          _ = try PamRemoval(service, in: stacks, self).step(in: self).write()
        }
      } catch {
        // The command was ended before it came to this one, or it is off again.
        if case .stack(.notEnabled) = error.cause { continue }
        problems.append(error)
      }
    }
    if let first = problems.first { throw first }
  }

  private func takeBackSSHD(_ pending: PendingRevert) throws(CommandError) {
    let isListed = pending.services.contains("sshd")
    switch pending.settings {
    case .unchanged: try takeBackLines()
    case .absent:
      let nothing = { () throws(CommandError) in }
      let left =
        isListed
        ? try PamRemoval("sshd", in: stacks, self).step(in: self).write().left
        : try SSHRemoval(self).turnOff(changesPAM: false, nothing, isWritten: { true }).left
      if let left { throw left }
    case .stage(let stage):
      if isListed {
        do throws(CommandError) {
          try takeBackLines()
        } catch {
          guard case .stack(.notEnabled) = error.cause else { throw error }
        }
      }
      try SSHRemoval(self).restore(stage)
      keepRecord(of: "sshd")
    }
  }

  private func takeBackLines() throws(CommandError) {
    let change = try stacking { () throws(StackRefusal) in
      try StackPlanner("sshd", in: stacks).disable()
    }
    _ = try write(change)
  }
}
