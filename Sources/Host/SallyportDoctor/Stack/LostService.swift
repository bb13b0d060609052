import PAMStack
import SallyportCore
import SallyportSupport

/// A service that asked for a code once `pam enable` had turned it on, and no longer does, although
/// nobody has turned it off.
package struct LostService: Equatable, Sendable {
  package let service: String
  /// What is lost, without the name of the service.
  let fact: String
  /// The file that changed.
  let file: String
  /// When that file was changed last, if it was after our lines were written.
  let since: UnixTime?
  /// Our lines are all there: others decide more than they did, or they let in more people.
  var isLoosened = false
  /// Nothing is known to be lost: it cannot be compared, for the reason in `fact`.
  package var isUnseen = false

  /// One sentence.
  package var text: String {
    if isUnseen {
      return printable("\(service)'s settings cannot be seen: \(fact)".utf8, limit: 600)
    }
    let time = since.flatMap { CalendarDate($0, inUTC: true)?.internetText }
    let when = time.map { ", since about \($0), when \(file) was changed last" } ?? ""
    return printable("\(service) no longer asks \(fact)\(when)".utf8, limit: 600)
  }

  /// The commands of which each ends it. They ask, unless they are given `--yes`.
  package var commands: [String] {
    let (on, off) = (command("enable"), command("disable"))
    if isUnseen { return ["sshd -T"] }
    if !isLoosened { return [on, off] }
    // With --yes, enable leaves such lines alone.
    return [
      "\(command("disable", "--yes")) && \(command("enable", "--yes"))  # writes the lines again",
      "\(on)  # on a terminal, shows it and asks first", off,
    ]
  }

  private func command(_ verb: String, _ options: String...) -> String {
    sallyportCommand("pam \(verb)", on: [service], options)
  }

  /// For doctor: only what can be run as it stands is a command.
  var fixes: [Fix] {
    commands.map { line in
      line.contains("  # ") ? .advice(line.replacing("  # ", with: ": ")) : .command(line)
    }
  }
}

extension Machine {
  /// All by which a service that still has our lines may let in more people than recorded.
  package func loosening(of service: String) -> [String] {
    guard let record = serviceRecord(of: service).value, record.state == .enabled else { return [] }
    let stack = ServiceStack(of: self, service)
    let gone = record.phases.subtracting(ownLines(of: stack).map(\.phase)).map(\.rawValue).sorted()
    let file = stack.file ?? "/etc/pam.d/\(service)"
    return gone.map { "\(file) has lost our \($0) line" } + loosening(of: stack, record)
  }

  private func loosening(of stack: ServiceStack, _ record: ServiceRecord) -> [String] {
    let changes = stack.changes(since: record.lines).map { "\($0.location.text) \($0.text)" }
    guard isPassed(stack, record), let file = stack.file else { return changes }
    return changes + ["our line in \(file) no longer decides all logins"]
  }

  /// Whether some logins end before our line, which did not when it was recorded.
  package func isPassedBy(_ service: String) -> Bool {
    guard let record = serviceRecord(of: service).value, record.state == .enabled else {
      return false
    }
    return isPassed(ServiceStack(of: self, service), record)
  }

  private func isPassed(_ stack: ServiceStack, _ record: ServiceRecord) -> Bool {
    record.asksEverybody && !asksEverybody(stack)
  }

  /// The services that were turned on and have lost what was written, by the records, or, where
  /// there is none, by what `pam enable` leaves beside a stack.
  package func lostServices() -> [LostService] { lostOrUnseenServices().filter { !$0.isUnseen } }

  /// Those too that cannot be compared with their records.
  package func lostOrUnseenServices() -> [LostService] {
    let recorded = recordedServices
    let kept = paths("/etc/pam.d/*.before-sallyport-*").compactMap(serviceOfCopy)
    let others = Set(kept + (hasSSHFile ? ["sshd"] : [])).subtracting(recorded)
    return recorded.compactMap(lost) + others.sorted().compactMap(lostWithoutRecord)
  }

  private func serviceOfCopy(_ path: String) -> String? {
    let name = path.dropFirst("/etc/pam.d/".count)
    return name.ranges(of: ".before-sallyport-").last.map { String(name[..<$0.lowerBound]) }
  }

  func lost(_ service: String) -> LostService? {
    // Of a damaged record the name is left.
    let record =
      serviceRecord(of: service).value
      ?? ServiceRecord(service: service, state: .enabled, time: UnixTime(0), lines: ["auth"])
    if record.state == .disabled { return nil }
    let stack = ServiceStack(of: self, service)
    guard let fact = lostLine(of: stack, record) else {
      return record.sshd.flatMap { lostSetting(of: $0, record) }
    }
    let files = files(of: stack)
    return LostService(
      service: service, fact: fact, file: files[0], since: change(of: files, after: record.time),
      isLoosened: !ownLines(of: stack).filter { $0.phase == .auth }.isEmpty
        && !loosening(of: stack, record).isEmpty)
  }

  /// nil also without an sshd.
  private func lostSetting(of method: SSHMethod, _ record: ServiceRecord) -> LostService? {
    let files = [SSHStage.path, "/etc/ssh/sshd_config"]
    switch SSHFacts.settings(of: self) {
    case .absent: return nil
    case .unseen(let reason):
      return LostService(
        service: record.service, fact: reason, file: files[1], since: nil, isUnseen: true)
    case .seen(let settings):
      guard let lacking = SSHStage(method: method).needed().first(where: { !settings.has($0) })
      else { return nil }
      return LostService(
        service: record.service,
        fact: "for a code in every login: sshd lacks \"\(lacking.text)\"", file: files[0],
        since: change(of: files, after: record.time))
    }
  }

  private func lostLine(of stack: ServiceStack, _ record: ServiceRecord) -> String? {
    guard let file = stack.file else { return "for a code: its file is gone" }
    let missing = record.phases.subtracting(ModuleLines(of: stack).lines.map(\.phase))
    if missing.contains(.auth) {
      return "for a code: \(file) has lost the line that pam enable wrote"
    }
    if !missing.isEmpty {
      let lines = missing.map(\.rawValue).sorted().joined(separator: " and ")
      return "as it was turned on: \(file) has lost our \(lines) line"
    }
    let loosening = loosening(of: stack, record)
    guard let first = loosening.first else { return nil }
    return loosening.count == 1 && isPassed(stack, record)
      ? "everybody for a code: \(first)"
      : "as it was turned on: \(loosening.joined(separator: ", and "))"
  }

  /// A machine on which it was turned on before there were records.
  private func lostWithoutRecord(_ service: String) -> LostService? {
    let stack = ServiceStack(of: self, service)
    guard let file = stack.file, ModuleLines(of: stack).of(.auth).isEmpty else { return nil }
    let evidence = copies(of: service).last ?? SSHStage.path
    return LostService(
      service: service, fact: "for a code: \(file) has no line of ours, but \(evidence) is there",
      file: file, since: change(of: files(of: stack), after: UnixTime(0)))
  }

  /// The service's own file first.
  private func files(of stack: ServiceStack) -> [String] {
    let own = stack.file ?? "/etc/pam.d/\(stack.service)"
    return [own] + stack.files.filter { $0 != own }
  }

  /// When the first of the files was changed, or else the last of the others; nil if that was
  /// before `time`.
  private func change(of files: [String], after time: UnixTime) -> UnixTime? {
    let times = files.map(changed)
    let found = times[0] > time.seconds ? times[0] : times.max() ?? 0
    return found > time.seconds ? UnixTime(found) : nil
  }

  /// By the time that programs cannot set. Of a file that is gone, its directory's.
  private func changed(_ path: String) -> Int64 {
    let both = [file(path, following: false), file(path)].compactMap { $0.value?.changed }
    let parent = String(path.prefix(upTo: path.lastIndex(of: "/") ?? path.startIndex))
    return both.max() ?? file(parent).value?.changed ?? 0
  }

  /// When each of the files was changed that can take our lines away.
  package var changesOfLogins: [String: Int64] {
    let all = Machine.filesOfLogins.flatMap { paths($0) + paths("\($0)/*") }
    return Dictionary(all.map { ($0, changed($0)) }) { one, _ in one }
  }

  /// The paths that the unit watches as well. Files of pam.d may be links into authselect's.
  static let filesOfLogins = [
    "/etc/pam.d", "/etc/authselect", "/etc/ssh/sshd_config", "/etc/ssh/sshd_config.d",
    "/etc/sudoers", "/etc/sudoers.d",
  ]
}

/// Services that have lost what `pam enable` wrote, and records that cannot be read. Pure.
struct LostFindings {
  let lost: [LostService]
  let damaged: [String: String]

  var all: [Finding] {
    lost.map { lost in
      Finding.error(
        "service-lost", .service(lost.service), lost.text, location: FileLocation(file: lost.file),
        fixes: lost.fixes, effect: .letsIn("anybody with a password or a key in \(lost.service)"))
    }
      + damaged.sorted { $0.key < $1.key }.map { service, reason in
        let command = sallyportCommand("pam enable", on: [service])
        return .unseen("service-record", .service(service), reason, fixes: [.command(command)])
      }
  }
}
