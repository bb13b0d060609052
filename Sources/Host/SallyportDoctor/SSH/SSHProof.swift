import CSystem
import Glibc
import SallyportCore
import SallyportSupport

/// The running sshd: what it offers, and how it is told to reload its configuration.
///
/// A client that has proven nothing is told the methods with which it may go on. So the running
/// sshd itself tells, however it was started and whichever file it has read.
package struct RunningSSHD {
  private let machine: Machine
  /// The user name for the questions. It should be one who may log in, since sshd blocks clients
  /// for a while that often name others (PerSourcePenalties).
  private let user: String

  package init(_ machine: Machine, as user: String) { (self.machine, self.user) = (machine, user) }

  /// In milliseconds, between questions. A daemon that restarts does not listen for a moment, and
  /// one that is asked more often blocks the client.
  private static let pauses: [UInt32] = [100, 300, 600, 1200, 2400]

  private enum Answer: Equatable {
    case offers(Set<String>)
    case notListening
    case other

    var methods: Set<String>? { if case .offers(let methods) = self { methods } else { nil } }
  }

  /// Throws `notRunning` if nobody listens.
  package func needListener() throws(SSHTrouble) {
    let listener = Listener(try machine.sshSettings())
    if ask(listener) == .notListening { throw .notRunning(listener.text) }
  }

  package func listens() throws(SSHTrouble) -> Bool {
    ask(Listener(try machine.sshSettings())) != .notListening
  }

  /// Whether it already offers what its configuration says.
  package func isCurrent() throws(SSHTrouble) -> Bool {
    let listener = Listener(try machine.sshSettings())
    return ask(listener) == .offers(try expected(at: listener).offered)
  }

  /// The methods that it offers now; nil if it does not say.
  package func offers() throws(SSHTrouble) -> Set<String>? {
    ask(Listener(try machine.sshSettings())).methods
  }

  /// Tells it to reload, and waits until it offers `wanted`, or else what its configuration says.
  /// `lines` of our file and `fate`, what has become of our file, are for the message of an error.
  package func reload(
    _ lines: [String], wanted: Set<String>? = nil,
    otherwise fate: String = "nothing was changed"
  ) throws(SSHTrouble) {
    let base = try machine.sshSettings()
    let listener = Listener(base)
    var wanted = wanted ?? []
    if wanted.isEmpty { wanted = try expected(at: listener).offered }
    let process = try tell(base, otherwise: fate)
    var answer = ask(listener)
    for pause in RunningSSHD.pauses where answer != .offers(wanted) {
      sys_sleep(pause * 1_000_000)
      answer = ask(listener)
    }
    if answer == .offers(wanted) { return }
    let file = process.flatMap(file).map { printable($0.utf8, limit: 255) }
    let started = file.map { ", and was started with -f \($0)" } ?? ""
    let offered = answer.methods.map { methods in
      "it offers \(printable(methods.sorted().joined(separator: ",").utf8, limit: 255))"
    }
    throw SSHTrouble(
      .configuration,
      "the sshd at \(listener.text) has not taken the settings\(started): "
        + "\(offered ?? "it does not answer"), not \(wanted.sorted().joined(separator: ",")); "
        + fate,
      hints: lines.map { "\(file ?? "first in its file"): \($0)" } + [SSHTrouble.byHand])
  }

  /// The settings for the connection by which it is asked.
  private func expected(at listener: Listener) throws(SSHTrouble) -> SSHSettings {
    let host = listener.host
    return try machine.sshSettings(
      user: user,
      from: SSHConnection(
        name: listener.text, address: host, host: host, localAddress: host, port: listener.port))
  }

  private func ask(_ listener: Listener) -> Answer {
    let options = [
      "BatchMode=yes", "PreferredAuthentications=none", "StrictHostKeyChecking=no",
      "UserKnownHostsFile=/dev/null", "GlobalKnownHostsFile=/dev/null", "ConnectTimeout=5",
      "LogLevel=ERROR", "ControlPath=none", "IdentityAgent=none",
    ]
    let words =
      ["ssh", "-F", "none", "-T", "-p", listener.port, "-l", user]
      + options.flatMap { ["-o", $0] } + [listener.host, "exit"]
    guard let said = machine.run(words).value?.errors else { return .other }
    if said.contains("Connection refused") { return .notListening }
    let denied = said.components(between: "Permission denied (", and: ")")
    return denied.map { .offers(Set($0.split(separator: ",").map(String.init))) } ?? .other
  }

  // MARK: telling it

  /// Tells sshd to reload and returns its process ID, if known. An sshd that is started for each
  /// connection needs no reload; what it offers shows that.
  private func tell(_ settings: SSHSettings, otherwise fate: String) throws(SSHTrouble) -> Int32? {
    if machine.isRunBySystemd {
      for unit in ["ssh.service", "sshd.service"] {
        guard machine.answer(["systemctl", "is-active", unit]) != nil else { continue }
        guard let done = machine.run(["systemctl", "reload", unit]).value, done.status == 0 else {
          throw .notReloaded("systemctl reload \(unit) failed; \(fate)")
        }
        let main = machine.answer(["systemctl", "show", "-P", "MainPID", unit])
        return main.flatMap(Int32.init(line:))
      }
    }
    let path = settings.written("pidfile")
    guard let process = machine.text(path).value.flatMap(Int32.init(line:)), process > 1,
      machine.text("/proc/\(process)/comm").value == "sshd\n"
    else { return nil }
    if kill(process, SIGHUP) != 0 {
      throw .notReloaded(
        "sshd (process \(process)) cannot be told to reload: errno \(errno); \(fate)")
    }
    return process
  }

  /// The argument of `-f` in the command line of the process; nil if it is unknown or the usual
  /// file.
  private func file(of process: Int32) -> String? {
    let words = (machine.text("/proc/\(process)/cmdline").value ?? "")
      .split { $0 == " " || $0 == "\0" }.map(String.init)
    guard let index = words.firstIndex(of: "-f"), index + 1 < words.count else { return nil }
    return words[index + 1]
  }
}

/// The address at which a client on this machine reaches sshd.
private struct Listener {
  let host, port: String

  var text: String { "\(host):\(port)" }

  /// Of several addresses, one that a client on this machine can always reach, with its own port.
  init(_ settings: SSHSettings) {
    let all = settings.all("listenaddress").map { address in
      let colon = address.lastIndex(of: ":") ?? address.endIndex
      return (
        host: address[..<colon].filter { $0 != "[" && $0 != "]" },
        port: String(address[colon...].dropFirst())
      )
    }
    let known = [
      ("0.0.0.0", "127.0.0.1"), ("127.0.0.1", "127.0.0.1"), ("::", "::1"), ("::1", "::1"),
    ]
    for (listening, reached) in known {
      if let one = all.first(where: { $0.host == listening }) {
        (host, port) = (reached, one.port)
        return
      }
    }
    (host, port) = (all.first?.host ?? "127.0.0.1", all.first?.port ?? "22")
  }
}

extension Int32 {
  /// A number on a line of its own.
  fileprivate init?(line: String) {
    guard let number = Int32(line.filter { $0 != "\n" }) else { return nil }
    self = number
  }
}

extension String {
  /// The text between the last occurrence of `start` and `end`.
  fileprivate func components(between start: String, and end: Character) -> String? {
    guard let line = split(separator: "\n").last(where: { $0.contains(start) }),
      let range = line.firstRange(of: start)
    else { return nil }
    return String(line[range.upperBound...].prefix { $0 != end })
  }
}
