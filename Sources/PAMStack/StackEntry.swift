/// A line of a file.
package struct StackLocation: Hashable, Sendable {
  package let file: String
  /// Counted from 1; of a line that goes on, the first.
  package let line: Int

  package init(file: String, line: Int) { (self.file, self.line) = (file, line) }

  /// `/etc/pam.d/sshd:4`
  package var text: String { "\(file):\(line)" }
}

/// One entry of a stack, after all includes.
package struct StackEntry: Hashable, Sendable {
  /// What libpam does when it comes to the entry.
  package enum Kind: Hashable, Sendable {
    case module
    /// libpam could make nothing of the line, or not read what it includes: PAM_PERM_DENIED.
    case mustFail
    /// Where a substack begins; calls nothing.
    case substack
  }

  package let location: StackLocation
  /// The lines of the service's own file that it came by; those of `location` if that is the file.
  package let root: ClosedRange<Int>
  package let phase: PAMPhase
  package let kind: Kind
  /// How many substacks it stands in, 0..15.
  package let level: Int
  package let controls: PAMControls
  /// As it is written: a path, or a name in libpam's directory of modules. Empty where there is
  /// none.
  package let module: String
  package let arguments: [String]
  /// The line starts with `-`: a module that is missing is not logged.
  package let isSilent: Bool

  /// Our line, which refuses whomever sshd has not accepted a key of.
  var isAfterKey: Bool { arguments.contains("after-key") }

  /// Without the password it is of no use, or it changes nothing of who gets in.
  var goesWithPassword: Bool {
    switch ModuleKind(self) {
    case .password, .permit, .deny: true
    case .quiet: ["pam_env", "pam_cap"].contains(moduleName)
    case .ours, .factor, .rootOnly, .unknown: false
    }
  }

  /// `pam_unix` of `/lib/security/pam_unix.so`; for comparisons.
  package var moduleName: String {
    let file = module.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
    return String(file.hasSuffix(".so") ? file.dropLast(3) : file)
  }
}

/// What is wrong with a file of pam.d.
package enum StackProblem: Hashable, Sendable {
  case unknownType(String)
  case noType, noControl, noModule
  case badControl(String)
  /// The file that it names cannot be read, or nests too deep.
  case cannotInclude(String)
  case noFileNamed
  /// Inside itself, or without an end in sight: libpam opens files until it has none left.
  case endless(String)
  /// libpam gives up reading.
  case unreadable
  /// Longer than libpam 1.5.2 reads at once: it takes the rest for a line of its own.
  case overlong
  /// Neither the service nor `other` has a file.
  case noFile

  /// The whole service fails, in every phase.
  package var isFatal: Bool {
    switch self {
    case .unreadable, .endless, .noFile: true
    case .unknownType, .noType, .noControl, .noModule, .badControl, .cannotInclude, .noFileNamed,
      .overlong:
      false
    }
  }
}

/// A problem and where it is.
package struct StackFault: Hashable, Sendable {
  package let location: StackLocation
  package let problem: StackProblem
}

/// All that libpam knows of a service.
package struct ServiceStack: Sendable {
  package let service: String
  /// The service's own file; nil where `other` stands in for all of it.
  package let file: String?
  /// pam_start fails with PAM_ABORT: nobody gets in.
  package var isAborted = false
  package var faults: [StackFault] = []
  /// Every file that was read, once each.
  package var files: [String] = []
  var own: [PAMPhase: [StackEntry]] = [:]
  var other: [PAMPhase: [StackEntry]] = [:]

  /// What runs: the service's own entries, or where it has none those of `other`.
  package subscript(phase: PAMPhase) -> [StackEntry] {
    own[phase] ?? other[phase] ?? []
  }

  /// Whether `other` stands in for this phase.
  package func isOther(_ phase: PAMPhase) -> Bool { own[phase] == nil }
}
