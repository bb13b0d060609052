import Foundation
import Glibc
import SallyportCore
import TestSupport
import Testing

@testable import PAMStack
@testable import SallyportCLI
@testable import SallyportDoctor

/// What `pam enable` wrote and somebody else took away.
@Suite struct `A service that was turned on` {
  private let machine: PamBench

  init() throws { machine = try PamBench() }

  private struct Answer: Decodable {
    struct Finding: Decodable {
      struct Fix: Decodable { let text: String }
      let id, severity, text: String
      let fixes: [Fix]
    }
    struct Lost: Decodable { let service, text: String }
    let findings: [Finding]?
    let lost: [Lost]?
  }

  private func lost() throws -> [String] {
    let found = try machine.doctor().json(Answer.self).findings ?? []
    return found.filter { ["service-lost", "service-record"].contains($0.id) }
      .flatMap { ["\($0.severity): \($0.text)"] + $0.fixes.map(\.text) }
  }

  private func check() -> Bench.Outcome { machine.run("status", "--check", "--settle", "0") }

  private func enable(_ words: String...) {
    let done = machine.run(words: ["enable"] + words + ["--yes"])
    #expect(done.status == 0, "\(done.aside)")
  }

  /// Puts the files of pam.d back as their packages have them, and the copies away.
  private func restore(_ services: String..., copies: Bool = false) throws {
    for service in services {
      let text = try #require(Stacks.debian[service])
      try machine.write("/etc/pam.d/\(service)", text + "\n")
      let names = try machine.content().keys.filter { $0.hasPrefix("\(service).before") }
      for name in names where !copies {
        try FileManager.default.removeItem(atPath: "\(machine.root)/etc/pam.d/\(name)")
      }
    }
  }

  private func record(_ service: String) -> String? {
    machine.read(ServiceRecord.path(of: service))
  }

  @Test func `is recorded until it is turned off`() throws {
    enable("sudo", "su")
    let text = try #require(record("sudo"))
    let read = try #require(ServiceRecord(text: text))
    #expect(read.state == .enabled && read.asksEverybody && read.service == "sudo")
    #expect(read.phases == [.auth, .account, .session], "\(text)")
    let facts = try FileManager.default.attributesOfItem(
      atPath: machine.root + ServiceRecord.path(of: "sudo"))
    #expect(facts[.posixPermissions] as? Int == 0o600)
    #expect(try lost() == [] && check().status == 0)
    #expect(machine.run("disable", "sudo", "--yes").status == 0)
    #expect(record("sudo") == nil && record("su") != nil)
    #expect(try lost() == [] && check().status == 0 && machine.logged == [])
  }

  // decisive
  @Test func `is told of by doctor and by status once its lines are gone`() throws {
    enable("sudo")
    try restore("sudo")
    let found = try lost()
    #expect(found.count == 3)
    #expect(
      found[0].hasPrefix(
        "error: sudo no longer asks for a code: /etc/pam.d/sudo has lost the line that pam enable "
          + "wrote, since about 2"), "\(found)")
    #expect(found.dropFirst() == ["sallyport pam enable sudo", "sallyport pam disable sudo"])
    #expect(machine.doctor().status == 2)
    #expect(machine.run("status").answer.hasPrefix("sudo no longer asks for a code"))
    let answer = try machine.run("status", "--json").json(Answer.self)
    #expect(answer.lost?.map(\.service) == ["sudo"])
    enable("sudo")
    #expect(try lost() == [] && check().status == 0)
  }

  // decisive
  @Test func `is told of to the log once for each change`() throws {
    enable("sudo", "su")
    try restore("sudo")
    let first = check()
    #expect(first.status == 1 && first.answer == "")
    #expect(first.aside.contains("hint: sallyport pam enable sudo\n"), "\(first.aside)")
    #expect(check().status == 1)
    #expect(machine.logged.count == 1 && machine.logged[0].hasPrefix("1 sudo no longer asks"))
    try restore("su")
    #expect(check().status == 1 && machine.logged.count == 2)
    enable("sudo", "su")
    #expect(check().status == 0 && machine.logged.count == 2)
    try restore("su")
    #expect(check().status == 1 && machine.logged.count == 3)
  }

  @Test func `may be turned off although its lines are gone already`() throws {
    enable("sudo")
    try restore("sudo", copies: true)
    #expect(check().status == 1)
    #expect(machine.run("disable", "sudo", "--yes").status == 0)
    #expect(try lost() == [] && check().status == 0)
    enable("su")
    try FileManager.default.removeItem(atPath: "\(machine.root)/etc/pam.d/su")
    #expect(try lost()[0].contains("su no longer asks for a code: its file is gone"))
    #expect(machine.run("disable", "su", "--yes").status == 0)
    #expect(check().status == 0)
  }

  @Test func `and turned off by hand in a changed file is not lost for its copy`() throws {
    enable("sudo")
    let text = try #require(machine.read("/etc/pam.d/sudo"))
    try machine.write("/etc/pam.d/sudo", text + "# mine\n")
    #expect(machine.run("disable", "sudo", "--yes").status == 0)
    #expect(try machine.content().keys.contains { $0.hasPrefix("sudo.before-sallyport-") })
    #expect(try lost() == [] && check().status == 0)
    enable("sudo")
    try restore("sudo", copies: true)
    #expect(check().status == 1)
  }

  @Test func `before there were records is known by the copy of its file`() throws {
    enable("sudo")
    try FileManager.default.removeItem(atPath: machine.root + ServiceRecord.path(of: "sudo"))
    #expect(try lost() == [])
    try restore("sudo", copies: true)
    #expect(check().status == 1)
    let text = try lost()[0]
    #expect(text.contains("but /etc/pam.d/sudo.before-sallyport-"), "\(text)")
    enable("sudo")
    #expect(try lost() == [] && record("sudo") != nil)
  }

  @Test(arguments: ["", "garbage\n", "version = 2\nservice = sudo\nenabled = 1\nline = auth x\n"])
  func `is looked at although its record is damaged`(text: String) throws {
    enable("sudo")
    try machine.write(ServiceRecord.path(of: "sudo"), text)
    #expect(try lost().first?.hasPrefix("unseen: \(ServiceRecord.path(of: "sudo"))") == true)
    #expect(check().status == 0)
    try restore("sudo")
    #expect(check().status == 1)
    enable("sudo")
    #expect(try lost() == [] && record("sudo").flatMap { ServiceRecord(text: $0) } != nil)
  }

  @Test func `is recorded again where it asks and the record is gone`() throws {
    enable("sudo")
    try FileManager.default.removeItem(atPath: "\(machine.root)\(ServiceRecord.directory)")
    enable("sudo")
    #expect(record("sudo") != nil)
  }

  @Test func `is turned on although it cannot be recorded`() throws {
    try FileManager.default.createDirectory(
      atPath: "\(machine.root)/var/lib", withIntermediateDirectories: true)
    try machine.write("/var/lib/sallyport", "")
    let done = machine.run("enable", "sudo", "--yes")
    #expect(done.status == 0 && done.aside.contains("warning: /var/lib/sallyport/services/sudo"))
    #expect(!machine.ours("sudo").isEmpty)
  }

  @Test func `is lost if a line before ours ends the stack, or one of ours is gone`() throws {
    enable("sudo")
    let text = try #require(machine.read("/etc/pam.d/sudo"))
    try machine.write("/etc/pam.d/sudo", "auth sufficient pam_permit.so\n" + text)
    #expect(try lost().first?.contains("no longer asks everybody for a code") == true)
    let lines = text.split(separator: "\n").filter {
      !($0.hasPrefix("account") && $0.contains("pam_sallyport"))
    }
    try machine.write("/etc/pam.d/sudo", lines.joined(separator: "\n") + "\n")
    #expect(try lost().first?.contains("has lost our account line") == true)
  }

  @Test func `in sshd is lost with our file, or with what sshd makes of it`() throws {
    let sshd = try FakeSSHD(machine)
    enable("sshd")
    #expect(record("sshd")?.contains("\nsshd = password+code\n") == true)
    #expect(check().status == 0)
    let text = try #require(sshd.dropIn)
    try FileManager.default.removeItem(atPath: machine.root + SSHStage.path)
    #expect(check().status == 1 && machine.logged[0].contains("sshd lacks \"Kbd"))
    try machine.write(SSHStage.path, text)
    #expect(check().status == 0)
    sshd.settings = "usepam no\n" + sshd.settings
    try machine.write(SSHStage.path, text.replacing("UsePAM yes\n", with: ""))
    #expect(check().status == 1)
  }

  // decisive
  @Test func `in sshd is neither lost nor all right while sshd tells no settings`() throws {
    let sshd = try FakeSSHD(machine)
    enable("sshd")
    let answers = machine.programs
    let silent: ([String]) -> Probe<CommandOutput> = { words in
      words.contains("-T")
        ? .seen(CommandOutput(status: 255, errors: "no /run/sshd")) : answers(words)
    }
    machine.programs = silent
    #expect(check().status == 1 && check().status == 1)
    #expect(machine.logged == ["4 sshd's settings cannot be seen: no /run/sshd"])
    machine.programs = answers
    #expect(check().status == 0)
    try FileManager.default.removeItem(atPath: machine.root + SSHStage.path)
    #expect(check().status == 1 && machine.logged.count == 2)
    machine.programs = silent
    #expect(check().status == 1 && machine.logged.count == 3)
    machine.programs = answers
    let again = withExtendedLifetime(sshd) { check() }
    #expect(again.status == 1 && machine.logged.count == 3, "\(machine.logged)")
  }

  @Test func `is looked at once sshd's unit has made what sshd needs`() throws {
    let unit = try textOfSources("pam/sallyport-watch.service")
    let after = unit.split(separator: "\n").filter { $0.hasPrefix("After=") }
    #expect(after.contains { $0.contains("ssh.service") && $0.contains(" sshd.service") })
  }

  @Test func `in sshd is known by our file of before there were records`() throws {
    let sshd = try FakeSSHD(machine)
    enable("sshd")
    try FileManager.default.removeItem(atPath: machine.root + ServiceRecord.path(of: "sshd"))
    try restore("sshd")
    #expect(check().status == 1)
    #expect(try lost()[0].contains("but \(SSHStage.path) is there"))
    enable("sshd")
    #expect(check().status == 0)
    #expect(machine.run("disable", "sshd", "--yes").status == 0)
    #expect(check().status == 0 && record("sshd") == nil && sshd.dropIn == nil)
  }

  @Test func `with another method in sshd has that one recorded`() throws {
    let sshd = try FakeSSHD(machine)
    enable("sshd")
    enable("sshd", "--sshd", "key+password+code")
    #expect(sshd.dropIn == SSHStage(method: .keyPasswordCode).text)
    #expect(record("sshd")?.contains("\nsshd = key+password+code\n") == true)
  }

  @Test func `for a time is recorded for that time`() throws {
    for path in ["/etc/security", "/proc/self"] {
      try FileManager.default.createDirectory(
        atPath: machine.root + path, withIntermediateDirectories: true)
    }
    enable("sudo", "--revert-in", "10m")
    #expect(record("sudo") != nil)
    #expect(machine.run("revert").status == 0)
    #expect(record("sudo") == nil && check().status == 0)
    enable("sudo", "--revert-in", "10m")
    #expect(machine.run("confirm").status == 0)
    #expect(record("sudo") != nil)
  }

  @Test func `is none of the services that doctor was asked about`() throws {
    enable("sudo", "su")
    try restore("sudo")
    let words = ["--json", "su"]
    let found = try machine.doctor(words[0], words[1]).json(Answer.self).findings ?? []
    #expect(!found.contains { $0.id == "service-lost" })
    let sudo = try machine.doctor("--json", "sudo").json(Answer.self).findings?.map(\.id) ?? []
    #expect(
      sudo.filter { ["service-lost", "service-unasked"].contains($0) } == ["service-lost"])
  }

  @Test func `is looked at once its files were left alone`() throws {
    enable("sudo")
    let clock = ContinuousClock()
    let took = clock.measure {
      #expect(machine.run("status", "--check", "--settle", "2").status == 0)
    }
    #expect(took > .seconds(0.5) && took < .seconds(30))
  }

  /// `systemctl` of the unit that watches.
  private func watching() throws -> () -> [String] {
    try FileManager.default.createDirectory(
      atPath: machine.root + "/run/systemd/system", withIntermediateDirectories: true)
    var verbs: [String] = []
    machine.programs = { words in
      if words.count == 3, words[2] == "sallyport-watch.path" { verbs.append(words[1]) }
      return .absent
    }
    return {
      defer { verbs = [] }
      return verbs
    }
  }

  // decisive
  @Test func `keeps being watched while another stack has our line, recorded or not`() throws {
    let verbs = try watching()
    enable("su")
    enable("sudo")
    try FileManager.default.removeItem(atPath: machine.root + ServiceRecord.path(of: "su"))
    try restore("su-l")
    _ = verbs()
    #expect(machine.run("disable", "sudo", "--yes").status == 0)
    #expect(verbs().last == "start")
    #expect(machine.run("disable", "su", "--yes").status == 0)
    #expect(verbs().last == "stop")
  }

  // decisive
  @Test func `is recorded by the check where it was turned on before there were records`() throws {
    let verbs = try watching()
    enable("sudo")
    try FileManager.default.removeItem(atPath: "\(machine.root)\(ServiceRecord.directory)")
    for name in try machine.content().keys where name.hasPrefix("sudo.before") {
      try FileManager.default.removeItem(atPath: "\(machine.root)/etc/pam.d/\(name)")
    }
    _ = verbs()
    #expect(check().status == 0 && record("sudo") != nil && verbs() == ["start"])
    try restore("sudo")
    #expect(check().status == 1 && machine.logged.count == 1)
  }

  // decisive
  @Test func `is looked at once more if a file changes meanwhile`() throws {
    let fake = try FakeSSHD(machine)
    enable("login", "sshd")
    let sshd = machine.programs
    var isDone = false
    machine.programs = { words in
      // login was looked at before sshd is asked.
      if !isDone, words.contains("-T") {
        isDone = true
        try? self.restore("login")
      }
      return sshd(words)
    }
    let done = withExtendedLifetime(fake) { check() }
    #expect(done.status == 1 && isDone)
    #expect(machine.logged.count == 1 && machine.logged[0].contains("login no longer asks"))
  }

  @Test func `is watched wherever its files are`() throws {
    let unit = try textOfSources("pam/sallyport-watch.path")
    let watched = unit.split(separator: "\n").filter { $0.hasPrefix("PathChanged=") }
      .map { String($0.dropFirst("PathChanged=".count)) }
    #expect(watched == Machine.filesOfLogins)
  }

  // decisive
  @Test func `is lost where authselect writes what it includes`() throws {
    try FileManager.default.createDirectory(
      atPath: "\(machine.root)/etc/authselect", withIntermediateDirectories: true)
    let stack = "auth required pam_unix.so\naccount required pam_unix.so\n"
    try machine.write("/etc/authselect/system-auth", stack)
    try FileManager.default.createSymbolicLink(
      atPath: "\(machine.root)/etc/pam.d/system-auth",
      withDestinationPath: "../authselect/system-auth")
    try machine.write(
      "/etc/pam.d/sudo", "auth include system-auth\naccount include system-auth\n")
    enable("sudo")
    let machine = Machine(root: self.machine.root)
    #expect(check().status == 0)
    #expect(machine.changesOfLogins.keys.contains("/etc/authselect/system-auth"))
    try self.machine.write("/etc/authselect/system-auth", "auth sufficient pam_permit.so\n" + stack)
    #expect(check().status == 1)
  }
}
