package import PAMStack

// Converts the stacks as libpam reads them to doctor's facts.

extension Machine {
  package var stacks: StackDirectory { StackDirectory(root: root) }
}

extension ServiceStack {
  /// The stacks of one service.
  package init(of machine: Machine, _ service: String) { self = machine.stacks.stack(of: service) }

  /// The stacks of all services that name our module, without files that are only included.
  package static func ours(of machine: Machine) -> [ServiceStack] { ours(in: machine.stacks) }

  static func ours(in directory: StackDirectory) -> [ServiceStack] {
    let stacks = directory.services().map(directory.stack)
    let included = Set(stacks.flatMap { stack in stack.files.filter { $0 != stack.file } })
    return stacks.filter { stack in
      guard let file = stack.file, !ModuleLines(of: stack).lines.isEmpty else { return false }
      return !included.contains(file) || !isOnlyIncluded(stack.service)
    }
  }

  /// Decided by the name, as su is a service although su-l includes it.
  private static func isOnlyIncluded(_ name: String) -> Bool {
    ["common-", "system-"].contains { name.hasPrefix($0) }
      || ["-auth", "-account", "-session"].contains { name.hasSuffix($0) } || name == "postlogin"
  }
}

extension ModuleLines {
  /// Our lines among those that run.
  package init(of stack: ServiceStack) {
    lines = PAMPhase.allCases.flatMap { phase in
      stack[phase].filter { entry in
        entry.kind == .module && entry.moduleName == "pam_sallyport" && !entry.stopsWrongPassword
      }
    }
  }
}
