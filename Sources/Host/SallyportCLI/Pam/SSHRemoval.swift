import PAMStack
import SallyportDoctor
import SallyportSupport

/// The sshd side of `pam disable`: the PAM lines are removed first, then our file in sshd's
/// configuration.
struct SSHRemoval {
  /// What our file says; nil if there is none, or if it is not as we write it.
  let stage: SSHStage?
  /// Why the file there stays; nil if it is ours.
  private let obstacle: SSHTrouble?
  private let machine: Machine
  private let running: RunningSSHD
  private let file: SSHFile

  /// Throws if the PAM lines have `after-key` and our file is not as we write it: it is then
  /// unknown what sshd will ask for.
  init(_ context: Context) throws(CommandError) {
    machine = context.machine
    file = SSHFile(root: context.stacks.root)
    do throws(SSHTrouble) {
      (stage, obstacle) = (try context.machine.sshStage(), nil)
    } catch {
      if context.stacks.stack(of: "sshd")[.auth].contains(where: \.isAfterKey) {
        throw CommandError(error)
      }
      (stage, obstacle) = (nil, error)
    }
    let witness = stage.flatMap(context.machine.sshWitness)
    running = RunningSSHD(context.machine, as: witness ?? context.caller ?? "root")
  }

  var diff: String? {
    guard let stage else { return nil }
    let lines = stage.lines.map { "-  \($0)" }
    return (["\(SSHStage.path) (removed)"] + lines).joined(separator: "\n")
  }

  /// Removes our file, and calls `write` at its place among the steps; `write` removes the PAM
  /// lines if `changesPAM`. If it throws, `isWritten` says whether they are gone. `left` is why
  /// sshd's settings could not be undone though the PAM lines are gone.
  func turnOff<Value>(
    changesPAM: Bool, _ write: () throws(CommandError) -> Value, isWritten: () -> Bool
  ) throws(CommandError) -> (value: Value, left: CommandError?) {
    guard let stage else { return (try write(), obstacle.map(SSHRemoval.left)) }
    machine.makeSSHDirectory()
    var (now, isTold) = (stage, false)
    let value: Value
    do throws(CommandError) {
      if changesPAM, !stage.method.needsPassword, stage.passing == nil {
        try asSSH { () throws(SSHTrouble) in try pass(&now, &isTold) }
      }
      value = try write()
    } catch {
      // The PAM lines are gone. Left as it is now, sshd still admits users without a password.
      if isWritten() { throw error }
      throw file.takenBack(stage.text, isTold ? listener : nil, error)
    }
    return (value, remove(from: now))
  }

  /// Returns why our file is still there, or why the running sshd may still go by it.
  private func remove(from now: SSHStage) -> CommandError? {
    var isTold = false
    do throws(SSHTrouble) {
      try put(nil, &isTold)
      return nil
    } catch {
      if isTold { return CommandError(error) }
      do throws(SSHTrouble) {
        try file.put(now.text)
        return SSHRemoval.left(error)
      } catch let second {
        return SSHRemoval.left(second)
      }
    }
  }

  private static func left(_ trouble: SSHTrouble) -> CommandError {
    let message = trouble.message
    return CommandError(
      message.status, "sshd's settings are still there: \(message.text)", hints: message.hints)
  }

  /// Users with a key may have no password, but are asked for one as soon as the PAM lines are
  /// gone. If sshd will accept a key alone once our file is removed, accept a key alone from here
  /// on.
  private func pass(_ now: inout SSHStage, _ isTold: inout Bool) throws(SSHTrouble) {
    guard machine.hasSSHD else { return }
    // Without the file PAM's lines would keep out who has a password, if this were killed here.
    guard try machine.assuming(sshFile: nil).sshLetsKeysAlone() else { return }
    now = now.via(.keyAlone)
    try put(now.text, &isTold)
  }

  /// Whether there is a file by our name, ours or not.
  var isThere: Bool { stage != nil || obstacle != nil }

  /// Puts back what our file said before.
  func restore(_ stage: SSHStage) throws(CommandError) {
    machine.makeSSHDirectory()
    var isTold = false
    try asSSH { () throws(SSHTrouble) in
      try put(stage.text, &isTold)
    }
  }

  /// Writes the file, checks that sshd accepts it, and reloads sshd if it is running.
  private func put(_ text: String?, _ isTold: inout Bool) throws(SSHTrouble) {
    try file.put(text)
    if let complaint = machine.sshComplaint() { throw .sshd(complaint) }
    guard let listener else { return }
    isTold = true
    let fate = text == nil ? "\(SSHStage.path) was removed" : "nothing was changed"
    try listener.reload([], otherwise: fate)
  }

  /// The running sshd; nil if none is running.
  private var listener: RunningSSHD? {
    guard machine.hasSSHD else { return nil }
    do throws(SSHTrouble) {
      try running.needListener()
    } catch {
      if error.isNotRunning { return nil }
    }
    return running
  }
}
