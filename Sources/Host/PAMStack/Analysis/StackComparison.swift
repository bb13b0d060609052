/// Walks a stack with our lines and the same stack without them side by side. In both, the other
/// modules return the same values.
struct StackComparison {
  private struct Pair: Hashable {
    var with = StackWalk()
    var without = StackWalk()
    var jump: Jump?
  }

  /// The last jump of the walk with our lines that skipped one of them.
  struct Jump: Hashable {
    let entry: StackEntry
    let answer: PAMCode
  }

  private let stack: [StackEntry]
  private let bare: [StackEntry]
  /// The index in `stack` of each entry of `bare`, and the end of `stack`.
  private let places: [Int]
  private var seen: Set<Pair> = []
  /// Whether some return values let a login in with our lines that is refused without them. True
  /// also if there are too many paths to be sure.
  private(set) var admitsMore = false
  /// The jumps after which some return values refuse a login with our lines that succeeds without
  /// them.
  private(set) var keptOut: Set<Jump?> = []
  /// The jumps after which a login can succeed with our lines.
  private(set) var letIn: Set<Jump?> = []

  private static let most = 40_000

  /// `ours`: the values that our lines may return.
  init(_ stack: [StackEntry], ours: [PAMCode], missing: Set<String>) {
    self.stack = stack
    let kept = stack.indices.filter {
      !StackAnalysis.isOurs(stack[$0]) && !stack[$0].isOfGate
    }
    bare = kept.map { stack[$0] }
    places = kept + [stack.count]
    let assumption = Assumption(
      ours: ours, passwords: .rightOrWrong, callerMayBeRoot: true, missing: missing)
    var waiting = [Pair()]
    while let pair = waiting.popLast() {
      let at = min(pair.with.index, places[pair.without.index])
      if at < stack.count {
        waiting += next(pair, at, assumption)
      } else {
        compare(pair)
      }
      if seen.count > StackComparison.most {
        (admitsMore, keptOut) = (true, [])
        return
      }
    }
  }

  private mutating func compare(_ pair: Pair) {
    if pair.with.lets { letIn.insert(pair.jump) }
    if pair.with.lets, !pair.without.lets { admitsMore = true }
    if pair.without.lets, !pair.with.lets { keptOut.insert(pair.jump) }
  }

  /// Advances the walk that is behind, or both if they are at the same entry.
  private mutating func next(_ pair: Pair, _ at: Int, _ assumption: Assumption) -> [Pair] {
    assumption.answers(of: stack[at]).compactMap { answer in
      var next = pair
      if pair.with.index == at {
        next.with.step(stack, answer: answer)
        next.with.forgetWhichFailure()
        if case .jump = stack[at].controls[answer],
          stack[at + 1..<next.with.index].contains(where: {
            StackAnalysis.isOurs($0) || $0.isOfGate && $0.level == stack[at].level
          })
        {
          next.jump = Jump(entry: stack[at], answer: answer)
        }
      }
      if places[pair.without.index] == at {
        next.without.step(bare, answer: answer)
        next.without.forgetWhichFailure()
      }
      return seen.insert(next).inserted ? next : nil
    }
  }
}

extension StackWalk {
  /// Whether the application continues the login.
  fileprivate var lets: Bool { verdict == .success || verdict == .newPasswordRequired }
}

extension StackAnalysis {
  /// The changes that our lines make for a correct code, whatever the other modules return: logins
  /// that get in only with our lines, and logins that get in only without them.
  var differences: [StackFinding] {
    guard let line = line(.auth) else { return [] }
    let found = comparisons
    let isMore = found.contains { $0.admitsMore }
    let jumps = found.flatMap(\.keptOut).map { jump in
      StackFinding.jumpedOver(
        line.location, by: jump?.entry.location ?? line.location,
        module: jump?.entry.module ?? line.module)
    }
    return (isMore && !line.isAfterKey ? [.codeAlone(line.location)] : []) + jumps.prefix(1)
  }

  /// Lines after which a correct password is always refused, since their jump counts our line. Not
  /// reported if everybody is refused. Jumps of other modules may lead to a refusal on purpose.
  var passwordsJumpedOver: [StackFinding] {
    let jumps = PAMPhase.allCases.contains { stack[$0].jumpOverOurs != nil } ? comparisons : []
    return jumps.flatMap { $0.keptOut.subtracting($0.letIn) }.compactMap { jump in
      guard let jump, jump.answer == .success,
        ModuleKind(jump.entry) == .password || ModuleKind(jump.entry) == .factor,
        let line = line(jump.entry.phase), !findings.contains(.nobodyPasses(line.phase))
      else { return nil }
      return .jumpedOver(line.location, by: jump.entry.location, module: jump.entry.module)
    }
  }

  private var comparisons: [StackComparison] {
    let yes = [PAMCode.success, .ignore]
    let mayEnroll = line(.auth)?.arguments.contains("enroll") == true
    let demands = line(.account)?.arguments.contains("demand") == true
    let answers = [
      (PAMPhase.auth, yes), (.account, mayEnroll || demands ? yes : [.ignore]),
      (.session, [.ignore]),
    ]
    return answers.map { phase, ours in
      StackComparison(stack[phase], ours: ours, missing: missing)
    }
  }
}

extension StackFinding {
  var isCodeAlone: Bool { if case .codeAlone = self { true } else { false } }
}
