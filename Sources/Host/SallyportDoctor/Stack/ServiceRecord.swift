import PAMStack
package import SallyportCore

/// What `pam enable` wrote for a service, or that `pam disable` removed it. Doctor and `pam status`
/// compare it with what is there. No login reads it.
package struct ServiceRecord: Equatable, Sendable {
  /// What was done last.
  package enum State: String, Sendable {
    case enabled
    /// Kept only while something is left beside the stack that would look like lost lines.
    case disabled
  }

  package let service: String
  package let state: State
  /// When it was written.
  package let time: UnixTime
  /// Whether every login was asked for a code, as far as the stack decides it.
  package let asksEverybody: Bool
  /// The method of our file in sshd's configuration; nil if there was none.
  package let sshd: SSHMethod?
  /// Our lines in the service's own file, as pam.d(5) has them.
  package let lines: [String]

  package init(
    service: String, state: State, time: UnixTime, asksEverybody: Bool = false,
    sshd: SSHMethod? = nil, lines: [String] = []
  ) {
    (self.service, self.state, self.time) = (service, state, time)
    (self.asksEverybody, self.sshd, self.lines) = (asksEverybody, sshd, lines)
  }

  /// The same, where every login was asked for a code before.
  package func expectingAll(of old: ServiceRecord?) -> ServiceRecord {
    ServiceRecord(
      service: service, state: state, time: time,
      asksEverybody: asksEverybody || old?.asksEverybody == true, sshd: sshd, lines: lines)
  }

  package static let directory = "/var/lib/sallyport/services"

  package static func path(of service: String) -> String { "\(directory)/\(service)" }

  /// A key and its value on each line.
  package var text: String {
    let rows =
      ["version = 1", "service = \(service)", "\(state.rawValue) = \(time.seconds)"]
      + (asksEverybody ? ["asks = everybody"] : []) + (sshd.map { ["sshd = \($0.rawValue)"] } ?? [])
      + lines.map { "line = \($0)" }
    return rows.map { $0 + "\n" }.joined()
  }

  /// nil if it is not what `text` writes.
  package init?(text: String) {
    let rows = text.split(separator: "\n").map {
      $0.split(separator: " ", maxSplits: 2).map(String.init)
    }.filter { $0.count == 3 }.map { ($0[0], $0[2]) }
    func value(_ key: String) -> String? { rows.first { $0.0 == key }?.1 }
    let state: State = value("enabled") != nil ? .enabled : .disabled
    guard let service = value("service"), let time = value(state.rawValue).flatMap(Int64.init)
    else { return nil }
    self.init(
      service: service, state: state, time: UnixTime(time), asksEverybody: value("asks") != nil,
      sshd: value("sshd").flatMap { SSHMethod(rawValue: $0) },
      lines: rows.filter { $0.0 == "line" }.map(\.1))
    guard self.text == text else { return nil }
  }

  /// The phases in which it wrote a line.
  var phases: Set<PAMPhase> {
    let words = lines.compactMap { $0.split(separator: " ").first.map(String.init) }
    return Set(words.compactMap { PAMPhase(rawValue: $0) })
  }
}

extension Machine {
  /// What is recorded of a service; unseen if the file is damaged.
  package func serviceRecord(of service: String) -> Probe<ServiceRecord> {
    let path = ServiceRecord.path(of: service)
    return text(path).flatMap { text in
      let record = ServiceRecord(text: text).flatMap { $0.service == service ? $0 : nil }
      return record.map { .seen($0) } ?? .unseen("\(path) is not as it was written")
    }
  }

  /// The services of which something is recorded.
  package var recordedServices: [String] {
    paths("\(ServiceRecord.directory)/*").compactMap { $0.split(separator: "/").last }
      .map(String.init)
  }

  /// What has to be recorded of a service as its files are; nil if nothing.
  package func newServiceRecord(of service: String, at time: UnixTime) -> ServiceRecord? {
    let stack = ServiceStack(of: self, service)
    let own = ownLines(of: stack)
    guard !own.isEmpty else {
      let isLeft = copies(of: service).isEmpty && (service != "sshd" || !hasSSHFile)
      return isLeft ? nil : ServiceRecord(service: service, state: .disabled, time: time)
    }
    let method = service == "sshd" ? text(SSHStage.path).value.flatMap { SSHStage(text: $0) } : nil
    return ServiceRecord(
      service: service, state: .enabled, time: time, asksEverybody: asksEverybody(stack),
      sshd: method?.method, lines: own.map(\.written))
  }

  func ownLines(of stack: ServiceStack) -> [StackEntry] {
    stacks.analysis(stack).lines.filter { $0.location.file == "/etc/pam.d/\(stack.service)" }
  }

  /// The services with lines of ours in their own files, of which nothing is recorded: somebody
  /// wrote them, or `pam enable` before there were records. Or no controls are, and the words are
  /// as they were.
  package var unrecordedServices: [String] {
    ServiceStack.ours(of: self).filter { stack in
      switch serviceRecord(of: stack.service) {
      case .seen(let record):
        !ownLines(of: stack).isEmpty
          && (record.state == .disabled
            || ServiceStack.lackControls(record.lines) && lost(stack.service) == nil)
      case .absent: !ownLines(of: stack).isEmpty
      case .unseen: false
      }
    }.map(\.service)
  }

  /// Whether a change of some file can take away a line of ours.
  package var hasServicesToWatch: Bool {
    recordedServices.contains { serviceRecord(of: $0).value?.state != .disabled }
      || !ServiceStack.ours(of: self).isEmpty || !lostServices().isEmpty
  }

  /// The copies that `pam enable` kept of a service's file.
  func copies(of service: String) -> [String] {
    paths("/etc/pam.d/*.before-sallyport-*").filter {
      $0.hasPrefix("/etc/pam.d/\(service).before-sallyport-")
    }
  }

  func asksEverybody(_ stack: ServiceStack) -> Bool { stacks.analysis(stack).asksEverybody }
}
