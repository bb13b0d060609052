import Foundation
import OneTimePassword
import PAMStack
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem
import Testing

@testable import SallyportCLI

/// A store of its own, a clock that stands still, and the command on them.
final class Bench {
  let directory = FileManager.default.temporaryDirectory
    .appendingPathComponent("sallyport-\(UUID().uuidString)").path
  /// In the middle of a 30 s step.
  var now = UnixTime(1_772_530_000)
  /// What is done to a file in an editor.
  var editing: (_ path: String) -> EditorStatus = { _ in .done }
  var machine = Machine()
  /// nil: the command is built without a fleet, unless a test gives one.
  var fleet: (any FleetAccess)?
  /// What was told the log of the system: priority and text.
  var logged: [String] = []
  /// The records of the audit log: type, operation, user, whether it was done.
  var audited: [String] = []
  /// The machine's root directory as far as PAM reads it; there is none at first.
  var root: String { directory + ".root" }
  /// The policy file, which is empty at first.
  var policyFile: String { directory + ".conf" }

  init() { try? Data().write(to: URL(fileURLWithPath: policyFile)) }

  deinit {
    for path in [directory, policyFile, root] { try? FileManager.default.removeItem(atPath: path) }
  }

  func policy(_ text: String) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: policyFile))
  }

  func context(
    _ terminal: FakeTerminal, caller: String? = nil, as user: UInt32 = geteuid()
  ) -> Context {
    Context(
      terminal: terminal, effectiveUser: user, caller: caller,
      hostName: "web1.example.org", stacks: StackDirectory(root: root), policyFile: policyFile,
      edit: { self.editing($0) },
      now: { () throws(StoreTrouble) in self.now },
      tellLog: { self.logged.append("\($0) \($1)") },
      audit: { self.audited.append("\($0) \($1) \($2 ?? "-") \($3)") }, loginUID: { nil },
      machine: machine,
      usualStore: Store(root: directory, owner: .effectiveUser), fleet: fleet)
  }

  struct Outcome {
    let status: Int32
    let terminal: FakeTerminal
    var answer: String { terminal.answer }
    var aside: String { terminal.aside }

    /// The one object on standard output.
    func json<Value: Decodable>(_ type: Value.Type) throws -> Value {
      try JSONDecoder().decode(type, from: Data(answer.utf8))
    }
  }

  /// Runs the command on this store and checks that the script was used up.
  @discardableResult
  func run(
    _ arguments: String..., on terminal: FakeTerminal = FakeTerminal(), caller: String? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
  ) -> Outcome {
    run(arguments: arguments, on: terminal, caller: caller, sourceLocation: sourceLocation)
  }

  /// As above.
  func run(
    arguments: [String], on terminal: FakeTerminal = FakeTerminal(), caller: String? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
  ) -> Outcome {
    let status = Command.run(
      arguments + ["--store", directory], in: context(terminal, caller: caller))
    #expect(terminal.isUsedUp, "the script goes on", sourceLocation: sourceLocation)
    for line in terminal.aside.split(separator: "\n") {
      let isHint = line.hasPrefix("hint: ")
      if isHint || line.hasPrefix("sallyport: ") {
        let isForm = isHint ? Bench.isCommand(String(line.dropFirst(6))) : !line.hasSuffix(".")
        #expect(isForm, "\(line)", sourceLocation: sourceLocation)
      }
    }
    return Outcome(status: status, terminal: terminal)
  }

  /// Whether a hint begins with a program that exists.
  static func isCommand(_ hint: String) -> Bool {
    let tools = [
      "sudo", "getent", "ls", "chown", "chmod", "find", "df", "findmnt", "lslocks", "date", "rm",
      "sallyport", "sallyport-verifier", "systemctl", "readlink", "journalctl", "ss", "tr",
      "zbarimg",
    ]
    return tools.contains(String(hint.prefix { $0 != " " }))
  }

  /// As root runs it, with no store named: the usual one is this.
  func runAsRoot(_ arguments: [String], on terminal: FakeTerminal, store: String) -> Outcome {
    var context = context(terminal, as: 0)
    context.usualStore = Store(root: store, owner: .effectiveUser)
    return Outcome(status: Command.run(arguments, in: context), terminal: terminal)
  }

  /// Enrolls `user` without a question.
  func enroll(_ user: String = "alice", _ more: String..., secret: String? = nil) throws -> Enrolled
  {
    let script = secret.map { [Act.types($0)] } ?? []
    let terminal = FakeTerminal(script, isInteractive: false)
    var arguments = ["enroll", "--user", user, "--allow-missing", "--no-confirm", "--json"]
    arguments += ["--store", directory] + more
    if secret != nil { arguments += ["--secret-from", "-"] }
    let status = Command.run(arguments, in: context(terminal))
    try #require(status == 0, "\(terminal.aside)")
    return try JSONDecoder().decode(Enrolled.self, from: Data(terminal.answer.utf8))
  }

  /// Puts a store here in which alice is enrolled, a copy of one that is made once.
  func copyStoreOfAlice() throws {
    let made = try unsafe Bench.alice.get()
    try FileManager.default.copyItem(atPath: made.directory, toPath: directory)
  }

  nonisolated(unsafe) private static let alice = Result {
    let bench = Bench()
    _ = try bench.enroll()
    return bench
  }

  /// Every file under the store with its content, but for the acts and the last good policy, which
  /// a program that reads the policy keeps.
  func content() throws -> [String: Data] {
    guard FileManager.default.fileExists(atPath: directory) else { return [:] }
    var files: [String: Data] = [:]
    for path in try FileManager.default.subpathsOfDirectory(atPath: directory)
    where !path.hasPrefix("policy.good") && !path.hasPrefix("acts") {
      files[path] = FileManager.default.contents(atPath: "\(directory)/\(path)") ?? Data()
    }
    return files
  }
}

/// `sallyport enroll --json`
struct Enrolled: Decodable, Equatable {
  struct Authenticator: Decodable, Equatable {
    let name, type, algorithm: String
    let digits: Int
    let period, counter: Int?
  }
  let user, secret, uri: String
  let authenticator: Authenticator
  let backupCodes: [String]

  /// The code at a moment, or `steps` later.
  func code(at time: UnixTime, steps: Int = 0) throws -> String {
    try uriCode(uri, at: time, steps: steps)
  }
}

/// The code of an otpauth URI at a moment, or `steps` later; of an HOTP that of counter `steps`.
func uriCode(_ uri: String, at time: UnixTime, steps: Int = 0) throws -> String {
  let uri = try OtpauthURI(Array(uri.utf8))
  let first: UInt64
  switch uri.parameters.type {
  case .totp(let period): first = timeStep(at: time.seconds, period: period)
  case .hotp: first = uri.counter
  }
  let generator = try CodeGenerator(
    secret: uri.secret, algorithm: uri.parameters.algorithm, digits: uri.parameters.digits)
  let code = String(try generator.code(at: UInt64(Int64(first) + Int64(steps))))
  return String(repeating: "0", count: Int(uri.parameters.digits.rawValue) - code.count) + code
}

extension FakeTerminal {
  /// The URI that was shown.
  func uri() throws -> String {
    let lines = (answer + aside).split(separator: "\n")
    return String(try #require(lines.first { $0.hasPrefix("otpauth://") }))
  }
}

/// The code for the URI on the screen, `steps` away from `time`.
func shownCode(at time: UnixTime, steps: Int = 0) -> Act {
  .answers { try uriCode(try $0.uri(), at: time, steps: steps) }
}

/// Six digits that are not accepted around `time`.
func wrongCode(at time: UnixTime) -> Act {
  .answers { terminal in
    let uri = try terminal.uri()
    let good = try (-10...10).map { try uriCode(uri, at: time, steps: $0) }
    return try #require((0..<30).map { "\(100_000 + $0 * 7919)" }.first { !good.contains($0) })
  }
}
