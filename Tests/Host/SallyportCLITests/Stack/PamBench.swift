import Foundation
import SallyportCore
import SallyportSupport
import SallyportSystem
import Testing

@testable import PAMStack
@testable import SallyportCLI
@testable import SallyportDoctor

/// A machine in a directory: its files of PAM, a store with alice in it, and the command on them.
final class PamBench: PamFiles {
  let bench = Bench()
  /// There is no sshd on it, unless a test brings one.
  var programs: ([String]) -> Probe<CommandOutput> = { _ in .absent }
  /// The programs that were left running, with their arguments.
  private(set) var detached: [[String]] = []
  /// Why none can be.
  var detachProblem: SystemError?
  /// What the editor does with a file.
  private var editing: (String) -> EditorStatus = { _ in .failed(9) }
  /// What was told to the log of logins.
  private(set) var logged: [String] = []
  /// The acts that it was told.
  private(set) var acts: [String] = []
  /// What the command writes to; no terminal at first.
  var screen: Screen?

  init(_ files: [String: String] = Stacks.debian, debian: Bool = true, enrolled: Bool = true) throws
  {
    try super.init(files, debian: debian)
    try people("alice")
    // sshd lets in nobody whose shell is not there, and su comes to no prompt.
    let shell = root + "/bin/sh"
    try FileManager.default.createDirectory(
      atPath: root + "/bin", withIntermediateDirectories: true)
    try write("/bin/sh", "")
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: shell)
    if enrolled { try bench.copyStoreOfAlice() }
  }

  /// root without a password, and accounts with one.
  func people(_ names: String...) throws {
    let rows = names.enumerated().map { "\($1):x:\(1000 + $0):1000::/home/\($1):/bin/sh\n" }
    try write("/etc/passwd", "root:x:0:0::/root:/bin/sh\n" + rows.joined())
    try write("/etc/shadow", "root:!::\n" + names.map { "\($0):$6$x::\n" }.joined())
  }

  /// `sallyport pam …` on this machine.
  @discardableResult
  func run(_ arguments: String..., answers: String? = nil, caller: String? = nil)
    -> Bench.Outcome
  {
    run(words: arguments, answers: answers, caller: caller)
  }

  /// As above.
  func run(words: [String], answers: String? = nil, caller: String? = nil) -> Bench.Outcome {
    command(["pam"] + words + ["--store", bench.directory], answers, caller)
  }

  /// `sallyport doctor` of the services that ask.
  func doctor() -> Bench.Outcome { doctor("--json") }

  /// As the packages run it.
  func prepare() -> Bench.Outcome { command(["prepare", "--store", bench.directory], nil, nil) }

  func doctor(_ words: String...) -> Bench.Outcome {
    command(["doctor"] + words + ["--store", bench.directory], nil, nil)
  }

  /// `sallyport config check` of one of its files.
  func check(_ path: String, _ options: String...) -> Bench.Outcome {
    command(["config", "check", root + path] + options, nil, nil)
  }

  /// `sallyport config install` of one of its files as its policy.
  func install(_ path: String, _ options: String..., answers: String? = nil) -> Bench.Outcome {
    command(["config", "install", root + path] + own + options, answers, nil)
  }

  /// `sallyport config edit` of its policy, in which each call of the editor leaves the next text.
  func edit(_ texts: [String], answers: String...) -> Bench.Outcome {
    var texts = texts
    editing = { path in
      guard !texts.isEmpty else { return .failed(9) }
      try? Data(texts.removeFirst().utf8).write(to: URL(fileURLWithPath: path))
      return .done
    }
    return command(["config", "edit"] + own, answers.map { .types($0) }, nil)
  }

  /// Its policy and its store.
  private var own: [String] {
    ["--conf", "\(root)/etc/security/sallyport.conf", "--store", bench.directory]
  }

  /// Somebody edits a file before the answer.
  func run(words: [String], writing text: String, to path: String, answers: String)
    -> Bench.Outcome
  {
    let file = URL(fileURLWithPath: root + path)
    let act = Act.answers { _ in
      try Data(text.utf8).write(to: file)
      return answers
    }
    return command(["pam"] + words + ["--store", bench.directory], [act], nil)
  }

  private func command(_ words: [String], _ answers: String?, _ caller: String?)
    -> Bench.Outcome
  {
    command(words, answers.map { [.types($0)] } ?? [], caller)
  }

  private func command(_ words: [String], _ script: [Act], _ caller: String?) -> Bench.Outcome {
    let terminal = FakeTerminal(script, screen: screen)
    let now = bench.now
    let context = Context(
      terminal: terminal, effectiveUser: 0, caller: caller, hostName: "web1.example.org",
      stacks: StackDirectory(root: root),
      edit: { self.editing($0) }, now: { () throws(StoreTrouble) in now },
      detach: { words throws(SystemError) in
        if let problem = self.detachProblem { throw problem }
        self.detached.append(words)
      },
      tellLog: { priority, text in
        if text.hasPrefix("act=") { return self.acts.append(text) }
        self.logged.append("\(priority) \(text)")
      },
      audit: { _, _, _, _ in },
      machine: Machine(root: root, run: programs),
      usualStore: Store(root: bench.directory, owner: .effectiveUser))
    let status = Command.run(words, in: context)
    #expect(terminal.isUsedUp, "the script goes on")
    return Bench.Outcome(status: status, terminal: terminal)
  }

  /// The lines of a file that name our module, with the line in front of each; without `store=`.
  func ours(_ service: String) -> [String] {
    let text = read("/etc/pam.d/\(service)") ?? ""
    let lines = text.replacing(" store=\(bench.directory)", with: "").components(separatedBy: "\n")
    return lines.indices.filter { lines[$0].contains("pam_sallyport.so") }.map { index in
      let before = index > 0 ? lines[index - 1] : "(first)"
      return "\(before) | \(lines[index])"
    }
  }
}
