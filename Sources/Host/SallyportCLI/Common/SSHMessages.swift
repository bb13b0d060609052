import PAMStack
import SallyportCore
import SallyportDoctor
import SallyportSupport

extension CommandError {
  /// sshd's side of its service was not changed.
  static func ssh(_ trouble: SSHTrouble) -> CommandError {
    CommandError { _ in Message(trouble) }
  }
}

extension Message {
  init(_ trouble: SSHTrouble) {
    switch trouble {
    case .sshd(let complaint):
      self.init(
        "sshd does not take its configuration: \(printable(complaint.utf8, limit: 300))",
        .configuration, hints: ["sshd -t", Message.byHand])
    case .methodNeeded:
      let methods = SSHMethod.allCases.filter { $0 != .passwordCode }
      self.init(
        "sshd takes keys and no passwords: say what it is to ask for", .usage,
        hints: methods.map { "sallyport pam enable sshd --sshd \($0.rawValue)" })
    case .notOurs(let path):
      self.init(
        "\(path) is not as this command writes it, and was left as it is", .exists,
        hints: ["rm \(path)      if nobody needs it", Message.byHand])
    case .shadowed(let found): self.init(found)
    case .notRunning(let address):
      self.init(
        "no sshd listens at \(address): nothing shows whether it takes the settings",
        .configuration, hints: ["systemctl start ssh", Message.byHand])
    case .notReloaded(let reason):
      self.init("\(reason); nothing was changed", .configuration, hints: [Message.byHand])
    case .unproven(let doubt): self.init(doubt)
    case .notTakenBack(let path, let second):
      let message = Message(second)
      self.init(
        "\(path) was taken back, and sshd does not run as before: \(message.text)", .configuration,
        hints: [
          "systemctl restart ssh      keep this shell open", "sallyport doctor --service sshd",
        ])
    case .system(let path, let number): self.init("\(path): \(errnoText(number))", .inputOutput)
    }
  }

  private static let byHand =
    "sallyport pam enable sshd --sshd none      once sshd is set by hand"

  private init(_ found: [SSHMismatch]) {
    let lines = found.map { one in
      let who = one.who.map { "\($0): " } ?? ""
      return "  \(one.location.text): \(who)\(one.found.text)"
    }
    self.init(
      (["sshd would not take our settings; nothing was changed. In effect are:"]
        + lines.map { printable($0.utf8, limit: 300) }).joined(separator: "\n"), .configuration,
      hints: found.map { "\($0.location.text): \($0.wanted.text)" } + [Message.byHand])
  }

  private init(_ doubt: SSHDoubt) {
    let offered = doubt.offered.map { methods in
      "it offers \(printable(methods.joined(separator: ",").utf8, limit: 255))"
    }
    let said = offered ?? "it does not answer"
    let file = doubt.file.map { printable($0.utf8, limit: 255) }
    let started = file.map { ", and was started with -f \($0)" } ?? ""
    self.init(
      "the sshd at \(doubt.address) has not taken the settings\(started): \(said), "
        + "not \(doubt.wanted.joined(separator: ",")); nothing was changed", .configuration,
      hints: doubt.settings.map { "\(file ?? "first in its file"): \($0.text)" }
        + [Message.byHand])
  }
}
