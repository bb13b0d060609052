/// What a finding means for a change of the stack, and for its logins.
struct Consequences: OptionSet {
  let rawValue: Int

  /// Nobody can want it: the stack is not written.
  static let unwanted = Consequences(rawValue: 1)
  /// A way around our line: the stack is written where there is no better one.
  static let wayAround = Consequences(rawValue: 2)
  /// A change that causes it in a service that includes the file is refused.
  static let harmsOthers = Consequences(rawValue: 4)
  /// Nobody at all can log in.
  static let keepsEverybodyOut = Consequences(rawValue: 8)
  /// Some successful login is not asked for a code.
  static let asksNotAll = Consequences(rawValue: 16)
}

extension StackFinding {
  var consequences: Consequences {
    switch self {
    case .nobodyPasses: [.unwanted, .harmsOthers, .keepsEverybodyOut]
    case .fault(let fault):
      fault.problem.isFatal ? [.unwanted, .harmsOthers, .keepsEverybodyOut] : []
    case .secondPrompt, .codeAlone, .jumpedOver, .askedTwice, .wrongPasswordEnrolls,
      .demandForbidden:
      [.unwanted, .harmsOthers]
    case .ignoreIsDenied(let phase, _): phase != .auth ? [.unwanted, .harmsOthers] : []
    case .tooComplex, .notAsked, .authNeverRuns, .neverReached, .notCounted:
      [.unwanted, .asksNotAll]
    case .skipped: [.wayAround, .asksNotAll]
    case .nothingToTake, .enrollWithoutLine, .enrollWithoutFirstFactor, .enrollWithFirstPass:
      .unwanted
    case .accountNotFirst(_, _, let isSkipped): isSkipped ? .unwanted : []
    case .moduleMissing, .unknownAlone, .jumpPastEnd, .wrongPasswordReaches, .sessionSkipped: []
    }
  }

  var keepsEverybodyOut: Bool { consequences.contains(.keepsEverybodyOut) }
}

extension StackAnalysis {
  /// The findings that have one of these consequences.
  func findings(with consequences: Consequences) -> [StackFinding] {
    findings.filter { !$0.consequences.isDisjoint(with: consequences) }
  }

  /// Whether every successful login has been asked for a code, as far as the stack decides it.
  package var asksEverybody: Bool { findings(with: .asksNotAll).isEmpty }
}
