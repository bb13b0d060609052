extension StackEntry {
  /// Whether the module uses the password that our line before it has stored in PAM_AUTHTOK, and
  /// does not ask. Each of these was tested.
  var takesPassword: Bool {
    switch moduleName {
    case "pam_unix": true
    case "pam_sss": !arguments.contains("prompt_always")
    case "pam_userdb", "pam_winbind":
      arguments.contains("use_first_pass") || arguments.contains("try_first_pass")
    case _: false
    }
  }

  /// Also pam_exec with `expose_authtok`, which passes the password to a program and asks for it if
  /// there is none.
  fileprivate var asksForPassword: Bool {
    kind == .module
      && (ModuleKind(self) == .password
        || moduleName == "pam_exec" && arguments.contains("expose_authtok"))
  }
}

extension StackAnalysis {
  /// Another entry that prompts, in a program that gives the same answer to every prompt: one of
  /// the two then gets the wrong text.
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
