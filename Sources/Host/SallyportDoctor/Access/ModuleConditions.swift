import PAMStack
import SallyportCore

/// Which uids pam_usertype takes for those of the system.
struct SystemUsers: Equatable {
  /// UID_MIN, SYS_UID_MIN and SYS_UID_MAX of login.defs(5).
  var range: ClosedRange<UInt32> = 101...999

  func contains(_ uid: UInt32) -> Bool { uid <= 99 || uid == 65_534 || range.contains(uid) }
}

extension SystemUsers {
  init(of machine: Machine) {
    var values: [Substring: UInt32] = [:]
    for line in linesOf(machine.text("/etc/login.defs").value ?? "") {
      let words = line.split { $0 == " " || $0 == "\t" }
      guard words.count == 2, let number = UInt32(words[1]) else { continue }
      values[words[0]] = values[words[0]] ?? number
    }
    let least = values["SYS_UID_MIN"] ?? 101
    let most = values["SYS_UID_MAX"] ?? max(values["UID_MIN"] ?? 1000, 1) - 1
    if least <= most { range = least...most }
  }

  /// The uids at which the answer changes.
  var bounds: [UInt32] { [100, range.lowerBound, range.upperBound + 1, 65_534, 65_535] }
}

// MARK: - pam_succeed_if and pam_usertype

extension ModuleAnswers {
  /// One that cannot be told from here may hold or not.
  func condition(_ entry: StackEntry, _ login: RehearsedLogin) -> [Answer] {
    let yes = Answer(code: .success)
    let no = ModuleAnswers.shut(.authenticationError)
    // Of the account whose process it is.
    if entry.arguments.contains("use_uid"), login.caller != traits.uid { return [yes, no] }
    let isTrue = entry.moduleName == "pam_usertype" ? usertype(entry) : all(entry, login)
    return isTrue.map { [$0 ? yes : no] } ?? [yes, no]
  }

  private func usertype(_ entry: StackEntry) -> Bool? {
    // The last word counts.
    guard let word = entry.arguments.last(where: { ["issystem", "isregular"].contains($0) }) else {
      return false
    }
    return systemUsers.contains(traits.uid) == (word == "issystem")
  }

  /// Whether all conditions hold.
  private func all(_ entry: StackEntry, _ login: RehearsedLogin) -> Bool? {
    let options: Set = ["debug", "use_uid", "quiet", "quiet_fail", "quiet_success", "audit"]
    let words = entry.arguments.filter { !options.contains($0) }
    if !words.count.isMultiple(of: 3) { return false }
    let found = stride(from: 0, to: words.count, by: 3).map { start in
      holds(
        words[start].lowercased(), words[start + 1].lowercased(), words[start + 2], of: login)
    }
    return found.contains(false) ? false : found.contains(nil) ? nil : true
  }

  private func holds(
    _ attribute: String, _ sign: String, _ value: String, of login: RehearsedLogin
  ) -> Bool? {
    if ["ingroup", "notingroup"].contains(sign) {
      let isIn = value.split(separator: ":").map { isMember(String($0)) }
      let found = isIn.contains(.yes) ? true : isIn.contains(.unknown) ? nil : false
      return found.map { $0 == (sign == "ingroup") }
    }
    switch attribute {
    case "user", "login", "name":
      return holds(String(decoding: login.user, as: UTF8.self), sign, value)
    case "uid":
      let number = UInt32(value)
      return number.map { compare(traits.uid, sign, $0) } ?? holds("\(traits.uid)", sign, value)
    case "shell": return holds(traits.shell, sign, value)
    case "service": return holds(login.service, sign, value)
    // sshd says so of every connection.
    case "tty": return login.accepted == nil ? nil : holds("ssh", sign, value)
    case _: return nil
    }
  }

  private func holds(_ text: String, _ sign: String, _ value: String) -> Bool? {
    switch sign {
    case "=": text == value
    case "!=": text != value
    case "in": value.split(separator: ":").contains(Substring(text))
    case "notin": !value.split(separator: ":").contains(Substring(text))
    case _: nil
    }
  }

  private func compare(_ uid: UInt32, _ sign: String, _ number: UInt32) -> Bool? {
    switch sign {
    case "lt", "<": uid < number
    case "le", "<=": uid <= number
    case "eq", "=": uid == number
    case "ge", ">=": uid >= number
    case "gt", ">": uid > number
    case "ne", "!=": uid != number
    case "in": uid == number
    case "notin": uid != number
    case _: nil
    }
  }
}
