/// The return values that modules are assumed to give while every path is walked. A module about
/// which nothing is known may return any value.
struct Assumption {
  enum Passwords {
    case right, wrong, anything
    /// Every module that checks something, or may, succeeds or fails, or returns PAM_IGNORE if it
    /// may.
    case rightOrWrong
  }

  var ours: [PAMCode]
  var passwords = Passwords.right
  /// Whether fingerprints, smart cards and the like fail too.
  var factorsFail = false
  /// Whether unknown modules fail too, since each may check a password.
  var unknownsFail = false
  /// Whether sshd has accepted a key.
  var hasKey = false
  /// Whether pam_rootok may succeed.
  var callerMayBeRoot = false
  /// Modules that cannot be loaded and so return PAM_MODULE_UNKNOWN.
  var missing: Set<String> = []
  /// Lines that use a password that no earlier line has asked for.
  var starved: Set<StackEntry> = []

  /// The return values to try: one of each kind that makes a difference to the walk.
  func answers(of entry: StackEntry) -> [PAMCode] {
    if entry.kind != .module { return [.permissionDenied] }
    if missing.contains(entry.module) { return [.moduleUnknown] }
    if starved.contains(entry) { return [.authenticationError] }
    switch ModuleKind(entry) {
    case .ours: return ours
    case .afterKey: return hasKey ? ours : [.permissionDenied]
    case .permit: return [.success]
    case .rootOnly where callerMayBeRoot: return any(of: entry)
    case .deny, .rootOnly: return [entry.phase == .session ? .sessionError : .authenticationError]
    case .password: return entry.phase == .auth ? passwordAnswers(entry) : checked(entry)
    case .factor: return factorsFail ? failures(of: entry) : checked(entry)
    case .unknown: return unknownsFail ? failures(of: entry) : checked(entry)
    case .quiet: return any(of: entry)
    }
  }

  private func passwordAnswers(_ entry: StackEntry) -> [PAMCode] {
    switch passwords {
    case .right: [.success]
    case .wrong: failures(of: entry)
    case .anything: any(of: entry)
    case .rightOrWrong: checked(entry)
    }
  }

  private func checked(_ entry: StackEntry) -> [PAMCode] {
    passwords == .rightOrWrong ? yesOrNo(entry) : any(of: entry)
  }

  private func yesOrNo(_ entry: StackEntry) -> [PAMCode] {
    differing(PAMCode.all.filter { $0 != .ignore || ModuleKind.mayIgnore(entry) }, entry)
  }

  private func any(of entry: StackEntry) -> [PAMCode] { differing(PAMCode.all, entry) }

  /// Includes PAM_IGNORE only if an argument of the line asks for it.
  private func failures(of entry: StackEntry) -> [PAMCode] {
    let codes = PAMCode.all.filter { code in
      code != .success && code != .newPasswordRequired
        && (code != .ignore || ModuleKind.isToldToIgnore(entry))
    }
    return differing(codes, entry)
  }

  private struct Sort: Hashable {
    let action: PAMAction
    let isSuccess: Bool
    let isNewPassword: Bool
  }

  private func differing(_ codes: [PAMCode], _ entry: StackEntry) -> [PAMCode] {
    var seen: Set<Sort> = []
    return codes.filter { code in
      code != .incomplete
        && seen.insert(
          Sort(
            action: entry.controls[code], isSuccess: code == .success,
            isNewPassword: code == .newPasswordRequired)
        ).inserted
    }
  }
}

/// One path through a stack.
struct StackPath {
  /// What the module of an entry returned.
  struct Step {
    /// The index in the stack.
    let index: Int
    let entry: StackEntry
    let answer: PAMCode
  }

  /// The modules that ran, in order.
  let steps: [Step]
  let verdict: PAMCode
  /// Whether our line ran, and was free to ask. `asked`: whether a module that may have asked for a
  /// password ran before it.
  let ours: Bool
  let asked: Bool
}

/// Every path through a stack under an assumption. Paths that reach the same state are merged.
struct StackPaths {
  private struct Node: Hashable {
    var walk = StackWalk()
    var ours = false
    var asked = false
    /// Whether the next of our lines refuses without asking.
    var isStopped = false
  }

  private let stack: [StackEntry]
  private var came: [Node: (from: Node, answer: PAMCode)] = [:]
  private var ends: [Node] = []
  /// Whether there are more than any real configuration has; then nothing is known.
  private(set) var areTooMany = false

  private static let most = 20_000

  init(_ stack: [StackEntry], under assumption: Assumption) {
    self.stack = stack
    guard !stack.isEmpty else { return }
    var waiting = [Node()]
    while let node = waiting.popLast() {
      for next in steps(from: node, assumption) {
        if next.walk.index >= stack.count { ends.append(next) } else { waiting.append(next) }
      }
      if came.count > StackPaths.most {
        areTooMany = true
        return
      }
    }
  }

  /// The nodes that no other path has reached.
  private mutating func steps(from node: Node, _ assumption: Assumption) -> [Node] {
    let entry = stack[node.walk.index]
    let kind = entry.kind == .module ? ModuleKind(entry) : .quiet
    let refuses = node.isStopped && (kind == .ours || kind == .afterKey)
    let answers = refuses ? [.authenticationError] : assumption.answers(of: entry)
    return answers.compactMap { answer in
      var next = node
      next.isStopped = node.isStopped && !refuses || entry.stopsWrongPassword
      next.walk.step(stack, answer: answer)
      next.walk.forgetWhichFailure()
      let asks = kind == .ours || kind == .afterKey && assumption.hasKey
      if asks, !refuses { next.ours = true }
      if kind.mayAskForPassword, !next.ours { next.asked = true }
      if came[next] != nil { return nil }
      came[next] = (node, answer)
      return next
    }
  }

  /// A matching path; nil if there is none.
  func first(where matches: (StackPath) -> Bool) -> StackPath? {
    for end in ends {
      let path = path(to: end)
      if matches(path) { return path }
    }
    return nil
  }

  func contains(where matches: (StackPath) -> Bool) -> Bool { first(where: matches) != nil }

  private func path(to end: Node) -> StackPath {
    var steps: [StackPath.Step] = []
    var node = end
    while let (from, answer) = came[node] {
      let index = from.walk.index
      if stack[index].kind == .module {
        steps.append(StackPath.Step(index: index, entry: stack[index], answer: answer))
      }
      node = from
    }
    return StackPath(
      steps: steps.reversed(), verdict: end.walk.verdict, ours: end.ours, asked: end.asked)
  }
}
