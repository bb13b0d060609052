package import PAMStack
import SallyportCore
import SallyportText

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

  /// One sentence.
  package var text: String {
    let time = since.flatMap { CalendarDate($0, inUTC: true)?.internetText }
    let when = time.map { ", since about \($0), when \(file) was changed last" } ?? ""
    return printable("\(service) no longer asks \(fact)\(when)".utf8, limit: 600)
  }

  /// The commands of which each ends it.
  package var commands: [String] {
    ["enable", "disable"].map { "sallyport pam \($0) \(shellQuoted(service))" }
  }
}

extension Machine {
  /// The first of a service's lines that may let in more people than the recorded ones.
  package func lineChange(of service: String) -> LineChange? {
    guard let record = serviceRecord(of: service).value, record.state == .enabled else {
      return nil
    }
    return ServiceStack(of: self, service).change(since: record.lines)
  }

  /// The services that were turned on and have lost what was written, by the records, or, where
  /// there is none, by what `pam enable` leaves beside a stack.
  package func lostServices() -> [LostService] {
    let recorded = recordedServices
    let kept = paths("/etc/pam.d/*.before-sallyport-*").compactMap(serviceOfCopy)
    let others = Set(kept + (hasSSHFile ? ["sshd"] : [])).subtracting(recorded)
    return recorded.compactMap(lost) + others.sorted().compactMap(lostWithoutRecord)
  }

  private func serviceOfCopy(_ path: String) -> String? {
    let name = path.dropFirst("/etc/pam.d/".count)
    return name.ranges(of: ".before-sallyport-").last.map { String(name[..<$0.lowerBound]) }
  }

  private func lost(_ service: String) -> LostService? {
    // Of a damaged record the name is left.
    let record =
      serviceRecord(of: service).value
      ?? ServiceRecord(service: service, state: .enabled, time: UnixTime(0), lines: ["auth"])
    if record.state == .disabled { return nil }
    let stack = ServiceStack(of: self, service)
    var files = files(of: stack)
    var fact = lostLine(of: stack, record)
    if fact == nil, let method = record.sshd, let setting = missingSetting(of: method) {
      fact = "for a code in every login: sshd lacks \"\(setting.text)\""
      files = [SSHStage.path, "/etc/ssh/sshd_config"]
    }
    return fact.map {
      LostService(
        service: service, fact: $0, file: files[0], since: change(of: files, after: record.time))
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
    if let change = stack.change(since: record.lines) {
      return "as it was turned on: \(change.location.text) \(change.text)"
    }
    let isAround = record.asksEverybody && !asksEverybody(stack)
    return isAround ? "everybody for a code: our line in \(file) no longer decides all logins" : nil
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

  /// A setting that the method needs and sshd does not have; nil also if sshd does not say.
  private func missingSetting(of method: SSHMethod) -> SSHSetting? {
    guard let settings = SSHFacts.settings(of: self, []).value else { return nil }
    return SSHStage(method: method).needed.first { !settings.has($0) }
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
      Finding(
        id: "service-lost", area: .service(lost.service), severity: .error, text: lost.text,
        location: FileLocation(file: lost.file), fixes: lost.commands.map(Fix.command),
        effect: .letsIn("anybody with a password or a key in \(lost.service)"))
    }
      + damaged.sorted { $0.key < $1.key }.map { service, reason in
        let command = "sallyport pam enable \(shellQuoted(service))"
        return .unseen("service-record", .service(service), reason, [.command(command)])
      }
  }
}
