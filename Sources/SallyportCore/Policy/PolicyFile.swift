package import OneTimePassword

/// What a policy file (sallyport.conf(5)) says about one login.
///
/// Each key has the value of the first rule that matches and sets it, or else of `[default]`, or
/// else the base value. If it is unknown whether a rule matches, the stricter of both values
/// applies. The text is read once and not stored, as a login needs it once.
package final class PolicyFile {
  /// The first reason why the file cannot be used; if there is one, nothing in it applies.
  package private(set) var problem: SettingsError?
  /// Whether the login is local to this machine.
  package private(set) var isLocal: Bool
  /// Indexed by the number of a scalar key.
  private var values = Values(repeating: PolicyFile.unset)
  /// Whether the login's service is one of `sshd_services`; nil if the file does not set that key.
  private var isSSHD: Bool?

  let login: PolicyRequest
  let text: Secret
  private let ignored: Int
  /// The smallest values in rules that may match.
  private var bounds = Values(repeating: PolicyFile.unset)
  /// The keys that a matching rule has set, as bits.
  private var settled: UInt32 = 0
  private var section = Section()
  /// What `[default]` says of what is shared; nil if no rule says anything of that.
  private var presets: SharedSettings?
  private var shared = SharedSections()
  private var sharedBudget: SharedBudgetBox?
  /// The line of the first rule; all lines from there on belong to rules.
  private var rules = Int.max

  /// A number with its line, as number · 2²⁰ + line, so that the smaller one is the stricter one.
  /// Numbers are at most 10¹¹, lines 65,536.
  private typealias Value = UInt64
  typealias Values = InlineArray<18, UInt64>
  private static var unset: UInt64 { UInt64.max }

  private struct Section {
    enum Kind { case none, preset, rule }
    var kind = Kind.none
    var line = 0
    /// The keys in the section, as bits.
    var keys: UInt32 = 0
    var match = Tristate.yes
    /// Whether it matches the person in some login.
    var person = Tristate.yes
    /// The value of `match_group`: looked up at the end, where it makes a difference.
    var groups = 0..<0
    var values = Values(repeating: PolicyFile.unset)
  }

  /// Any bytes give values that keep all rules, or a problem. Problems up to the line `ignored` are
  /// skipped, to find the next one.
  package init(_ text: Secret, base: Policy, _ login: PolicyRequest, ignoringUpTo ignored: Int = 0)
  {
    (self.text, self.login, self.ignored) = (text, login, ignored)
    isLocal = !login.isRemote && base.isLocal(service: login.service)
    for index in 0..<PolicyKey.scalars {
      guard let key = PolicyKey(rawValue: UInt8(truncatingIfNeeded: index)) else { continue }
      values[index] = base[key] << 20
    }
    do throws(SettingsError) {
      var lines = try SettingsScanner(text)
      while problem == nil, take(&lines) {}
    } catch {
      problem = error
    }
    close()
    if let presets { sharedBudget = SharedBudgetBox(shared.finish(presets)) }
    for index in 0..<PolicyKey.scalars { values[index] = min(values[index], bounds[index]) }
  }

  /// `base` with the values of the file.
  package func policy(_ base: Policy) -> Policy {
    var policy = base
    for index in 0..<PolicyKey.scalars {
      guard let key = PolicyKey(rawValue: UInt8(truncatingIfNeeded: index)) else { continue }
      policy[key] = values[index] >> 20
    }
    if let isSSHD { policy.sshdServices = isSSHD ? [login.service] : [] }
    policy.isRefusedByRule = policy.enrollment == .refuse && line(of: .enrollment) > rules
    policy.shared = sharedBudget
    return policy
  }

  /// The line that sets a scalar key; 0 if it has the base value.
  package func line(of key: PolicyKey) -> Int {
    Int(key.isScalar ? values[Int(key.rawValue)] & 0xfffff : 0)
  }

  // MARK: lines

  private func take(_ lines: inout SettingsScanner) -> Bool {
    do throws(SettingsError) {
      guard let line = try lines.next() else { return false }
      switch line {
      case .section(let name): open(name, lines.number)
      case .setting(let key, let value): take(key, value, lines.number)
      }
    } catch {
      if error.line > ignored { problem = error }
    }
    return true
  }

  @inline(never)
  private func complain(
    _ line: Int, _ problem: SettingsError.Problem, _ found: Range<Int>
  ) {
    guard line > ignored, self.problem == nil else { return }
    self.problem = SettingsError(line: line, problem, found: text.bytes(in: found))
  }

  private func open(_ name: Range<Int>, _ line: Int) {
    close()
    let before = section.kind
    section = Section(kind: .rule, line: line)
    rules = min(rules, line)
    if text.holds("default", in: name) {
      section.kind = .preset
      rules = Int.max
      if before != .none { complain(line, .missing("[default] above all rules"), name) }
    } else if !isRule(name) {
      complain(line, .unknownSection, name)
    }
  }

  private func isRule(_ name: Range<Int>) -> Bool {
    let start = min(name.lowerBound + 5, name.upperBound)
    return text.holds("rule ", in: name.lowerBound..<start)
      && Label(text.bytes(in: start..<name.upperBound)) != nil
  }

  @inline(never) private func close() {
    guard section.kind == .rule else { return }
    if section.keys >> UInt32(PolicyKey.matchService.rawValue) == 0 {
      complain(section.line, .missing("match_service, _user, _group or _origin"), 0..<0)
    }
    let sharesAny = section.keys & SharedSettings.keys != 0 && section.person != .no
    if !section.groups.isEmpty, section.match != .no || sharesAny {
      meet(.matchGroup, section.groups)
    }
    if sharesAny, section.person != .no { share() }
    for index in 0..<PolicyKey.scalars {
      let (bit, value) = (UInt32(1) << UInt32(index), section.values[index])
      guard section.keys & bit != 0, settled & bit == 0, applies(index, value) else { continue }
      if section.match == .yes {
        values[index] = value
        settled |= bit
      } else if section.match == .unknown, index < PolicyKey.tightened {
        bounds[index] = min(bounds[index], value)
      }
    }
  }

  /// Counts what the rule sets for the throttle, if it can match the person in another login.
  private func share() {
    // No rule has changed them yet.
    presets = presets ?? SharedSettings(values)
    let elsewhere = SharedSettings.bit(.matchService) | SharedSettings.bit(.matchOrigin)
    shared.take(
      SharedSettings(section.values), setting: section.keys,
      everywhere: section.person == .yes && section.keys & elsewhere == 0)
  }

  /// Of uid 0 the fleet is asked only where a rule names the user: a fleet that cannot be reached,
  /// or whoever rules it, does not rule the last way in.
  private func applies(_ key: Int, _ value: Value) -> Bool {
    key != Int(PolicyKey.verification.rawValue) || value >> 20 != 0 || !login.isSuperuser
      || section.keys & 1 << UInt32(PolicyKey.matchUser.rawValue) != 0
  }

  private func take(_ name: Range<Int>, _ range: Range<Int>, _ line: Int) {
    guard let key = PolicyKey(spelledIn: text, at: name) else {
      return complain(line, .unknownKey, name)
    }
    let bit = UInt32(1) << UInt32(key.rawValue)
    if section.kind == .none || (section.kind == .rule && !key.isScalar && !key.isMatch) {
      return complain(line, .missing("[default] above this key"), name)
    }
    if section.kind == .preset, key.isMatch {
      return complain(line, .missing("[rule NAME] above this key"), name)
    }
    if section.keys & bit != 0 { return complain(line, .duplicateKey, name) }
    section.keys |= bit
    guard let number = number(key, range) else {
      return complain(line, .value(key.name, wanted: key.wanted), range)
    }
    if key.isScalar {
      let value = number << 20 | UInt64(line)
      if section.kind == .rule {
        section.values[Int(key.rawValue)] = value
      } else if applies(Int(key.rawValue), value) {
        values[Int(key.rawValue)] = value
      }
    } else {
      look(key, range)
    }
  }

  private func look(_ key: PolicyKey, _ range: Range<Int>) {
    if !key.isMatch {
      var words = Words(text, range)
      let isNamed = login.meets(.matchService, &words, isLocal: false) == .yes
      if key == .sshdServices { isSSHD = isNamed } else { isLocal = !login.isRemote && isNamed }
    } else if key == .matchGroup {
      section.groups = range
    } else {
      meet(key, range)
    }
  }

  @inline(never)
  private func meet(_ key: PolicyKey, _ range: Range<Int>) {
    var words = Words(text, range)
    let result = login.meets(key, &words, isLocal: isLocal)
    if result.rawValue < section.match.rawValue { section.match = result }
    if key == .matchUser || key == .matchGroup, result.rawValue < section.person.rawValue {
      section.person = result
    }
  }
}
