/// The file that stops a wrong password before the code prompt, in a stack whose included file lets
/// it go on: a substack that ends in `required pam_deny.so`, as password-auth of Fedora does.
///
/// libpam tells no module whether the lines before have succeeded, and no jump leaves a substack.
/// But `done` ends a substack only if they have: what follows it runs after a failure alone, and
/// there a line with `wrong-password` makes the next line of the module refuse without a prompt.
///
/// `done` also ends it where nothing has succeeded or failed, and then counts as a success. So the
/// two lines are in a file of their own, behind which `reset` restores what was before.
package enum StackGate {
  /// Not in /etc/pam.d, where it would be a service.
  package static let path = "/etc/security/sallyport-gate"
  /// What the first one includes.
  package static let innerPath = "\(path)-inner"
  static let paths = [path, innerPath]
  /// Whether it is one of the two files.
  package static func isFile(_ path: String) -> Bool { paths.contains(path) }
  /// What `pam enable` writes before its auth line.
  static let line = "auth     substack   \(path)"
}

extension StackEntry {
  /// Whether it is there because of the line that includes the file, which counts as ours.
  var isOfGate: Bool {
    StackGate.isFile(location.file) || kind == .substack && StackGate.isFile(module)
  }
}

extension StackAnalysis {
  /// What `pam enable` leaves out where it can: a second prompt counts more than ways around our
  /// line, and these more than wrong passwords that reach it.
  package var weaknesses: Int {
    let isSecond = findings.contains { if case .secondPrompt = $0 { true } else { false } }
    let isSkipped = findings.contains { if case .skipped = $0 { true } else { false } }
    return (isSecond ? 4 : 0) + (isSkipped ? 2 : 0) + (asksAfterWrongPassword ? 1 : 0)
  }

  /// Whether a wrong password still reaches the code prompt.
  package var asksAfterWrongPassword: Bool {
    findings.contains { if case .wrongPasswordReaches = $0 { true } else { false } }
  }
}
