/// A line in a file.
package struct FileLocation: Hashable, Sendable {
  package let file: String
  /// Counted from 1, the first one if the line is continued; nil for the file as a whole.
  package let line: Int?

  package init(file: String, line: Int? = nil) { (self.file, self.line) = (file, line) }

  /// `/etc/pam.d/sshd:4`
  package var text: String { line.map { "\(file):\($0)" } ?? file }
  /// Whether the next update of its package overwrites the file.
  package var isVendors: Bool { file.hasPrefix("/usr/") }
}

/// One entry of a stack, with all includes expanded.
package struct StackEntry: Hashable, Sendable {
  /// What libpam does at the entry.
  package enum Kind: Hashable, Sendable {
    case module
    /// libpam cannot parse the line or read the file that it includes: PAM_PERM_DENIED.
    case mustFail
    /// The start of a substack; runs no module.
    case substack
  }

  package let location: FileLocation
  /// The lines of the service's own file that brought the entry in; those of `location` if it
  /// stands in that file.
  package let root: ClosedRange<Int>
  package let phase: PAMPhase
  package let kind: Kind
  /// The number of substacks around it, 0..15.
  package let level: Int
  package let controls: PAMControls
  /// As written: a path, or a name in libpam's directory of modules. Empty if there is none.
  package let module: String
  package let arguments: [String]
  /// The line starts with `-`: libpam does not log that the module is missing.
  package let isSilent: Bool

  /// Whether it is our line with `after-key`, which refuses users whose key sshd has not accepted.
  package var isAfterKey: Bool { arguments.contains("after-key") }

  /// Whether it is such a line that users without a key go on behind: for them it is not there.
  package var goesOnWithoutKey: Bool {
    kind == .module && phase == .auth && moduleName == "pam_sallyport" && isAfterKey
      && controls[.permissionDenied] == .ignore
  }

  /// Whether it can be disabled together with the password: it is of no use without the password,
  /// or does not change who gets in.
  var goesWithPassword: Bool {
    switch ModuleKind(self) {
    case .password, .permit, .deny: true
    case .quiet: ["pam_env", "pam_cap"].contains(moduleName)
    case .ours, .afterKey, .factor, .rootOnly, .unknown: false
    }
  }

  /// `pam_unix` for `/lib/security/pam_unix.so`; for comparisons.
  package var moduleName: String {
    let file = module.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
    return String(file.hasSuffix(".so") ? file.dropLast(3) : file)
  }
}

/// A fault in a file of pam.d.
package enum StackProblem: Hashable, Sendable {
  case unknownType(String)
  case noType, noControl, noModule
  case badControl(String)
  /// The included file cannot be read, or is nested too deep.
  case cannotInclude(String)
  case noFileNamed
  /// Includes itself, or never ends: libpam opens files until it has no descriptors left.
  case endless(String)
  /// libpam stops reading the file.
  case unreadable
  /// Longer than libpam 1.5.2 reads at once: it takes the rest for another line.
  case overlong
  /// Neither the service nor `other` has a file.
  case noFile

  /// Whether the whole service fails, in every phase.
  package var isFatal: Bool {
    switch self {
    case .unreadable, .endless, .noFile: true
    case .unknownType, .noType, .noControl, .noModule, .badControl, .cannotInclude, .noFileNamed,
      .overlong:
      false
    }
  }
}

/// A fault and where it is.
package struct StackFault: Hashable, Sendable {
  package let location: FileLocation
  package let problem: StackProblem
}

/// What libpam knows about a service.
package struct ServiceStack: Sendable {
  package let service: String
  /// The service's own file; nil if `other` replaces it entirely.
  package let file: String?
  /// pam_start fails with PAM_ABORT: nobody gets in.
  package var isAborted = false
  package var faults: [StackFault] = []
  /// Every file that was read, each once.
  package var files: [String] = []
  var own: [PAMPhase: [StackEntry]] = [:]
  var other: [PAMPhase: [StackEntry]] = [:]

  /// The entries that run: the service's own, or those of `other` if it has none.
  package subscript(phase: PAMPhase) -> [StackEntry] {
    own[phase] ?? other[phase] ?? []
  }

  /// Whether `other` provides this phase.
  package func isOther(_ phase: PAMPhase) -> Bool { own[phase] == nil }
}

extension StackEntry {
  /// Whether it is the line that makes the next one of the module refuse.
  package var stopsWrongPassword: Bool {
    phase == .auth && moduleName == "pam_sallyport" && arguments.contains("wrong-password")
  }
}
