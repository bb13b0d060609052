// The way from the stacks as libpam reads them to what doctor knows of a service.

extension ServiceStack {
  /// The stacks of one service.
  init(of machine: Machine, _ service: String) {
    self = StackParser.parse(service: service, StackFolder(root: machine.root).files)
  }

  /// Those of all services whose stacks name our module; of files that others include only those.
  static func ours(of machine: Machine) -> [ServiceStack] {
    let names = StackFolder(root: machine.root).services()
    let stacks = names.map { ServiceStack(of: machine, $0) }
    let included = Set(stacks.flatMap { stack in stack.files.filter { $0 != stack.file } })
    return stacks.filter { stack in
      guard let file = stack.file, !included.contains(file) else { return false }
      return !ModuleLines(of: stack).lines.isEmpty
    }
  }
}

extension ModuleLines {
  /// Our lines among those that run.
  init(of stack: ServiceStack) {
    lines = PAMPhase.allCases.flatMap { phase in
      stack[phase].filter { $0.kind == .module && $0.moduleName == "pam_sallyport" }.map { entry in
        Line(
          phase: phase, path: entry.module, words: entry.arguments,
          place: FilePlace(file: entry.place.file, line: entry.place.line))
      }
    }
  }
}

extension ServiceFacts {
  init(_ stack: ServiceStack, of machine: Machine, isNamed: Bool) {
    self.init(name: stack.service, isNamed: isNamed, lines: ModuleLines(of: stack))
    file = stack.file
    let folder = StackFolder(root: machine.root)
    self.stack = StackAnalysis(stack, isMissing: folder.isMissing).findings
  }
}
