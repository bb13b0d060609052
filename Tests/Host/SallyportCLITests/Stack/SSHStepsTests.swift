import Foundation
import Glibc
import SallyportSupport
import Testing

@testable import PAMStack
@testable import SallyportCLI
@testable import SallyportDoctor

@Suite struct `Between the steps of sshd` {
  private let machine: PamBench
  private let sshd: FakeSSHD
  private let keyCode = SSHStage(method: .keyCode)
  private let keyAlone = SSHStage(method: .keyCode, passing: .keyAlone)

  init() throws {
    machine = try PamBench()
    sshd = try FakeSSHD(machine)
  }

  private func pam() -> String { machine.read("/etc/pam.d/sshd") ?? "" }

  // MARK: who gets in

  private static let closed = [
    "authenticationmethods publickey,password",
    "authenticationmethods publickey,keyboard-interactive\nkbdinteractiveauthentication yes",
    "authenticationmethods password", "pubkeyauthentication no",
  ]

  // decisive
  // shows: sshd-killed
  @Test(arguments: closed, ["key+code", "key+password+code"])
  func `a key alone is never enough where it was not`(settings: String, method: String) throws {
    sshd.settings = settings + "\n" + FakeSSHD.debian
    let before = try machine.content()
    #expect(machine.run("enable", "sshd", "--sshd", method, "--yes").status == 0)
    #expect(machine.run("disable", "sshd", "--yes").status == 0)
    #expect(!sshd.ways.isEmpty && !sshd.ways.contains { $0.contains(["publickey"]) })
    #expect(try machine.content() == before && sshd.dropIn == nil)
  }

  // shows: sshd-killed
  @Test func `nor on the way from the password and a code to a key as well`() {
    #expect(machine.run("enable", "sshd", "--yes").status == 0)
    let count = sshd.ways.count
    let done = machine.run("enable", "sshd", "--sshd", "key+password+code", "--yes")
    #expect(done.status == 0 && done.terminal.isWatching)
    #expect(sshd.dropIn == SSHStage(method: .keyPasswordCode).text)
    #expect(sshd.ways.count >= count + 4)
    #expect(!sshd.ways[count...].contains { $0.contains(["publickey"]) })
  }

  @Test func `nor where a Match block asks somebody for more`() throws {
    sshd.matches["alice"] = "authenticationmethods publickey,password"
    try machine.write(
      "/etc/ssh/sshd_config",
      "Include /etc/ssh/sshd_config.d/*.conf\nMatch User alice\nUsePAM yes\n")
    let survey = try SSHSurvey(
      of: Machine(root: machine.root, run: machine.programs),
      SSHConfiguration(of: Machine(root: machine.root)),
      AccountFacts(of: Machine(root: machine.root)), people: ["alice"])
    #expect(survey.base.letsKeysAlone && !survey.letsKeysAlone)
  }

  // MARK: what fails is taken back

  // shows: disable-sshd
  @Test func `disable that cannot write PAM's lines leaves all as it was`() throws {
    #expect(machine.run("enable", "sshd", "--sshd", "key+code", "--yes").status == 0)
    let changed = pam() + "# somebody else's\n"
    let (file, root) = ("/etc/pam.d/sshd", machine)
    sshd.reloaded = { try? root.write(file, changed) }
    #expect(machine.run("disable", "sshd", "--yes").status == 75)
    #expect(sshd.dropIn == keyCode.text && sshd.read == keyCode.text)
    #expect(sshd.events.count == 4 && pam() == changed)
  }

  // shows: disable-sshd
  @Test func `disable that sshd may not have read leaves all as it was`() {
    #expect(machine.run("enable", "sshd", "--sshd", "key+code", "--yes").status == 0)
    sshd.failing = [3]
    let (lines, done) = (pam(), machine.run("disable", "sshd", "--yes"))
    #expect(done.status == 78 && done.terminal.isWatching)
    #expect(sshd.dropIn == keyCode.text && sshd.read == keyCode.text)
    #expect(sshd.events.count == 4 && pam() == lines)
  }

  @Test func `where sshd needs our file nobody with a key is kept out after disable`() {
    #expect(machine.run("enable", "sshd", "--sshd", "key+code", "--yes").status == 0)
    sshd.needsOurs = true
    for _ in 0..<2 {
      let done = machine.run("disable", "sshd", "--yes")
      #expect(done.status == 78 && done.aside.contains("sshd's settings are still there: sshd"))
      #expect(done.aside.contains("without ours"))
      #expect(sshd.dropIn == keyAlone.text && sshd.read == keyAlone.text)
      #expect(!pam().contains("pam_sallyport"))
    }
    sshd.needsOurs = false
    #expect(machine.run("disable", "sshd", "--yes").status == 0 && sshd.dropIn == nil)
  }

  @Test func `a service that was off before stays off where sshd's settings cannot be undone`() {
    #expect(machine.run("enable", "sudo", "sshd", "--yes").status == 0)
    sshd.needsOurs = true
    #expect(machine.run("disable", "sudo", "sshd", "--yes").status == 78)
    #expect(machine.read("/etc/pam.d/sudo")?.contains("pam_sallyport") == false)
  }

  @Test func `an sshd that keeps the settings after they were removed is an error`() {
    #expect(machine.run("enable", "sshd", "--yes").status == 0)
    sshd.reloads = false
    let done = machine.run("disable", "sshd", "--yes")
    #expect(done.status == 78 && done.aside.contains("; \(SSHStage.path) was removed\n"))
    #expect(sshd.dropIn == nil && !pam().contains("pam_sallyport"))
  }

  @Test func `an sshd that does not run and has no directory is turned off all the same`() throws {
    #expect(machine.run("enable", "sshd", "--sshd", "key+code", "--yes").status == 0)
    (sshd.isListening, sshd.directory) = (false, "/run/sshd")
    let count = sshd.events.count
    let done = machine.run("disable", "sshd", "--yes")
    #expect(done.status == 0 && done.aside.isEmpty, "\(done.aside)")
    #expect(sshd.dropIn == nil && sshd.events.count == count)
    #expect(!pam().contains("pam_sallyport"))
  }

  @Test func `where sshd is no longer installed its settings go all the same`() {
    #expect(machine.run("enable", "sshd", "--sshd", "key+code", "--yes").status == 0)
    machine.programs = { _ in .absent }
    let done = machine.run("disable", "sshd", "--yes")
    #expect(done.status == 0 && done.aside.isEmpty, "\(done.aside)")
    #expect(sshd.dropIn == nil && !pam().contains("pam_sallyport"))
  }

  @Test func `a file that somebody changed keeps the lines that suit it`() throws {
    #expect(machine.run("enable", "sshd", "--sshd", "key+code", "--yes").status == 0)
    try machine.write(SSHStage.path, keyCode.text + "UseDNS no\n")
    let lines = pam()
    #expect(machine.run("disable", "sshd", "--yes").status == 73)
    #expect(pam() == lines)
  }

  @Test func `enable goes back by the way it came`() throws {
    let before = try machine.content()
    sshd.failing = [2]
    #expect(machine.run("enable", "sshd", "--sshd", "key+code", "--yes").status == 78)
    #expect(sshd.events == ["reload", "reload, PAM asks", "reload, PAM asks", "reload"])
    #expect(sshd.ways.allSatisfy { $0.contains(["publickey"]) || $0 == [keyThenPrompts] })
    #expect(try machine.content() == before && sshd.dropIn == nil && sshd.read.isEmpty)
  }

  private let keyThenPrompts = ["publickey", "keyboard-interactive"]

  @Test func `where PAM's lines stay sshd's settings suit them`() throws {
    sshd.failing = [2]
    let (file, root, sshd) = ("/etc/pam.d/sshd", machine, sshd)
    sshd.reloaded = {
      // Somebody else makes a directory of the name that a new file is written by.
      guard sshd.events.count == 2 else { return }
      try? FileManager.default.createDirectory(
        atPath: root.root + "/etc/pam.d/.sshd.sallyport-new/x", withIntermediateDirectories: true)
    }
    #expect(machine.run("enable", "sshd", "--sshd", "key+code", "--yes").status == 78)
    #expect(machine.read(file)?.contains("after-key") == true)
    #expect(sshd.dropIn == keyAlone.text && sshd.read == keyAlone.text)
  }

  // MARK: others

  // shows: pam-lock
  @Test func `a lock that anybody can hold stops nobody, root's does`() throws {
    for path in ["/etc/pam.d", "/etc/ssh"] {
      let directory = try OpenFile(machine.root + path, O_RDONLY | O_DIRECTORY)
      #expect(flock(directory.number, LOCK_EX | LOCK_NB) == 0)
      #expect(machine.run("enable", "sshd", "--yes").status == 0)
      #expect(machine.run("disable", "sshd", "--yes").status == 0)
      try directory.finish()
    }
    let path = machine.root + PamLock.path
    let facts = try FileManager.default.attributesOfItem(atPath: path)
    #expect(facts[.posixPermissions] as? Int == 0o600)
    let file = try OpenFile(path, O_RDWR)
    #expect(flock(file.number, LOCK_EX | LOCK_NB) == 0)
    let refused = machine.run("enable", "sudo", "--yes")
    try file.finish()
    #expect(refused.status == 75 && refused.aside.contains("being changed by another command"))
  }

  // shows: key-and-code
  @Test func `a policy that believes no key in sshd goes with no key and code`() throws {
    try FileManager.default.createDirectory(
      atPath: machine.root + "/etc/security", withIntermediateDirectories: true)
    try machine.write("/etc/security/sallyport.conf", "[default]\nsshd_services = ssh-other\n")
    let refused = machine.run("enable", "sshd", "--sshd", "key+code", "--yes")
    #expect(refused.status == 78 && refused.aside.contains("sshd_services"))
    #expect(sshd.dropIn == nil && machine.run("enable", "sshd", "--yes").status == 0)
  }

  @Test func `a long name is asked for as it is`() throws {
    let name = String(repeating: "a", count: 80)
    sshd.matches[name] = "authenticationmethods publickey"
    try machine.write(
      "/etc/ssh/sshd_config",
      "Include /etc/ssh/sshd_config.d/*.conf\nMatch User \(name)\nUsePAM yes\n")
    _ = try machine.bench.enroll(name)
    let refused = machine.run("enable", "sshd", "--yes")
    #expect(refused.status == 78 && sshd.dropIn == nil)
  }
}
