import SallyportCore
import SallyportText

/// What SELinux or AppArmor forbade, as far as logs tell.
struct DenialFacts: Equatable {
  /// One of them is at work.
  var guardian: String?
  /// Lines that name Sallyport, of the last week.
  var lines: [String] = []
  /// Why no log could be read.
  var unread: String?

  private static let week: Int64 = 7 * 86400

  init() {}

  init(of machine: Machine, _ now: UnixTime) {
    let isEnforcing = machine.text("/sys/fs/selinux/enforce").value?.hasPrefix("1") == true
    let enabled = machine.text("/sys/module/apparmor/parameters/enabled").value
    guardian = isEnforcing ? "SELinux" : enabled?.hasPrefix("Y") == true ? "AppArmor" : nil
    guard guardian != nil else { return }
    let files = ["/var/log/audit/audit.log", "/var/log/kern.log", "/var/log/syslog"]
    var texts = files.compactMap { machine.text($0, fromEnd: true).value }
    if texts.isEmpty {
      let words = ["journalctl", "-q", "-k", "--no-pager", "-n", "5000", "-o", "cat"]
      if let answer = machine.run(words).value, answer.status == 0 { texts = [answer.output] }
    }
    if texts.isEmpty { unread = "no log of \(guardian ?? "") can be read here" }
    lines = texts.flatMap { DenialFacts.denials(in: $0, now) }
  }

  /// The lines of a log that tell of something denied to us, of the last week.
  static func denials(in text: String, _ now: UnixTime) -> [String] {
    text.split(separator: "\n").map(String.init).filter { line in
      let isDenial = line.contains("avc:  denied") || line.contains("apparmor=\"DENIED\"")
      guard isDenial, line.contains("sallyport") else { return false }
      let time = line.split(separator: "audit(").dropFirst().first.flatMap {
        Int64($0.prefix { $0.isNumber })
      }
      return time.map { $0 > now.seconds - week } ?? true
    }
  }
}

/// What access control kept from logins. Pure.
struct DenialFindings {
  let denials: DenialFacts
  private let area = Area.machine

  init(_ denials: DenialFacts) { self.denials = denials }

  var all: [Finding] {
    guard let guardian = denials.guardian else { return [] }
    if let unread = denials.unread { return [.unseen("denials", area, unread)] }
    guard let last = denials.lines.last else {
      return [.ok("denials", area, "\(guardian) has denied nothing of late")]
    }
    let program = word(after: "comm=", in: last) ?? "a program"
    let path = word(after: "name=", in: last) ?? "a file of Sallyport"
    let fix: Fix =
      guardian == "SELinux"
      ? .command("restorecon -Rv /var/lib/sallyport") : .advice("aa-logprof")
    return [
      Finding(
        id: "denials", area: area, severity: .warning,
        text: "\(guardian) has denied \(program) access to \(path) "
          + "(\(counted(denials.lines.count, "time")) in a week)", fixes: [fix])
    ]
  }

  private func word(after key: String, in line: String) -> String? {
    let rest = line.split(separator: key).dropFirst().first
    return rest.map { $0.drop { $0 == "\"" }.prefix { $0 != "\"" && $0 != " " } }.map(String.init)
  }
}
