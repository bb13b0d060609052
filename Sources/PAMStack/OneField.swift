extension StackEntry {
  /// Whether the module takes the password from PAM_AUTHTOK, where a line of ours before it has put
  /// it, and does not ask. Each was tried.
  var takesPassword: Bool {
    switch moduleName {
    case "pam_unix": true
    case "pam_sss": !arguments.contains("prompt_always")
    case "pam_userdb", "pam_winbind":
      arguments.contains("use_first_pass") || arguments.contains("try_first_pass")
    case _: false
    }
  }

  /// pam_exec hands the password to a program, and asks for it where there is none.
  fileprivate var asksForPassword: Bool {
    kind == .module
      && (ModuleKind(self) == .password
        || moduleName == "pam_exec" && arguments.contains("expose_authtok"))
  }
}

extension StackAnalysis {
  /// In a program that gives the same answer to every prompt: what else asks beside our line, so
  /// that one of the two has the wrong text.
  func otherPrompt(_ line: StackEntry) -> StackEntry? {
    guard KnownServices.hasOneField(stack.service), !line.neverAsks,
      let place = stack[.auth].firstIndex(of: line)
    else { return nil }
    if let before = stack[.auth][..<place].first(where: \.asksForPassword) { return before }
    let splits = line.arguments.contains("forward_pass")
    return stack[.auth][place...].first { entry in
      entry.asksForPassword && !(splits && (entry.takesPassword || ModuleKind(entry) == .unknown))
    }
  }
}
