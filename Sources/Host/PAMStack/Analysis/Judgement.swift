extension StackAnalysis {
  enum Strictness { case all, worst }

  /// The findings for which this stack is not written. `.worst`: those that nobody can want;
  /// `.all`: also a way around our line.
  func refusals(of strictness: Strictness) -> [StackFinding] {
    findings.filter { finding in
      switch finding {
      case .skipped: strictness == .all
      case .nobodyPasses, .tooComplex, .notAsked, .authNeverRuns, .secondPrompt, .neverReached,
        .notCounted, .codeAlone, .nothingToTake, .jumpedOver, .askedTwice, .enrollWithoutLine,
        .enrollWithoutFirstFactor,
        .wrongPasswordEnrolls, .enrollWithFirstPass, .demandForbidden:
        true
      case .ignoreIsDenied(let phase, _): phase != .auth
      case .accountNotFirst(_, _, let isSkipped): isSkipped
      case .fault(let fault): fault.problem.isFatal
      case .moduleMissing, .unknownAlone, .jumpPastEnd, .wrongPasswordReaches, .sessionSkipped:
        false
      }
    }
  }
}

extension StackFinding {
  /// Whether nobody at all can log in.
  var keepsEverybodyOut: Bool {
    switch self {
    case .nobodyPasses: true
    case .fault(let fault): fault.problem.isFatal
    case .moduleMissing, .tooComplex, .notAsked, .authNeverRuns, .secondPrompt, .neverReached,
      .skipped, .notCounted, .codeAlone, .unknownAlone, .nothingToTake, .jumpPastEnd, .jumpedOver,
      .askedTwice, .wrongPasswordReaches, .ignoreIsDenied,
      .enrollWithoutLine, .accountNotFirst,
      .sessionSkipped, .enrollWithoutFirstFactor, .wrongPasswordEnrolls, .enrollWithFirstPass,
      .demandForbidden:
      false
    }
  }
}

extension StackFinding {
  /// Whether a change is refused if it causes this in a service that includes the file.
  var harmsOthers: Bool {
    switch self {
    case .nobodyPasses, .secondPrompt, .codeAlone, .jumpedOver, .askedTwice, .wrongPasswordEnrolls,
      .demandForbidden:
      true
    case .ignoreIsDenied(let phase, _): phase != .auth
    case .fault(let fault): fault.problem.isFatal
    case .moduleMissing, .tooComplex, .notAsked, .authNeverRuns, .neverReached, .skipped,
      .notCounted, .unknownAlone, .nothingToTake, .jumpPastEnd, .wrongPasswordReaches,
      .enrollWithoutLine, .accountNotFirst, .sessionSkipped,
      .enrollWithoutFirstFactor, .enrollWithFirstPass:
      false
    }
  }
}
