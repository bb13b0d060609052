import Glibc
import PAMStack
import SallyportCore
import SallyportDoctor
import SallyportSupport

/// Keeps what was turned on, for doctor and `pam status` to compare with what is there. A record
/// that cannot be written is a warning: the lines count without it.
extension Context {
  /// Records the lines that a service's file has now, or forgets the service if it has none.
  func keepRecord(of service: String) {
    let now = (try? time()) ?? UnixTime(0)
    keep(machine.newServiceRecord(of: service, at: now), of: service)
  }

  /// Forgets the service if `record` is nil.
  func keep(_ record: ServiceRecord?, of service: String) {
    do throws(SystemError) {
      try put(record?.text, to: service)
    } catch {
      let path = ServiceRecord.path(of: service)
      let reason = "\(path): \(errnoText(error.number)): what is turned on was not recorded"
      terminal.write(Array(Message("warning: \(reason)", .inputOutput).written.utf8), to: .aside)
    }
    watch()
  }

  /// Records those that ask and of which nothing is recorded, or nothing that can be read.
  func keepMissingRecords(of services: [String]) {
    for service in services where machine.serviceRecord(of: service).value?.state != .enabled {
      keepRecord(of: service)
    }
  }

  /// Records lines that differ from the recorded ones. What else decides a login was not asked
  /// about, so that a loss there stays one.
  func keepNewLines(of service: String) {
    let now = machine.newServiceRecord(of: service, at: UnixTime(0))?.lines
    if now != machine.serviceRecord(of: service).value?.lines { keepAsking(of: service) }
  }

  /// Records a service as it is, and that everybody is to be asked if everybody was.
  func keepAsking(of service: String) {
    let now = (try? time()) ?? UnixTime(0)
    let old = machine.serviceRecord(of: service).value
    keep(machine.newServiceRecord(of: service, at: now)?.expectingAll(of: old), of: service)
  }

  /// Whether `pam disable` has something to forget of a service that asks no longer.
  func isStillRecorded(_ service: String) -> Bool {
    switch machine.serviceRecord(of: service) {
    case .seen(let record): record.state == .enabled
    case .unseen: true
    case .absent: machine.lostServices().contains { $0.service == service }
    }
  }

  /// Removes the record if `text` is nil.
  private func put(_ text: String?, to service: String) throws(SystemError) {
    let path = stacks.root + ServiceRecord.path(of: service)
    guard let text else {
      if removeFile(path) { try syncParent(of: path) } else if errno != ENOENT { throw .last }
      return
    }
    try replacePrivateFile(path, text)
  }

  /// Replaces a file below /var/lib/sallyport, in directories that root alone may enter.
  func replacePrivateFile(_ path: String, _ text: String) throws(SystemError) {
    try makeDirectory(parentDirectory(of: path))
    try replaceFile(path, Array(text.utf8))
  }

  private func makeDirectory(_ path: String) throws(SystemError) {
    if path == "/" || (try? facts(of: path, following: true)) != nil { return }
    try makeDirectory(parentDirectory(of: path))
    // SAFETY: the C string lives for the call.
    if unsafe mkdir(path, 0o700) != 0, errno != EEXIST { throw .last }
    try syncParent(of: path)
  }

  /// The unit by which systemd looks again when one of the files changes: as long as a stack has a
  /// line of ours, or should have one. Without it, and without systemd, the triggers of packages
  /// and doctor are left.
  private func watch() {
    guard machine.isRunBySystemd else { return }
    let verb = machine.hasServicesToWatch ? "start" : "stop"
    _ = machine.run(["systemctl", verb, "sallyport-watch.path"])
  }
}
