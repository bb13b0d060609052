package import OneTimePassword

/// What a policy file (sallyport.conf(5)) says about one login.
///
/// Each key has the value of the first rule that matches and sets it, or else of `[default]`, or
/// else the base value. If it is unknown whether a rule matches, the stricter of both values
/// applies. The text is read once and not stored, as a login needs it once.
package final class PolicyFile {
  /// The key of a line that is for the command alone. No login reads it: no mistake in its value or
  /// place locks anybody out.
  package static var withoutCode: StaticString { "without_code" }
  /// How the keys begin that are for sessions alone (`HelpdeskSettings`). No login reads them
  /// either.
  package static var helpdesk: StaticString { "helpdesk" }

  /// The first reason why the file cannot be used; if there is one, what its right lines say
  /// applies tightened, and for a line that cannot be read the strictest value of the key that it
  /// may name.
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
  /// Whether a line that cannot be read may be `verification`, or `local_services`.
  private var isVerifierLost = false
  private var isOriginLost = false
  /// What `language` is before anything is proven: of the first matching rule that names no user
  /// and no group, or else of `[default]`. A prompt that changed for members of a group would tell
  /// strangers who is in it.
  private var promptLanguage: Value = 0
  private var isPromptSettled = false
  /// The line of the first rule; all lines from there on belong to rules.
  private var rules = Int.max

  /// A number with its line, as number · 2²⁰ + line, so that the smaller one is the stricter one.
  /// Numbers are at most 10¹¹, lines 65,536.
  private typealias Value = UInt64
  typealias Values = InlineArray<22, UInt64>
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
    /// Whether a line that cannot be read may be one of its conditions.
    var isDamaged = false
    /// Whether a part of its lines may belong to another section, whose head is lost.
    var isSplit = false
    /// The keys of lines of which the value cannot be read, as bits.
    var doubts: UInt32 = 0
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
      // The next problem alone is wanted where some are skipped.
      while ignored == 0 || problem == nil, take(&lines) {}
    } catch {
      problem = error
    }
    close()
    if let presets { sharedBudget = SharedBudgetBox(shared.finish(presets)) }
    for index in 0..<PolicyKey.scalars {
      values[index] = stricter(index, values[index], bounds[index])
    }
  }

  /// Whether it cannot be read who verifies codes.
  package var lacksVerifier: Bool {
    problem != nil && (isVerifierLost || line(of: .verification) == 0)
  }

  /// `base` with the values of the file, tightened where there is a problem.
  package func policy(_ base: Policy) -> Policy {
    var policy = base
    for index in 0..<PolicyKey.scalars {
      guard let key = PolicyKey(rawValue: UInt8(truncatingIfNeeded: index)) else { continue }
      policy[key] = values[index] >> 20
    }
    if let isSSHD { policy.sshdServices = isSSHD ? [login.service] : [] }
    policy.localServices = isLocal ? [login.service] : []
    policy.promptLanguage = promptLanguage >> 20
    policy.isRefusedByRule = policy.enrollment == .refuse && line(of: .enrollment) > rules
    policy.shared = sharedBudget
    if problem != nil, let sharedBudget {
      var shared = sharedBudget.budget
      shared.include(SharedBudget(of: policy))
      policy.shared = SharedBudgetBox(shared)
    }
    if problem != nil { policy.tighten() }
    return policy
  }

  /// The line that sets a scalar key; 0 if it has the base value.
  package func line(of key: PolicyKey) -> Int {
    Int(key.isScalar ? values[Int(key.rawValue)] & 0xfffff : 0)
  }

  /// The same for what `language` is before anything is proven.
  package var lineOfPromptLanguage: Int { Int(promptLanguage & 0xfffff) }

  // MARK: lines

  private func take(_ lines: inout SettingsScanner) -> Bool {
    do throws(SettingsError) {
      guard let line = try lines.next() else { return false }
      switch line {
      case .section(let name): open(name, lines.number)
      case .setting(let key, let value): take(key, value, lines.number)
      }
    } catch {
      if error.line > ignored, problem == nil { problem = error }
      // It may be the head of a rule, whose keys then seem to be those of the section before.
      (section.isDamaged, section.isSplit) = (true, true)
      doubt(lines.line)
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
      section.isDamaged = true
    }
  }

  private func isRule(_ name: Range<Int>) -> Bool {
    let start = min(name.lowerBound + 5, name.upperBound)
    return text.holds("rule ", in: name.lowerBound..<start)
      && Label(text.bytes(in: start..<name.upperBound)) != nil
  }

  @inline(never) private func close() {
    if section.kind == .rule, section.keys >> UInt32(PolicyKey.matchService.rawValue) == 0 {
      complain(section.line, .missing("match_service, _user, _group or _origin"), 0..<0)
      section.isDamaged = true
    }
    let sharesAny =
      section.kind == .rule && section.keys & SharedSettings.keys != 0 && section.person != .no
    if !section.groups.isEmpty, section.match != .no || sharesAny {
      meet(.matchGroup, section.groups)
    }
    if sharesAny, section.person != .no { share() }
    if section.match == .no, !section.isSplit { return }
    settlePromptLanguage()
    for index in 0..<PolicyKey.scalars {
      let (bit, value) = (UInt32(1) << UInt32(index), section.values[index])
      guard settled & bit == 0, let key = PolicyKey(rawValue: UInt8(truncatingIfNeeded: index))
      else { continue }
      if section.doubts & bit != 0 {
        bounds[index] = stricter(index, bounds[index], key.strictest << 20)
      }
      guard value != PolicyFile.unset, applies(index, value) else { continue }
      if section.isDamaged || section.match == .unknown {
        if section.isDamaged || index < PolicyKey.tightened {
          bounds[index] = stricter(index, bounds[index], value)
        }
      } else if section.kind == .rule {
        values[index] = value
        settled |= bit
      }
    }
  }

  private func settlePromptLanguage() {
    let value = section.values[Int(PolicyKey.language.rawValue)]
    let people = SharedSettings.bit(.matchUser) | SharedSettings.bit(.matchGroup)
    guard value != PolicyFile.unset, !isPromptSettled, !section.isDamaged, section.match == .yes,
      section.keys & people == 0
    else { return }
    promptLanguage = value
    isPromptSettled = section.kind == .rule
  }

  /// Counts what the rule sets for the throttle, if it can match the person in another login.
  private func share() {
    // No rule has changed them yet.
    presets = presets ?? SharedSettings(values)
    let elsewhere = SharedSettings.bit(.matchService) | SharedSettings.bit(.matchOrigin)
    shared.take(
      SharedSettings(section.values), setting: section.keys & ~section.doubts,
      everywhere: !section.isDamaged && section.person == .yes && section.keys & elsewhere == 0)
  }

  /// The stricter of two values with their lines.
  @inline(never) private func stricter(_ index: Int, _ one: Value, _ other: Value) -> Value {
    guard one >> 20 != other >> 20, one != PolicyFile.unset, other != PolicyFile.unset,
      let key = PolicyKey(rawValue: UInt8(truncatingIfNeeded: index))
    else { return min(one, other) }
    return key.stricter(one >> 20, other >> 20) == one >> 20 ? one : other
  }

  // MARK: lines that cannot be read

  /// A line, or the part of it that should be a key.
  private func doubt(_ range: Range<Int>) {
    if ignored > 0 { return }
    if section.kind == .rule { section.isDamaged = true }
    let found = text.bytes(in: range)
    var number: UInt8 = 0
    while let key = PolicyKey(rawValue: number) {
      // factor_totp is one letter from factor_hotp, and not meant by it.
      if rest(of: found, after: key.name) != nil { return doubt(key) }
      number += 1
    }
    number = 0
    while let key = PolicyKey(rawValue: number) {
      if isNear(found, key.name, isStart: true) { doubt(key) }
      number += 1
    }
  }

  /// The value of a key is lost.
  private func doubt(_ key: PolicyKey) {
    if key.isMatch {
      section.isDamaged = true
    } else if key == .sshdServices {
      isSSHD = false
    } else if key == .localServices {
      (isLocal, isOriginLost) = (false, true)
    } else if key == .verification {
      isVerifierLost = true
    } else {
      section.doubts |= 1 << UInt32(key.rawValue)
    }
  }

  /// Of uid 0 the fleet is asked only where a rule names the user: a fleet that cannot be reached,
  /// or anybody who controls it, does not control the last way in.
  private func applies(_ key: Int, _ value: Value) -> Bool {
    key != Int(PolicyKey.verification.rawValue) || value >> 20 != 0 || !login.isSuperuser
      || section.keys & 1 << UInt32(PolicyKey.matchUser.rawValue) != 0
  }

  private func take(_ name: Range<Int>, _ range: Range<Int>, _ line: Int) {
    guard let key = PolicyKey(spelledIn: text, at: name) else {
      let start = name.prefix(PolicyFile.helpdesk.utf8CodeUnitCount)
      if text.holds(PolicyFile.withoutCode, in: name) || text.holds(PolicyFile.helpdesk, in: start)
      {
        return
      }
      complain(line, .unknownKey, name)
      return doubt(name)
    }
    let bit = UInt32(1) << UInt32(key.rawValue)
    if section.kind == .none || (section.kind == .rule && !key.isScalar && !key.isMatch) {
      complain(line, .missing("[default] above this key"), name)
      if !key.isScalar { return doubt(key) }
    }
    if section.kind == .preset, key.isMatch {
      section.isDamaged = true
      return complain(line, .missing("[rule NAME] above this key"), name)
    }
    let isAgain = section.keys & bit != 0
    section.keys |= bit
    if isAgain {
      complain(line, .duplicateKey, name)
      (section.isDamaged, section.isSplit) = (true, true)
      if !key.isScalar { return doubt(key) }
    }
    guard let number = number(key, range) else {
      complain(line, .value(key.name, wanted: key.wanted), range)
      return doubt(key)
    }
    if key.isScalar {
      set(Int(key.rawValue), number << 20 | UInt64(line), again: isAgain)
    } else {
      look(key, range)
    }
  }

  private func set(_ index: Int, _ value: Value, again isAgain: Bool) {
    section.values[index] = stricter(index, section.values[index], value)
    if section.kind != .rule, applies(index, value) {
      values[index] = isAgain || problem != nil ? stricter(index, values[index], value) : value
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
      if isOriginLost, key == .matchOrigin { section.isDamaged = true }
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
