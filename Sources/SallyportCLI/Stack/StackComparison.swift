/// A stack with lines of ours beside the same stack without them, walked together: the other
/// modules give both the same answers.
struct StackComparison {
  private struct Pair: Hashable {
    var with = StackWalk()
    var without = StackWalk()
  }

  private let stack: [StackEntry]
  private let bare: [StackEntry]
  /// Where the entries of `bare` stand in `stack`, and its end.
  private let places: [Int]
  private var seen: Set<Pair> = []
  /// Some answers let in with our lines whom the stack kept out without them. True also where there
  /// are too many ways to be sure.
  private(set) var admitsMore = false

  private static let most = 40_000

  /// `ours`: what our lines may answer.
  init(_ stack: [StackEntry], ours: [PAMCode], missing: Set<String>) {
    self.stack = stack
    let kept = stack.indices.filter { !StackAnalysis.isOurs(stack[$0]) }
    bare = kept.map { stack[$0] }
    places = kept + [stack.count]
    let assumption = Assumption(
      ours: ours, passwords: .rightOrWrong, callerMayBeRoot: true, missing: missing)
    var waiting = [Pair()]
    while let pair = waiting.popLast(), !admitsMore {
      let at = min(pair.with.index, places[pair.without.index])
      if at >= stack.count {
        admitsMore = pair.with.lets && !pair.without.lets
      } else {
        waiting += next(pair, at, assumption)
        if seen.count > StackComparison.most { admitsMore = true }
      }
    }
  }

  /// The walk that is behind goes on; both, where they stand at the same entry.
  private mutating func next(_ pair: Pair, _ at: Int, _ assumption: Assumption) -> [Pair] {
    assumption.answers(of: stack[at]).compactMap { answer in
      var next = pair
      if pair.with.index == at {
        next.with.step(stack, answer: answer)
        next.with.forgetWhichFailure()
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
  /// The application goes on.
  fileprivate var lets: Bool { verdict == .success || verdict == .newPasswordRequired }
}

extension StackAnalysis {
  /// Set where logins get in that the stacks without our lines refuse, whatever the other modules
  /// answer.
  var admittance: StackFinding? {
    guard let line = line(.auth) else { return nil }
    let yes = [PAMCode.success, .ignore]
    let mayEnroll = line.arguments.contains("enroll")
    let demands = self.line(.account)?.arguments.contains("demand") == true
    let answers = [
      (PAMPhase.auth, yes), (.account, mayEnroll || demands ? yes : [.ignore]),
      (.session, [.ignore]),
    ]
    let isMore = answers.contains { phase, ours in
      StackComparison(stack[phase], ours: ours, missing: missing).admitsMore
    }
    return isMore ? .codeAlone(line.place) : nil
  }
}

extension StackFinding {
  var isCodeAlone: Bool { if case .codeAlone = self { true } else { false } }
}
