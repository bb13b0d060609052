import ArgumentParser
import Glibc
import PAMStack
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

/// How long a change may wait to be confirmed: `90s`, `10m`, `2h`.
struct RevertDelay {
  /// 1 to 86,400.
  let seconds: UInt32

  /// Throws unless it is a time of that form.
  init(typed: String) throws {
    let units: [Character: UInt32] = ["s": 1, "m": 60, "h": 3600]
    let wrong = ValidationError("expected a time up to 24h, such as 90s, 10m or 2h")
    guard let unit = typed.last.flatMap({ units[$0] }), typed.utf8.count <= 6,
      let count = UInt32(typed.dropLast())
    else { throw wrong }
    let (seconds, overflow) = count.multipliedReportingOverflow(by: unit)
    guard !overflow, (1...86_400).contains(seconds) else { throw wrong }
    self.seconds = seconds
  }
}

extension Context {
  /// Sees to it that the changes are taken back after the delay, whatever becomes of this process
  /// and its terminal. First the file says what is to be taken back, then the timer runs, and only
  /// then may anything be written.
  func arm(_ plans: [PamPlan], _ delay: RevertDelay) throws(CommandError) {
    if let old = machine.pendingRevert().value {
      throw CommandError(
        .exists,
        "the change of \(printable(listed(old.names).utf8, limit: 300)) waits to be confirmed",
        hints: [
          "sallyport pam confirm  # to keep it", "sallyport pam revert  # to take it back",
        ])
    }
    let now = try time()
    let side = plans.compactMap(\.side).first
    let id = String(try freshIdentifier(), radix: 16)
    let pending = PendingRevert(
      id: id, due: UnixTime(now.seconds + Int64(delay.seconds)),
      services: plans.map(\.change).filter { !$0.changesNothing }.map(\.service),
      settings: side?.settingsBefore ?? .unchanged, boot: machine.boot, session: machine.session)
    let path = stacks.root + PendingRevert.path
    try revertFiling { () throws(SystemError) in
      try replaceFile(path, isNew: true, Array(pending.text.utf8))
    }
    do throws(CommandError) {
      try startTimer(id, delay)
    } catch {
      try forgetRevert()
      throw error
    }
  }

  /// By systemd where it runs, which ends what a login leaves behind; otherwise a process that
  /// belongs to no login.
  private func startTimer(_ id: String, _ delay: RevertDelay) throws(CommandError) {
    let program = try programPath()
    let verb = ["pam", "revert", "--due", id]
    if machine.isRunBySystemd {
      let timer = [
        "systemd-run", "--quiet", "--collect", "--unit=sallyport-revert-\(id)",
        "--on-active=\(delay.seconds)s", "--timer-property=AccuracySec=1s",
      ]
      if machine.run(timer + [program] + verb).value?.status == 0 { return }
    }
    try revertFiling { () throws(SystemError) in
      try detach([program] + verb + ["--after", "\(delay.seconds)"])
    }
  }

  private func programPath() throws(CommandError) -> String {
    var bytes = [CChar](repeating: 0, count: Int(PATH_MAX))
    // SAFETY: the buffer has as many bytes as are said, and lives for the call.
    let count = unsafe readlink("/proc/self/exe", &bytes, bytes.count)
    guard count > 0, count < bytes.count else { throw unwritten(errno) }
    return String(decoding: bytes.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// The change stays as it is from here on, and a timer that still runs finds nothing to do.
  func forgetRevert() throws(CommandError) {
    let path = stacks.root + PendingRevert.path
    try revertFiling { () throws(SystemError) in try removeFileForGood(path) }
  }

  /// After writing has failed: what may be left of the change is still taken back by the timer.
  func disarm(_ plans: [PamPlan]) {
    let isLeft = plans.contains { plan in
      !plan.change.changesNothing && plan.change.isWritten(in: stacks)
    }
    let sides = plans.compactMap(\.side)
    if isLeft || sides.contains(where: { !$0.isAsBefore }) { return }
    // If the file cannot be removed, the timer finds nothing to take back.
    do throws(CommandError) { try forgetRevert() } catch {}
  }

  /// Of `pam disable`: nothing is left to be taken back once all of it is off.
  func forgetRevert(of services: [String]) throws(CommandError) {
    guard let pending = machine.pendingRevert().value,
      pending.names.allSatisfy(services.contains)
    else { return }
    try forgetRevert()
  }

  private func unwritten(_ number: Int32) -> CommandError {
    CommandError(
      .inputOutput, "\(PendingRevert.path): \(errnoText(number)); nothing was changed")
  }

  private func revertFiling(_ step: () throws(SystemError) -> Void) throws(CommandError) {
    try rethrow(step) { unwritten($0.number) }
  }
}

/// Waits, or less long if the change is confirmed or taken back meanwhile. The time in which the
/// machine is suspended counts.
func waitForRevert(_ id: String, seconds: UInt32, of machine: Machine) {
  // Keeps no file system busy.
  // SAFETY: the C string lives for the call.
  _ = unsafe chdir("/")
  let end = Clock.uptime() + Double(seconds)
  while Clock.uptime() < end, machine.pendingRevert().value?.id == id { usleep(200_000) }
}
