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

  /// Throws where PAM's lines take a key for the password and our file is not as we write it: what
  /// sshd will ask for is not known.
  init(_ context: Context, _ output: Output) throws(CommandError) {
    machine = context.machine
    running = RunningSSHD(context.machine, as: context.caller ?? "root")
    (file, self.output) = (SSHFile(root: context.stacks.root), output)
    do throws(SSHTrouble) {
      stage = try context.machine.sshStage()
    } catch {
      let stack = StackParser.parse(service: "sshd", context.stacks.files)
      if stack[.auth].contains(where: { $0.arguments.contains("after-key") }) { throw .ssh(error) }
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
  /// `isWritten`: whether they are gone, if it threw.
  func turnOff<Value>(
    changesPAM: Bool, _ write: () throws(CommandError) -> Value, isWritten: () -> Bool
  ) throws(CommandError) -> Value {
    guard let stage else { return try write() }
    var (now, isTold) = (stage, false)
    let value: Value
    do throws(CommandError) {
      if changesPAM, stage.method == .keyCode, stage.passing == nil {
        try asSSH { () throws(SSHTrouble) in try pass(&now, &isTold) }
      }
      value = try write()
    } catch {
      // Where the password is asked for again in spite of it, whoever has none still gets in.
      if isWritten() { throw error }
      throw file.takenBack(stage.text, isTold ? listener : nil, error)
    }
    do throws(SSHTrouble) {
      isTold = false
      try put(nil, &isTold)
    } catch {
      if !isTold { restore(now) }
      let message = Message(error)
      output.warn("\(message.text)")
      for hint in message.hints { output.say("hint: \(hint)") }
    }
    return value
  }

  /// Whoever has a key may have no password, which is asked for again as soon as PAM's lines are
  /// out. Where a key alone will be enough without our file, it is from here on.
  private func pass(_ now: inout SSHStage, _ isTold: inout Bool) throws(SSHTrouble) {
    // What sshd would say without the file, which it is not told to read meanwhile.
    try file.put(nil)
    let letsKeysAlone = try machine.sshLetsKeysAlone()
    guard letsKeysAlone else { return try file.put(now.text) }
    now = SSHStage(method: .keyCode, passing: .keyAlone)
    try put(now.text, &isTold)
  }

  /// The file with this text, which sshd takes and has read, if it runs.
  private func put(_ text: String?, _ isTold: inout Bool) throws(SSHTrouble) {
    try file.put(text)
    if let complaint = machine.sshComplaint() { throw .sshd(complaint) }
    guard let listener else { return }
    isTold = true
    try listener.reload([])
  }

  private func restore(_ stage: SSHStage) {
    do throws(SSHTrouble) {
      try file.put(stage.text)
    } catch {
      output.warn(Message(error).text)
    }
  }

  /// The sshd that is told; nil where none runs.
  private var listener: RunningSSHD? {
    do throws(SSHTrouble) {
      try running.needListener()
    } catch {
      if case .notRunning = error { return nil }
    }
    return running
  }
}
