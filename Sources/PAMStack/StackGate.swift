/// The file that stops a wrong password before the code prompt, in a stack whose included file lets
/// it go on: a substack that ends in `required pam_deny.so`, as password-auth of Fedora does.
///
/// libpam tells no module whether the lines before have succeeded, and no jump leaves a substack.
/// But `done` ends a substack only if they have: what follows it runs after a failure alone, and
/// there a line with `wrong-password` makes the next line of the module refuse without a prompt.
package enum StackGate {
  /// Not in /etc/pam.d, where it would be a service.
  package static let path = "/etc/security/sallyport-gate"
  /// What `pam enable` writes before its auth line.
  static let line = "auth     substack   \(path)"
}

extension StackEntry {
  /// Whether it is the line that makes the next one of the module refuse.
  package var stopsWrongPassword: Bool {
    phase == .auth && moduleName == "pam_sallyport" && arguments.contains("wrong-password")
  }

  /// Whether it is there because of the line that includes the file, which counts as ours.
  var isOfGate: Bool {
    location.file == StackGate.path || kind == .substack && module == StackGate.path
  }
}

extension StackAnalysis {
  /// Whether a wrong password still reaches the code prompt.
  package var asksAfterWrongPassword: Bool {
    findings.contains { if case .wrongPasswordReaches = $0 { true } else { false } }
  }
}
