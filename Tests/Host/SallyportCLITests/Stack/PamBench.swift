import Foundation
import SallyportCore
import SallyportSupport
import SallyportSystem
import TestSupport
import Testing

@testable import PAMStack
@testable import SallyportCLI
@testable import SallyportDoctor

/// A machine in a directory: its files of PAM, and a store with alice in it.
final class PamBench {
  private let directory: TemporaryDirectory
  var root: String { directory.path }
  let bench = Bench()
  /// There is no sshd on it, unless a test brings one.
  var programs: ([String]) -> Probe<CommandOutput> = { _ in .absent }
  /// The programs that were left running, with their arguments.
  private(set) var detached: [[String]] = []
  /// Why none can be.
  var detachProblem: SystemError?
  /// What was told to the log of logins.
  private(set) var logged: [String] = []
  /// What the command writes to; no terminal at first.
  var screen: Screen?

  init(_ files: [String: String] = Stacks.debian, debian: Bool = true, enrolled: Bool = true) throws
  {
    directory = try TemporaryDirectory()
    try FileManager.default.createDirectory(
      atPath: "\(root)/etc/pam.d", withIntermediateDirectories: true)
    try FileManager.default.createDirectory(
      atPath: "\(root)/usr/lib/pam.d", withIntermediateDirectories: true)
    try FileManager.default.createDirectory(
      atPath: "\(root)/run", withIntermediateDirectories: true)
    for (name, text) in files { try write("/etc/pam.d/\(name)", text + "\n") }
    if debian { try write("/etc/debian_version", "12.5\n") }
    try people("alice")
    if enrolled { _ = try bench.enroll() }
  }

  func write(_ path: String, _ text: String) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: root + path))
  }

  /// root without a password, and accounts with one.
  func people(_ names: String...) throws {
    let rows = names.enumerated().map { "\($1):x:\(1000 + $0):1000::/home/\($1):/bin/sh\n" }
    try write("/etc/passwd", "root:x:0:0::/root:/bin/sh\n" + rows.joined())
    try write("/etc/shadow", "root:!::\n" + names.map { "\($0):$6$x::\n" }.joined())
  }

  func read(_ path: String) -> String? {
    FileManager.default.contents(atPath: root + path).map { String(decoding: $0, as: UTF8.self) }
  }

  /// Everything in the directory of services with its mode.
  func content() throws -> [String: String] {
    let directory = "\(root)/etc/pam.d"
    var content: [String: String] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: directory) {
      let facts = try FileManager.default.attributesOfItem(atPath: "\(directory)/\(name)")
      let mode = (facts[.posixPermissions] as? Int).map { String($0, radix: 8) } ?? ""
      content[name] = "\(mode) \(read("/etc/pam.d/\(name)") ?? "")"
    }
    return content
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
      now: { () throws(StoreTrouble) in now },
      detach: { words throws(SystemError) in
        if let problem = self.detachProblem { throw problem }
        self.detached.append(words)
      },
      tellLog: { self.logged.append("\($0) \($1)") },
      machine: Machine(root: root, run: programs))
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
