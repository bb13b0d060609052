extension [StackEntry] {
  /// Where a jump by `count` modules from the entry at `index` leads: over the entries up to
  /// `last`. A substack counts as one. libpam fails where there are fewer.
  func jump(_ count: Int32, from index: Int) -> (last: Int, isPastEnd: Bool) {
    let level = self[index].level
    var (last, left) = (index, count)
    while left > 0, last + 1 < self.count, self[last + 1].level >= level {
      repeat { last += 1 } while last + 1 < self.count && self[last + 1].level > level
      left -= 1
    }
    return (last, left > 0)
  }

  /// What has a jump that counts a line of ours. Past the end one fails with our lines and without.
  var jumpOverOurs: StackEntry? {
    enumerated().first { index, entry in
      entry.jumps.contains { count in
        let (last, isPastEnd) = jump(count, from: index)
        return !isPastEnd
          && self[index...last].contains { StackAnalysis.isOurs($0) && $0.level == entry.level }
      }
    }?.element
  }
}

extension StackEntry {
  /// By how many modules its answers may jump.
  var jumps: Set<Int32> {
    guard kind == .module else { return [] }
    return Set(PAMCode.all.compactMap { if case .jump(let n) = controls[$0] { n } else { nil } })
  }

  /// Of our two words for it the later counts.
  var neverAsks: Bool {
    arguments.last { $0 == "use_first_pass" || $0 == "try_first_pass" } == "use_first_pass"
  }

  /// PAM_AUTHTOK may be set after it.
  private var mayLeavePassword: Bool {
    guard kind == .module else { return false }
    switch ModuleKind(self) {
    case .password, .factor, .unknown: return true
    case .ours: return arguments.contains("forward_pass")
    case .permit, .deny, .rootOnly, .quiet: return false
    }
  }

  /// Lines that take what an earlier one has asked for, where none has.
  static func starved(in stack: [StackEntry]) -> [StackEntry] {
    let first = stack.firstIndex { $0.mayLeavePassword && !$0.neverAsks } ?? stack.count
    return stack[..<first].filter { entry in
      entry.kind == .module && entry.neverAsks
        && (ModuleKind(entry) == .password || ModuleKind(entry) == .ours)
    }
  }
}

/// Why `remember` of sallyport.conf(5) does nothing in a service: a place is only remembered to
/// those who have been asked for something else.
package struct IdleRemember: Equatable, Sendable {
  package let location: StackLocation
  /// Password and code come together.
  package let isOneField: Bool

  package var text: String {
    isOneField
      ? "remember has no effect: password and code are typed in one field"
      : "remember has no effect: nothing asks for a password before the code"
  }
}

extension StackAnalysis {
  /// `demand` on a line that a login can do without.
  package var isDemandIdle: Bool {
    guard let line = line(.account), line.arguments.contains("demand") else { return false }
    return findings.contains { finding in
      if case .accountNotFirst(_, _, isSkipped: true) = finding { return true }
      return finding == .notCounted(line.location)
    }
  }

  /// Some get through the auth stack, but nobody without a password that is right.
  package var needsPassword: Bool {
    let ways = StackPaths(
      stack[.auth], under: Assumption(ours: [.success], passwords: .wrong, missing: missing))
    return !ways.areTooMany && !ways.contains { $0.verdict == .success }
      && !findings.contains(.nobodyPasses(.auth))
  }

  /// nil where `remember` counts.
  package var idleRemember: IdleRemember? {
    guard let line = line(.auth), !KnownServices.withoutAuth.contains(stack.service) else {
      return nil
    }
    if line.arguments.contains("forward_pass") {
      return IdleRemember(location: line.location, isOneField: true)
    }
    let ways = StackPaths(
      stack[.auth], under: Assumption(ours: [.ignore], passwords: .anything, missing: missing))
    let counts = ways.areTooMany || ways.contains { $0.ours && $0.asked }
    return counts ? nil : IdleRemember(location: line.location, isOneField: false)
  }
}
