/// What sshd asks for before it lets a user in.
package enum SSHMethod: String, CaseIterable, Sendable {
  case passwordCode = "password+code"
  case keyCode = "key+code"
  case keyPasswordCode = "key+password+code"
  /// sshd's settings are not changed.
  case none

  /// Whether the PAM lines ask for the password as well as the code.
  var needsPassword: Bool { self != .keyCode }

  /// The settings to write before the PAM lines, so that nobody is locked out or let in too early
  /// meanwhile.
  package func stages(before changesPAM: Bool, _ passing: SSHStage.Passing) -> [SSHStage] {
    let last = SSHStage(method: self)
    switch self {
    case .none: return []
    case .passwordCode: return [last]
    case .keyPasswordCode: return [SSHStage(method: self, passing: passing), last]
    case .keyCode: return [changesPAM ? SSHStage(method: self, passing: passing) : last]
    }
  }

  /// The settings to write after the PAM lines.
  package func stages(after changesPAM: Bool) -> [SSHStage] {
    self == .keyCode && changesPAM ? [SSHStage(method: self)] : []
  }
}

/// One of the contents of our file in sshd's configuration.
package struct SSHStage: Equatable, Sendable {
  /// What sshd accepts on the way to a method with a key. It offers other methods then than before,
  /// which shows that it has read the file.
  package enum Passing: CaseIterable, Sendable {
    /// A key alone, as before, so that users with a key are not locked out before the PAM lines are
    /// written. Only if a key alone is enough for everybody now.
    case keyAlone
    /// A key and what the PAM lines ask for, in either order.
    case eitherOrder
  }

  package let method: SSHMethod
  /// nil for the final settings.
  package let passing: Passing?

  /// sshd uses the first value of a setting, and reads these files in the order of their names.
  package static let path = "/etc/ssh/sshd_config.d/00-sallyport.conf"

  /// Each keyword with its value.
  package var settings: [SSHSetting] {
    let lists =
      switch (method, passing) {
      case (.passwordCode, _): "keyboard-interactive"
      case (_, .keyAlone): "publickey keyboard-interactive,publickey"
      case (_, .eitherOrder): "publickey,keyboard-interactive keyboard-interactive,publickey"
      case (_, nil): "publickey,keyboard-interactive"
      }
    let key = [SSHSetting("PubkeyAuthentication", "yes")]
    return [SSHSetting("UsePAM", "yes")] + (method == .passwordCode ? [] : key) + [
      SSHSetting("KbdInteractiveAuthentication", "yes"),
      SSHSetting("PasswordAuthentication", "no"),
      SSHSetting("AuthenticationMethods", lists),
    ]
  }

  /// The settings that must be in effect. If AuthenticationMethods is, the method `password` does
  /// not matter.
  var needed: [SSHSetting] { settings.filter { $0.keyword != "PasswordAuthentication" } }

  /// The file's text, which identifies the stage: a file with any other text is not ours.
  package var text: String {
    let step = passing == nil ? "" : ", first step"
    return """
      # Written by sallyport pam enable sshd --sshd \(method.rawValue)\(step)
      # Undo: sallyport pam disable sshd
      \(settings.map(\.text).joined(separator: "\n"))

      """
  }

  /// The stage with this text; nil if it is not ours.
  package init?(text: String) {
    let all = SSHMethod.allCases.filter { $0 != .none }.flatMap { method in
      [SSHStage(method: method)]
        + Passing.allCases.map { SSHStage(method: method, passing: $0) }
    }
    guard let stage = all.first(where: { $0.text == text }) else { return nil }
    self = stage
  }

  package init(method: SSHMethod, passing: Passing? = nil) {
    (self.method, self.passing) = (method, passing)
  }
}

/// A keyword of sshd_config(5) and its value.
package struct SSHSetting: Equatable, Sendable {
  let keyword, value: String

  init(_ keyword: String, _ value: String) { (self.keyword, self.value) = (keyword, value) }

  /// The line in a configuration file.
  package var text: String { "\(keyword) \(value)" }
}
