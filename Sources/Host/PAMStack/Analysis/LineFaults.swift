extension [StackEntry] {
  /// The target of a jump over `count` modules from the entry at `index`: it skips the entries up
  /// to `last`. A substack counts as one module. If there are fewer, `isPastEnd` is set, and libpam
  /// fails.
  func jump(_ count: Int32, from index: Int) -> (last: Int, isPastEnd: Bool) {
    let level = self[index].level
    var (last, left) = (index, count)
    while left > 0, last + 1 < self.count, self[last + 1].level >= level {
      repeat { last += 1 } while last + 1 < self.count && self[last + 1].level > level
      left -= 1
    }
    return (last, left > 0)
  }

  /// The first entry with a jump that counts one of our lines, or the gate. Jumps past the end do
  /// not count here: they fail with our lines and without.
  var jumpOverOurs: StackEntry? {
    enumerated().first { index, entry in
      entry.jumps.contains { count in
        let (last, isPastEnd) = jump(count, from: index)
        return !isPastEnd
          && self[index...last].contains {
            (StackAnalysis.isOurs($0) || $0.isOfGate) && $0.level == entry.level
          }
      }
    }?.element
  }
}

extension StackEntry {
  /// The numbers of modules that its actions may skip.
  var jumps: Set<Int32> {
    guard kind == .module else { return [] }
    return Set(PAMCode.all.compactMap { if case .jump(let n) = controls[$0] { n } else { nil } })
  }

  /// If both words are given, the later one applies.
  var neverAsks: Bool {
    arguments.last { $0 == "use_first_pass" || $0 == "try_first_pass" } == "use_first_pass"
  }

  /// Whether PAM_AUTHTOK may be set after this entry.
  private var mayLeavePassword: Bool {
    guard kind == .module else { return false }
    switch ModuleKind(self) {
    case .password, .factor, .unknown: return true
    case .ours: return arguments.contains("forward_pass")
    case .afterKey, .permit, .deny, .rootOnly, .quiet: return false
    }
  }

  /// The entries that use the password of an earlier entry when no earlier entry asks for one.
  static func starved(in stack: [StackEntry]) -> [StackEntry] {
    let first = stack.firstIndex { $0.mayLeavePassword && !$0.neverAsks } ?? stack.count
    return stack[..<first].filter { entry in
      entry.kind == .module && entry.neverAsks
        && (ModuleKind(entry) == .password || ModuleKind(entry) == .ours)
    }
  }
}

/// Why `remember` of sallyport.conf(5) has no effect in a service: origins are remembered only for
/// users who were asked for another factor as well.
package struct IdleRemember: Equatable, Sendable {
  package let location: FileLocation
  /// Whether password and code are typed into one field.
  package let isOneField: Bool

  package var text: String {
    isOneField
      ? "remember has no effect: password and code are typed in one field"
      : "remember has no effect: nothing asks for a password before the code"
  }
}

extension StackAnalysis {
  /// Whether there is a `demand` that has no effect, since a login can succeed without its line.
  package var isDemandIdle: Bool {
    guard let line = line(.account), line.arguments.contains("demand") else { return false }
    return findings.contains { finding in
      if case .accountNotFirst(_, _, isSkipped: true) = finding { return true }
      return finding == .notCounted(line.location)
    }
  }

  /// Whether logins can succeed, but only with a correct password.
  package var needsPassword: Bool {
    let ways = StackPaths(
      stack[.auth], under: Assumption(ours: [.success], passwords: .wrong, missing: missing))
    return !ways.areTooMany && !ways.contains { $0.verdict == .success }
      && !findings.contains(.nobodyPasses(.auth))
  }

  /// Why `remember` has no effect; nil if it has one.
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
