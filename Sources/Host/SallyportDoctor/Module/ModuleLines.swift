package import PAMStack
import SallyportCore
import SallyportLogin

/// Our lines in the stacks of one service, in order.
package struct ModuleLines: Equatable {
  package var lines: [StackEntry] = []

  func of(_ phase: PAMPhase) -> [StackEntry] { lines.filter { $0.phase == phase } }

  var isInAuth: Bool { !of(.auth).isEmpty }
  /// Whether users who were not asked in the auth phase are asked or refused in the account phase.
  var demands: Bool { saysDemand && !isDemandIdle }
  var saysDemand: Bool { of(.account).contains { $0.has("demand") } }
  /// Whether a login can succeed without the line, or although it refuses.
  var isDemandIdle = false
  /// Whether nobody gets through the auth stack without a correct password.
  var needsPassword = false
  /// Whether a login may enroll, as the policy says.
  package var enrolls: Bool { of(.auth).contains { $0.has("enroll") } }
  /// Whether users are refused unless sshd has accepted their key.
  var isAfterKey: Bool { isInAuth && of(.auth).allSatisfy { $0.has("after-key") } }
  /// Whether a key and a code are enough for those who have a key.
  var takesKeys: Bool { of(.auth).contains(where: \.goesOnWithoutKey) }
  /// Whether unenrolled users are let in if the policy file does not set `enrollment`.
  var isVoluntary: Bool { of(.auth).contains { $0.has("nullok") } }
  /// Whether a code typed after the password in one field is accepted.
  var takesPassword: Bool {
    of(.auth).contains {
      $0.has("forward_pass") || $0.has("use_first_pass") || $0.has("try_first_pass")
    }
  }

  /// With an unknown argument, the policy is tightened.
  var hasUnknownWord: Bool { of(.auth).contains { $0.unknownWord != nil } }

  /// The value of `key=` on the auth line, or else on any line.
  package func value(of key: String) -> String? {
    (of(.auth) + lines).lazy.compactMap { $0.value(of: key) }.first
  }
}

extension StackEntry {
  /// The first argument that the module does not know.
  var unknownWord: String? { arguments.first(where: ModuleLines.isUnknown) }

  /// The argument by which the line refuses everybody; nil if there is none. A blank for a hyphen
  /// makes two words of one.
  var refusingWord: String? {
    if phase == .session { return nil }
    let unknown = arguments.filter(ModuleLines.isUnknown)
    let pairs = zip(unknown, unknown.dropFirst()).map { "\($0)-\($1)" }
    return (unknown + pairs).first { ModuleLines.meant(by: $0)?.isNarrowing == true }
  }

  func has(_ word: String) -> Bool { arguments.contains(word) }

  /// The value of the first `key=`.
  func value(of key: String) -> String? {
    let word = arguments.first { $0.hasPrefix("\(key)=") }
    return word.map { String($0.dropFirst(key.count + 1)) }
  }
}

extension ModuleLines {
  static func isUnknown(_ word: String) -> Bool {
    let isPath = ["store=/", "conf=/"].contains { word.hasPrefix($0) }
    return !isPath && !word.hasPrefix("prompt=") && ModuleWord(Array(word.utf8)) == nil
  }

  /// What an unknown argument was meant to be.
  static func meant(by word: String) -> ModuleWord? { ModuleWord(meantBy: Array(word.utf8)) }
}

extension Machine {
  /// What to tell of each line by which nobody gets in since a word of it is wrong.
  package var refusingLines: [String] {
    let lines = ServiceStack.ours(of: self).flatMap { ModuleLines(of: $0).lines }
    var texts: [String] = []
    for line in lines {
      guard let word = line.refusingWord, let meant = ModuleLines.meant(by: word) else {
        continue
      }
      let path = meant.hasValue ? "/PATH" : ""
      let text =
        "\(line.location.text) refuses everybody by the argument \"\(word)\": write "
        + "\(meant.name)\(path)"
      if !texts.contains(text) { texts.append(text) }
    }
    return texts.map { printable($0.utf8, limit: 300) }
  }
}
