import PAMStack
import SallyportCore
package import SallyportSupport

/// Why sshd's settings were not changed, or were restored; made where it is thrown.
package struct SSHTrouble: Error {
  package let message: Message
  /// Nobody listens at the address in sshd's configuration.
  package private(set) var isNotRunning = false

  package init(_ status: Sysexit, _ text: String, hints: [String] = []) {
    message = Message(text, status, hints: hints)
  }

  static let byHand = "sallyport pam enable sshd --sshd none  # once sshd is set by hand"

  /// sshd rejects its configuration, or does not print its settings; with its message.
  package static func sshd(_ complaint: String) -> SSHTrouble {
    SSHTrouble(
      .configuration,
      "sshd does not take its configuration: \(printable(complaint.utf8, limit: 300))",
      hints: ["sshd -t", byHand])
  }

  static func notRunning(_ address: String) -> SSHTrouble {
    var trouble = SSHTrouble(
      .configuration, "no sshd listens at \(address): nothing shows whether it takes the settings",
      hints: ["systemctl start ssh", byHand])
    trouble.isNotRunning = true
    return trouble
  }

  /// Nobody is in the block of `match` for those with a key: not in the group, or nobody has a key
  /// at all.
  static func nobodyHasAKey(_ people: SSHPeople, _ accounts: AccountFacts) -> SSHTrouble {
    guard let group = people.keyGroup else {
      return SSHTrouble(
        .usage, "nobody has a key that sshd takes",
        hints: ["sallyport pam enable sshd --sshd password+code"])
    }
    let robots = listed(people.aloneUsers)
    let others = robots.isEmpty ? "" : " but \(robots), who have no password and are not enrolled"
    let name = "the group \(printable(group.utf8, limit: 64))"
    let text =
      if !accounts.hasAllGroups {
        "no source in nsswitch.conf lists members of \(name)\(others)"
      } else if accounts.groups.contains(where: { $0.name == group }) {
        "\(name) has no members here\(others)"
      } else {
        "\(name) does not exist"
      }
    return SSHTrouble(
      .usage, text,
      hints: ["sallyport pam enable sshd --sshd match", "getent group \(shellQuoted(group))"])
  }

  /// sshd could not be told to reload its configuration.
  static func notReloaded(_ reason: String) -> SSHTrouble {
    SSHTrouble(.configuration, reason, hints: [byHand])
  }

  /// Values that are, or would be, in effect instead of the wanted ones.
  static func shadowed(_ found: [SSHMismatch]) -> SSHTrouble {
    let lines = found.map { one in
      let who = one.who.map { "\($0): " } ?? ""
      return printable("  \(one.location.text): \(who)\(one.found.text)".utf8, limit: 300)
    }
    return SSHTrouble(
      .configuration,
      (["sshd would not take our settings; nothing was changed. In effect are:"] + lines)
        .joined(separator: "\n"),
      hints: found.map { "\($0.location.text): \($0.wanted.text)" } + [byHand])
  }
}

/// A value in effect that is not the wanted one.
struct SSHMismatch: Equatable {
  /// The Match block or the user for which it is in effect; nil for everybody.
  let who: String?
  let found: SSHSetting
  let wanted: SSHSetting
  /// The line that sets it; a whole file if a new first line must be added.
  let location: FileLocation
}
