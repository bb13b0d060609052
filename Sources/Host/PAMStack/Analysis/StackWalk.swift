/// The state of a walk through a stack, as libpam's `_pam_dispatch_aux` keeps it.
struct StackWalk: Hashable {
  enum Impression: Hashable { case undefined, positive, negative }

  struct StackState: Hashable {
    var impression = Impression.undefined
    var status = PAMCode.permissionDenied
  }

  private(set) var state = StackState()
  /// The state that `reset` restores, for each open level of substacks.
  private var saved = [StackState()]
  private var previousLevel = 0
  /// The index of the next entry; the number of entries at the end.
  private(set) var index = 0

  /// The return value that the application gets at the end.
  var verdict: PAMCode {
    // A success that no module has returned does not count.
    state.status == .success && state.impression != .positive
      ? .permissionDenied : state.status
  }

  /// Advances by one entry. `answer` is the return value of its module.
  mutating func step(_ stack: [StackEntry], answer: PAMCode) {
    let entry = stack[index]
    enter(entry.level)
    defer {
      previousLevel = entry.level
      index += 1
    }
    if entry.kind == .substack { return }
    let code = entry.kind == .mustFail ? PAMCode.permissionDenied : answer
    switch entry.controls[code] {
    case .ignore: break
    case .reset: state = saved[entry.level]
    case .ok: agree(code)
    case .done:
      agree(code)
      if state.impression == .positive { leave(entry.level, stack) }
    case .bad: object(code)
    case .die:
      object(code)
      leave(entry.level, stack)
    case .jump(let count): jump(count, stack)
    case .invalid: fail()
    }
  }

  private mutating func enter(_ level: Int) {
    saved = Array(saved.prefix(max(level, previousLevel) + 1))
    while saved.count <= level { saved.append(state) }
    if previousLevel < level { saved[level] = state }
    // Deeper levels are overwritten before they are read. Without them, equal walks compare equal.
    saved = Array(saved.prefix(level + 1))
  }

  private mutating func agree(_ code: PAMCode) {
    switch state.impression {
    case .undefined: state = StackState(impression: .positive, status: code)
    case .positive: if state.status == .success { state.status = code }
    case .negative: break
    }
  }

  private mutating func object(_ code: PAMCode) {
    if state.impression == .negative { return }
    state = StackState(
      impression: .negative, status: code == .ignore ? .permissionDenied : code)
  }

  private mutating func fail() {
    state = StackState(impression: .negative, status: .permissionDenied)
  }

  /// Skips to the end of this level, with the levels inside it.
  private mutating func leave(_ level: Int, _ stack: [StackEntry]) {
    while index + 1 < stack.count, stack[index + 1].level >= level { index += 1 }
  }

  private mutating func jump(_ count: Int32, _ stack: [StackEntry]) {
    let (last, isPastEnd) = stack.jump(count, from: index)
    index = last
    if isPastEnd { fail() }
  }

  /// Makes all failures the same, so that fewer walks differ.
  mutating func forgetWhichFailure() {
    state.status = StackWalk.kind(state.status)
    for level in saved.indices { saved[level].status = StackWalk.kind(saved[level].status) }
  }

  private static func kind(_ code: PAMCode) -> PAMCode {
    code == .success || code == .newPasswordRequired ? code : .permissionDenied
  }
}

extension ServiceStack {
  /// The value that libpam returns to the application if each module returns what `answer` says.
  /// `answer` is called only for entries of kind `.module`, in the order in which they run.
  package func verdict(_ phase: PAMPhase, _ answer: (StackEntry) -> PAMCode) -> PAMCode {
    if isAborted { return .abort }
    let entries = self[phase]
    var walk = StackWalk()
    while walk.index < entries.count {
      let entry = entries[walk.index]
      let code = entry.kind == .module ? answer(entry) : .permissionDenied
      if code == .incomplete, entry.kind == .module { return .incomplete }
      walk.step(entries, answer: code)
    }
    return walk.verdict
  }
}
