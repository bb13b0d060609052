import PAMStack
package import SallyportCore
import SallyportSupport

/// A change of `pam enable` that is taken back unless somebody confirms it, as its file tells. The
/// file is written before the change, so it may tell of more than was done.
package struct PendingRevert: Equatable, Sendable {
  /// What sshd's settings were before.
  package enum Settings: Equatable, Sendable {
    /// They are not changed.
    case unchanged
    /// There was no file of ours.
    case absent
    case stage(SSHStage)
  }

  /// Tells the change from later ones.
  package let id: String
  package let due: UnixTime
  /// Whose files in /etc/pam.d change.
  package let services: [String]
  package let settings: Settings
  /// The start of the machine, which the timer does not outlive.
  package let boot: String
  /// The login that made the change, as the kernel counts logins; nil if it does not.
  package let session: String?

  package static let path = "/etc/security/sallyport-revert"

  package init(
    id: String, due: UnixTime, services: [String], settings: Settings, boot: String,
    session: String?
  ) {
    (self.id, self.due, self.services) = (id, due, services)
    (self.settings, self.boot, self.session) = (settings, boot, session)
  }

  /// All services that are concerned.
  package var names: [String] {
    settings == .unchanged || services.contains("sshd") ? services : services + ["sshd"]
  }

  /// A word and its value on each line.
  package var text: String {
    let sshd: [String]
    switch settings {
    case .unchanged: sshd = []
    case .absent: sshd = ["sshd absent"]
    case .stage(let stage):
      let people = stage.people
      sshd =
        ["sshd \(stage.method.rawValue)"] + (people.keyGroup.map { ["key-group \($0)"] } ?? [])
        + people.keyUsers.map { "key-user \($0)" } + people.aloneUsers.map { "alone \($0)" }
    }
    let lines =
      ["id \(id)", "due \(due.seconds)", "boot \(boot)"]
      + (session.map { ["session \($0)"] } ?? []) + sshd
      + services.map { "service \($0)" }
    return "# sallyport pam confirm keeps the change, sallyport pam revert takes it back.\n"
      + lines.map { $0 + "\n" }.joined()
  }

  /// nil if it is not what `text` writes.
  package init?(text: String) {
    let rows = text.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
    let pairs = rows.filter { $0.count == 2 }.map { ($0[0], $0[1]) }
    func value(_ word: String) -> String? { pairs.first { $0.0 == word }?.1 }
    guard let id = value("id"), let due = value("due").flatMap(Int64.init),
      let boot = value("boot")
    else { return nil }
    var settings = Settings.unchanged
    func values(_ word: String) -> [String] { pairs.filter { $0.0 == word }.map(\.1) }
    if let sshd = value("sshd") {
      let method = SSHMethod(rawValue: sshd)
      guard sshd == "absent" || method != nil else { return nil }
      let people = SSHPeople(
        keyGroup: value("key-group"), keyUsers: values("key-user"), aloneUsers: values("alone"))
      settings = method.map { .stage(SSHStage(method: $0, people: people)) } ?? .absent
    }
    self.init(
      id: id, due: UnixTime(due), services: values("service"),
      settings: settings, boot: boot, session: value("session"))
    guard self.text == text else { return nil }
  }
}

extension Machine {
  /// Absent if nothing waits to be confirmed.
  package func pendingRevert() -> Probe<PendingRevert> {
    text(PendingRevert.path).flatMap { text in
      let found = PendingRevert(text: text)
      return found.map { .seen($0) } ?? .unseen("\(PendingRevert.path) is not as it was written")
    }
  }

  /// The start of the machine, by its number.
  package var boot: String { word(in: "/proc/sys/kernel/random/boot_id") ?? "unknown" }

  /// The login that this process belongs to; nil if the kernel does not say.
  package var session: String? {
    word(in: "/proc/self/sessionid").flatMap { $0 == "\(UInt32.max)" ? nil : $0 }
  }

  private func word(in path: String) -> String? {
    text(path).value?.split { $0 == "\n" || $0 == " " }.first.map(String.init)
  }
}

/// A change that waits to be confirmed. Pure.
struct RevertFindings {
  let pending: Probe<PendingRevert>
  let boot: String
  let now: UnixTime

  /// Seconds that a timer and the steps of a revert may take.
  private static let patience: Int64 = 120

  var found: Finding? {
    switch pending {
    case .absent: return nil
    case .unseen(let reason):
      return .unseen("pam-revert", .machine, reason, fixes: [.command("rm \(PendingRevert.path)")])
    case .seen(let pending):
      let names = listed(pending.names)
      let isLate = now.seconds > pending.due.seconds + RevertFindings.patience
      let isLost = boot != pending.boot || isLate
      let time = CalendarDate(pending.due, inUTC: true)?.internetText ?? "\(pending.due.seconds)"
      let fixes = ["confirm", "revert"].map { Fix.command("sallyport pam \($0)") }
      return Finding(
        "pam-revert", .machine,
        isLost
          ? "the change of \(names) was not confirmed, and was not taken back at \(time)"
          : "the change of \(names) is taken back at \(time) unless it is confirmed",
        severity: isLost ? .error : .warning, location: FileLocation(file: PendingRevert.path),
        fixes: isLost ? fixes.reversed() : fixes)
    }
  }
}
