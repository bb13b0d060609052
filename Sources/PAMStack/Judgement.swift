extension StackAnalysis {
  enum Strictness { case all, worst }

  /// What speaks against writing this stack. `.worst`: what nobody can want; `.all`: also a way
  /// around our line.
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
  /// Nobody gets in, whoever it is.
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
  /// What no change of a file may bring to a service that includes it.
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
