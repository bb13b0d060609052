import PAMStack
import SallyportDoctor
import SallyportText

/// sshd's side of turning its service off: PAM's lines go first, then our file among its settings.
struct SSHRemoval {
  /// What our file holds; nil where there is none, or it is not as we write it.
  let stage: SSHStage?
  private let machine: Machine
  private let running: RunningSSHD
  private let file: SSHFile
  private let output: Output

  init(_ context: Context, _ output: Output) {
    machine = context.machine
    running = RunningSSHD(context.machine, as: context.caller ?? "root")
    (file, self.output) = (SSHFile(root: context.stacks.root), output)
    do throws(SSHTrouble) {
      stage = try context.machine.sshStage()
    } catch {
      stage = nil
      output.warn(Message(error).text)
    }
  }

  var diff: String? {
    guard let stage else { return nil }
    let lines = stage.settings.map { "-  \($0.text)" }
    return (["\(SSHStage.path) (removed)"] + lines).joined(separator: "\n")
  }

  /// Runs `write`, which takes PAM's lines out if `changesPAM`, where it belongs among the steps.
  func turnOff<Value>(changesPAM: Bool, _ write: () throws(CommandError) -> Value)
    throws(CommandError) -> Value
  {
    guard let stage else { return try write() }
    let lock = try file.lock()
    // Whoever has a key may have no password, which is asked for again as soon as it is written.
    if changesPAM, stage.method == .keyCode {
      do throws(SSHTrouble) {
        try put(SSHStage(method: .keyCode, isPassing: true).text, or: stage.text)
      } catch {
        try asSSH { () throws(SSHTrouble) in try file.put(stage.text) }
        throw .ssh(error)
      }
    }
    let value = try write()
    do throws(SSHTrouble) {
      try put(nil, or: stage.text)
    } catch {
      let message = Message(error)
      output.warn("\(message.text)")
      for hint in message.hints { output.say("hint: \(hint)") }
    }
    try file.sync(lock)
    return value
  }

  /// The file with this text, which sshd takes and has read, if it runs; else with the old one.
  private func put(_ text: String?, or old: String) throws(SSHTrouble) {
    try file.put(text)
    if let complaint = machine.sshComplaint() {
      try file.put(old)
      throw .sshd(complaint)
    }
    do throws(SSHTrouble) {
      try running.needListener()
    } catch {
      if case .notRunning = error { return }
    }
    try running.reload([])
  }
}
