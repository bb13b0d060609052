import Foundation
import SallyportCore
import SallyportSupport
import Testing

@testable import SallyportCLI
@testable import SallyportDoctor

/// `pam enable --revert-in`, on machines whose timers do not run by themselves.
@Suite struct `A change that waits to be confirmed` {
  private let machine: PamBench
  private let before: [String: String]

  init() throws {
    machine = try PamBench()
    for path in ["/etc/security", "/proc/self"] {
      try FileManager.default.createDirectory(
        atPath: machine.root + path, withIntermediateDirectories: true)
    }
    before = try machine.content()
  }

  private var record: String? { machine.read(PendingRevert.path) }

  private func enable(_ services: String..., method: String? = nil) -> Bench.Outcome {
    let more = method.map { ["--sshd", $0] } ?? []
    return machine.run(
      words: ["enable"] + services + more + ["--yes", "--revert-in", "10m"])
  }

  /// What the timer does when the time has come.
  private func fire() throws -> Bench.Outcome {
    let words = try #require(machine.detached.last)
    let id = try #require(words.firstIndex(of: "--due").map { words[$0 + 1] })
    return machine.run("revert", "--due", id)
  }

  @Test func `is taken back by the timer`() throws {
    let done = enable("sudo", "su")
    #expect(done.status == 0, "\(done.aside)")
    #expect(done.answer.contains("taken back in 10 min unless you confirm it from a new login:\n"))
    #expect(done.answer.hasSuffix("      sudo sallyport pam confirm\n"))
    let words = try #require(machine.detached.last)
    #expect(machine.detached.count == 1 && words.suffix(2) == ["--after", "600"])
    #expect(machine.run("status").answer.contains("sudo, su is taken back at "))
    #expect(try fire().status == 0)
    #expect(try machine.content() == before)
    #expect(record == nil)
    #expect(try fire().status == 0, "a second one finds nothing to do")
    let late = machine.run("confirm")
    #expect(late.status == 66)
    #expect(
      late.aside.hasPrefix(
        "sallyport: no change waits to be confirmed: what is not confirmed in time is taken back\n")
    )
    #expect(late.aside.contains("hint: journalctl -t sallyport  # says when"), "\(late.aside)")
    #expect(acts == ["pam-enable", "pam-revert"].flatMap(both(of: "service=sudo service=su")))
  }

  private var acts: [String] { machine.acts.map { $0.replacing("by=root ", with: "") } }

  private func both(of services: String) -> (String) -> [String] {
    { verb in ["will", "done"].map { "act=\(verb) \(services) via=command stage=\($0)" } }
  }

  @Test func `is an act that names the services, and so is its confirmation`() throws {
    #expect(enable("sudo").status == 0 && machine.run("confirm").status == 0)
    #expect(machine.run("disable", "sudo", "--yes").status == 0)
    let verbs = ["pam-enable", "pam-confirm", "pam-disable"]
    #expect(acts == verbs.flatMap(both(of: "service=sudo")))
    #expect(machine.run("disable", "sudo", "--yes").status != 0)
    #expect(machine.run("enable", "su", "--dry-run").status == 0)
    #expect(machine.acts.count == 6, "what changes nothing is none")
  }

  // decisive
  @Test func `stays once it is confirmed`() throws {
    #expect(enable("sudo").status == 0)
    let on = try machine.content()
    #expect(machine.run("confirm").answer == "Confirmed: the change of sudo stays.\n")
    #expect(record == nil)
    #expect(try fire().status == 0)
    #expect(try machine.content() == on)
    #expect(machine.run("confirm").status == 66)
    #expect(machine.run("revert").status == 66)
  }

  @Test func `is not taken back by the timer of another`() throws {
    #expect(enable("sudo").status == 0)
    #expect(machine.run("confirm").status == 0)
    #expect(enable("su").status == 0)
    let on = try machine.content()
    let first = try #require(machine.detached.first)
    let id = try #require(first.firstIndex(of: "--due").map { first[$0 + 1] })
    #expect(machine.run("revert", "--due", id).status == 0)
    #expect(try machine.content() == on)
  }

  @Test func `is one at a time`() throws {
    #expect(enable("sudo").status == 0)
    let on = try machine.content()
    let second = enable("su")
    #expect(second.status == 73 && second.aside.contains("the change of sudo waits"))
    #expect(try machine.content() == on)
  }

  @Test func `is forgotten when it is turned off by hand`() throws {
    #expect(enable("sudo", "su").status == 0)
    #expect(machine.run("disable", "su", "--yes").status == 0)
    #expect(record != nil, "sudo still waits")
    #expect(try fire().status == 0)
    #expect(try machine.content() == before)
    #expect(enable("sudo").status == 0)
    #expect(machine.run("disable", "sudo", "--yes").status == 0)
    #expect(record == nil)
  }

  @Test func `is not made where the timer cannot be started`() throws {
    machine.detachProblem = SystemError(EAGAIN)
    #expect(enable("sudo").status == 74)
    #expect(try machine.content() == before)
    #expect(record == nil)
  }

  @Test func `leaves nothing to take back where it fails`() throws {
    let sshd = try FakeSSHD(machine)
    sshd.reloads = false
    #expect(enable("sshd").status == 78)
    #expect(record == nil)
    #expect(try machine.content() == before)
  }

  @Test func `is taken back by systemd where it runs`() throws {
    let sshd = try FakeSSHD(machine)
    #expect(enable("sshd").status == 0)
    #expect(machine.detached.isEmpty)
    let words = try #require(sshd.timers.first)
    #expect(words.starts(with: ["systemd-run", "--quiet", "--collect"]))
    #expect(words.contains("--on-active=600s"))
    let id = try #require(words.last)
    #expect(words.suffix(4).dropLast() == ["pam", "revert", "--due"])
    #expect(machine.run("revert", "--due", id).status == 0)
    #expect(try machine.content() == before)
    #expect(sshd.dropIn == nil)
  }

  @Test func `is taken back to the method that sshd had`() throws {
    let sshd = try FakeSSHD(machine)
    #expect(machine.run("enable", "sshd", "--yes").status == 0)
    let on = try machine.content()
    #expect(enable("sshd", method: "key+password+code").status == 0)
    #expect(sshd.dropIn == SSHStage(method: .keyPasswordCode).text)
    #expect(machine.run("revert").status == 0)
    #expect(sshd.dropIn == SSHStage(method: .passwordCode).text)
    #expect(try machine.content() == on)
  }

  @Test func `is not confirmed by the login that made it`() throws {
    let sshd = try FakeSSHD(machine)
    try machine.write("/proc/self/sessionid", "41\n")
    #expect(enable("sshd").status == 0)
    #expect(machine.run("confirm").status == 77)
    #expect(record != nil)
    try machine.write("/proc/self/sessionid", "42\n")
    #expect(machine.run("confirm").status == 0)
    #expect(record == nil && sshd.dropIn != nil)
  }

  @Test(arguments: ["0s", "10", "m", "-1m", "25h", "99999999999999999999s", "1d", "10M"])
  func `has a time within a day`(time: String) {
    let done = machine.run("enable", "sudo", "--yes", "--revert-in=\(time)")
    #expect(done.status == 64)
    #expect(done.aside.contains("expected a time up to 24h, such as 90s, 10m or 2h"))
    #expect(done.aside.hasSuffix("hint: sallyport pam enable --help\n"))
    #expect(record == nil)
  }

  @Test func `is told of by doctor, and when its time is over without it`() throws {
    struct Answer: Decodable {
      struct Finding: Decodable {
        struct Fix: Decodable { let text: String }
        let id, severity: String
        let fixes: [Fix]
      }
      let findings: [Finding]
    }
    func found() throws -> [String] {
      let all = try machine.doctor().json(Answer.self).findings.filter { $0.id == "pam-revert" }
      return all.flatMap { [$0.severity] + $0.fixes.map(\.text) }
    }
    #expect(enable("sudo").status == 0)
    let (confirm, revert) = ("sallyport pam confirm", "sallyport pam revert")
    #expect(try found() == ["warning", confirm, revert])
    machine.bench.now = UnixTime(machine.bench.now.seconds + 721)
    #expect(try found() == ["error", revert, confirm])
    machine.bench.now = UnixTime(machine.bench.now.seconds - 721)
    try FileManager.default.createDirectory(
      atPath: "\(machine.root)/proc/sys/kernel/random", withIntermediateDirectories: true)
    try machine.write("/proc/sys/kernel/random/boot_id", "another\n")
    #expect(try found() == ["error", revert, confirm])
    try machine.write(PendingRevert.path, "garbage\n")
    #expect(try found() == ["unseen", "rm \(PendingRevert.path)"])
    #expect(machine.run("confirm").status == 78)
  }
}
