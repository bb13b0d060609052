/// What sshd asks for before it lets somebody in.
package enum SSHMethod: String, CaseIterable, Sendable {
  case passwordCode = "password+code"
  case keyCode = "key+code"
  case keyPasswordCode = "key+password+code"
  /// sshd's settings stay as they are.
  case none

  /// The password is asked for by PAM's lines, besides the code.
  var needsPassword: Bool { self != .keyCode }

  /// What is set before PAM's lines are written, and how it lets in on the way.
  package func stages(before changesPAM: Bool, _ passing: SSHStage.Passing) -> [SSHStage] {
    let last = SSHStage(method: self)
    switch self {
    case .none: return []
    case .passwordCode: return [last]
    case .keyPasswordCode: return [SSHStage(method: self, passing: passing), last]
    case .keyCode: return [changesPAM ? SSHStage(method: self, passing: passing) : last]
    }
  }

  /// And after they were written.
  package func stages(after changesPAM: Bool) -> [SSHStage] {
    self == .keyCode && changesPAM ? [SSHStage(method: self)] : []
  }
}

/// One content of our file among sshd's settings.
package struct SSHStage: Equatable, Sendable {
  /// On the way to a method with a key, sshd offers other methods than it did, which shows that it
  /// has read the file.
  package enum Passing: CaseIterable, Sendable {
    /// Whoever has a key gets in by it alone, as before: nobody with a key is kept out while PAM's
    /// lines ask for something else still. Only where a key alone is enough for everybody.
    case keyAlone
    /// A key and what PAM's lines ask for, in either order.
    case eitherOrder
  }

  package let method: SSHMethod
  /// nil: the way is at its end.
  package let passing: Passing?

  /// The file; sshd takes the first value of a setting, and reads the files by their names.
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

  /// Those that have to be in effect. Where AuthenticationMethods is, it does not matter whether
  /// there is a method `password`.
  var needed: [SSHSetting] { settings.filter { $0.keyword != "PasswordAuthentication" } }

  /// The file's text, which tells what it is of: a file with another one is somebody else's.
  package var text: String {
    let step = passing == nil ? "" : ", first step"
    return """
      # Written by sallyport pam enable sshd --sshd \(method.rawValue)\(step)
      # Undo: sallyport pam disable sshd
      \(settings.map(\.text).joined(separator: "\n"))

      """
  }

  /// The stage whose text it is.
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

  /// As it is written in a file.
  package var text: String { "\(keyword) \(value)" }
}

/// Why sshd's side of a service is not changed, or was taken back.
package enum SSHTrouble: Error, Equatable {
  /// sshd does not take its configuration, or does not say its settings.
  case sshd(String)
  /// sshd takes keys alone: which method is wanted has to be said.
  case methodNeeded
  /// Our file has another text than we write.
  case notOurs(path: String)
  /// Values that are, or would be, in effect in place of those wanted.
  case shadowed([SSHMismatch])
  /// Nobody listens where sshd's configuration says, such as `127.0.0.1:22`.
  case notRunning(String)
  /// sshd was not told to read its configuration again.
  case notReloaded(String)
  /// What the running sshd offers is not what its configuration says: it has another one.
  case unproven(SSHDoubt)
  /// What was taken back is not in effect, since sshd has not read its configuration again.
  indirect case notTakenBack(path: String, SSHTrouble)
  case system(path: String, errno: Int32)
}

/// What a running sshd said.
package struct SSHDoubt: Equatable, Sendable {
  /// The methods that its configuration offers.
  package let wanted: [String]
  /// Those that it did offer; nil where it did not answer as sshd does.
  package let offered: [String]?
  package let address: String
  /// The file that the running sshd was started with by `-f`.
  package let file: String?
  package let settings: [SSHSetting]
}

/// A value in effect that is not the wanted one.
package struct SSHMismatch: Equatable, Sendable {
  /// The Match block or the user that it is about; nil: everybody.
  package let who: String?
  package let found: SSHSetting
  package let wanted: SSHSetting
  /// The line that sets it; a file as a whole where a new first line has to.
  package let location: FileLocation
}
