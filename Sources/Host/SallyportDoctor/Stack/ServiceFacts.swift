import PAMStack
import SallyportSystem

/// One PAM service.
struct ServiceFacts: Equatable {
  let name: String
  var lines = ModuleLines()
  var policy = PolicyFacts()
  /// Its own file; nil if it uses `other`.
  var file: String?
  /// The findings of the walk through its stacks.
  var stack: [StackFinding] = []
  /// Whether a second prompt, a way around our lines, or one of a wrong password to them, is gone
  /// if `pam enable` replaces them.
  var isBetterEnabledAgain = false
  /// Why `remember` has no effect here; nil if it has one.
  var idleRemember: IdleRemember?
  /// nil: it runs in no unit of its own.
  var unit: ServiceUnit?

  /// The store that its lines use.
  var store: String { lines.value(of: "store") ?? Store.usualRoot }
}

extension ServiceFacts {
  init(_ stack: ServiceStack, of machine: Machine) {
    self.init(name: stack.service, lines: ModuleLines(of: stack))
    file = stack.file
    unit = ServiceUnit(of: name, store: store, on: machine)
    let analysis = machine.stacks.analysis(stack)
    self.stack = analysis.findings
    isBetterEnabledAgain =
      analysis.weaknesses > 0
      && ServiceFacts.weaknesses(replacing: stack, lines, in: machine.stacks) < analysis.weaknesses
    idleRemember = analysis.idleRemember
    lines.isDemandIdle = analysis.isDemandIdle
    lines.needsPassword = analysis.needsPassword
  }

  /// Only lines with the words of `pam enable --enroll` or `--no-enroll` are replaced by these.
  private static func weaknesses(
    replacing stack: ServiceStack, _ lines: ModuleLines, in directory: StackDirectory
  ) -> Int {
    guard lines.lines.allSatisfy({ $0.arguments.allSatisfy { $0 == "enroll" } }) else {
      return .max
    }
    let options = StackOptions(enroll: lines.enrolls)
    let change = try? StackPlanner(stack.service, in: directory).enable(options)
    return change?.analysis.weaknesses ?? .max
  }
}
