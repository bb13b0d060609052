import PAMStack

/// Our lines in the stacks of one service, in their order.
package struct ModuleLines: Equatable {
  /// One line, with the words behind the module.
  package struct Line: Equatable {
    let phase: PAMPhase
    /// The module's path as it is written.
    let path: String
    let words: [String]
    let location: FileLocation

    private static let words: Set = [
      "nullok", "use_first_pass", "try_first_pass", "forward_pass", "echo", "nodelay", "debug",
      "enroll", "demand", "after-key",
    ]

    /// The first word that means nothing to the module.
    var unknownWord: String? { words.first(where: Line.isUnknown) }

    static func isUnknown(_ word: String) -> Bool {
      let isPath = ["store=/", "conf=/"].contains { word.hasPrefix($0) }
      return !words.contains(word) && !isPath && !word.hasPrefix("prompt=")
    }

    func has(_ word: String) -> Bool { words.contains(word) }
  }

  package var lines: [Line] = []

  func of(_ phase: PAMPhase) -> [Line] { lines.filter { $0.phase == phase } }

  var isInAuth: Bool { !of(.auth).isEmpty }
  /// Whoever was not asked in the auth phase is asked in the account phase, or refused.
  var demands: Bool { saysDemand && !isDemandIdle }
  var saysDemand: Bool { of(.account).contains { $0.has("demand") } }
  /// A login can succeed without that line, or against it.
  var isDemandIdle = false
  /// Nobody gets through the auth stack without a password that is right.
  var needsPassword = false
  var enrolls: Bool { of(.auth).contains { $0.has("enroll") } }
  /// Nobody passes whom sshd has not accepted a key of.
  var isAfterKey: Bool { of(.auth).contains { $0.has("after-key") } }
  /// The unenrolled pass where the policy file says nothing.
  var isVoluntary: Bool { of(.auth).contains { $0.has("nullok") } }
  /// A code behind the password in one field is taken.
  var takesPassword: Bool {
    of(.auth).contains {
      $0.has("forward_pass") || $0.has("use_first_pass") || $0.has("try_first_pass")
    }
  }

  /// Then the strict policy applies.
  var hasUnknownWord: Bool { of(.auth).contains { $0.unknownWord != nil } }

  /// The value of `key=` on the auth line, else on any.
  package func value(of key: String) -> String? {
    for line in of(.auth) + lines {
      if let word = line.words.first(where: { $0.hasPrefix("\(key)=") }) {
        return String(word.dropFirst(key.count + 1))
      }
    }
    return nil
  }
}
