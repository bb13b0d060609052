import Foundation
import Testing

@testable import SallyportCLI

@Suite struct `The services of one program` {
  private let machine: PamBench

  init() throws {
    var files = Stacks.debian
    files["sudo-i"] = files["sudo"]
    machine = try PamBench(files)
  }

  private func asks(_ service: String) -> Bool { !machine.ours(service).isEmpty }

  @Test(arguments: ["sudo", "sudo-i", "sudo-rs"])
  func `are turned on and off together, after one question`(typed: String) throws {
    let before = try machine.content()
    let on = machine.run("enable", typed, answers: "y")
    #expect(on.status == 0 && on.terminal.prompts.count == 1, "\(on.aside)")
    #expect(asks("sudo") && asks("sudo-i"))
    #expect(on.answer.contains("/etc/pam.d/sudo\n") && on.answer.contains("/etc/pam.d/sudo-i\n"))
    #expect(on.answer.hasSuffix("Undo: sallyport pam disable \(typed)\n"), "\(on.answer)")
    let off = machine.run("disable", typed, answers: "y")
    #expect(off.status == 0 && off.terminal.prompts.count == 1, "\(off.aside)")
    #expect(try machine.content() == before)
  }

  @Test func `are left alone with --only`() throws {
    let on = machine.run("enable", "sudo", "--only", "--yes")
    #expect(on.status == 0 && asks("sudo") && !asks("sudo-i"), "\(on.aside)")
    #expect(on.answer.hasSuffix("Undo: sallyport pam disable sudo --only\n"))
    #expect(machine.run("enable", "sudo", "--yes").status == 0)
    #expect(machine.run("disable", "sudo-i", "--only", "--yes").status == 0)
    #expect(asks("sudo") && !asks("sudo-i"))
  }

  @Test func `are those too that sudoers names`() throws {
    try machine.write("/etc/pam.d/corp", Stacks.debian["sudo"].map { $0 + "\n" } ?? "")
    try machine.write(
      "/etc/sudoers", "Defaults pam_service=corp\nDefaults:bob pam_askpass_service = asked\n")
    try machine.write("/etc/pam.d/asked", "@include corp\n")
    #expect(machine.run("enable", "sudo", "--yes").status == 0)
    #expect(asks("sudo") && asks("sudo-i") && asks("corp"))
    #expect(!asks("asked"), "it includes corp, and asks by its lines")
    #expect(machine.run("disable", "corp", "--yes").status == 0)
    #expect(!asks("sudo") && !asks("sudo-i") && !asks("corp"))
  }

  @Test(arguments: ["su", "su-l"])
  func `get no second line where one includes the other`(typed: String) throws {
    let before = try machine.content()
    let on = machine.run("enable", typed, "--yes")
    #expect(on.status == 0 && asks("su") && !asks("su-l"), "\(on.aside)")
    #expect(on.answer.contains("The same in: su-l"))
    let again = machine.run("enable", typed)
    #expect(again.status == 0 && again.answer.hasSuffix("Nothing was changed.\n"))
    #expect(machine.run("disable", typed, "--yes").status == 0)
    #expect(try machine.content() == before)
  }

  @Test func `with files of their own get lines each`() throws {
    var files = Stacks.debian
    files["su-l"] = files["su"]
    files["remote"] = files["login"]
    let machine = try PamBench(files)
    #expect(machine.run("enable", "su", "login", "--yes").status == 0)
    for service in ["su", "su-l", "login", "remote"] {
      #expect(!machine.ours(service).isEmpty, "\(service)")
    }
  }

  @Test(arguments: ["pkexec", "run0", "polkit-1"])
  func `of polkit are one, whatever asks it`(typed: String) throws {
    try machine.write("/usr/lib/pam.d/polkit-1", (Stacks.debian["other"] ?? "") + "\n")
    let on = machine.run("enable", typed, "--yes")
    #expect(on.status == 0 && on.answer.contains("\n      pkexec true\n"), "\(on.answer)")
    #expect(asks("polkit-1"))
    #expect(machine.run("disable", typed, "--yes").status == 0)
    #expect(machine.read("/etc/pam.d/polkit-1") == nil)
  }

  @Test func `of which one is on from before leave it as it is and take the others`() throws {
    #expect(machine.run("enable", "sudo-i", "--only", "--nullok", "--yes").status == 0)
    let own = machine.ours("sudo-i")
    let on = machine.run("enable", "sudo", "--yes")
    #expect(on.status == 0 && asks("sudo"), "\(on.aside)")
    #expect(on.answer.contains("sudo-i already asks for a code."), "\(on.answer)")
    #expect(machine.ours("sudo-i") == own)
    #expect(machine.run("disable", "sudo", "--only", "--yes").status == 0)
    #expect(machine.run("disable", "sudo", "--yes").status == 0, "sudo-i is on still")
    #expect(!asks("sudo-i"))
    #expect(machine.run("disable", "sudo", "--yes").status == 66)
  }

  @Test func `of which one is refused are all left, and --only is named`() throws {
    try machine.write("/etc/pam.d/sudo-i", "auth required pam_permit.so\n")
    let before = try machine.content()
    let on = machine.run("enable", "sudo", "--yes")
    #expect(on.status == 78, "\(on.answer)")
    #expect(on.aside.contains("sudo-i has no required first factor"))
    #expect(on.aside.contains("hint: sallyport pam enable sudo --only  # leaves sudo-i without"))
    #expect(try machine.content() == before)
  }

  @Test func `of which one lets nobody in need no code there`() throws {
    try machine.write("/etc/pam.d/sudo-i", "auth required pam_deny.so\n")
    #expect(machine.run("enable", "sudo", "--yes").status == 0)
    #expect(asks("sudo") && !asks("sudo-i"))
    #expect(machine.run("disable", "sudo", "--yes").status == 0)
  }

  @Test func `that one run left half done are mended by the next`() throws {
    #expect(machine.run("enable", "sudo", "--yes").status == 0)
    let whole = try machine.content()
    for service in ["sudo", "sudo-i"] {
      #expect(machine.run("disable", service, "--only", "--yes").status == 0)
      let told = machine.doctor("--json").answer
      #expect(told.contains("runs the service \(service), which asks for no code"), "\(told)")
      #expect(machine.run("enable", "sudo", "--yes").status == 0)
      #expect(try machine.content() == whole)
    }
  }

  // decisive
  /// As gdm 43 of Debian 12 has them.
  // decisive
  @Test func `of gdm are those for cards and fingers too`() throws {
    let session = "account required pam_unix.so\nsession required pam_unix.so\n"
    try machine.write("/etc/pam.d/gdm-password", "auth required pam_unix.so\n" + session)
    try machine.write(
      "/etc/pam.d/gdm-fingerprint",
      "auth requisite pam_nologin.so\nauth required pam_succeed_if.so user != root quiet_success\n"
        + "auth required pam_fprintd.so\nauth optional pam_gnome_keyring.so\n" + session)
    try machine.write(
      "/etc/pam.d/gdm-smartcard",
      "auth [success=ok user_unknown=ignore default=bad] pam_succeed_if.so user != root\n"
        + "auth required pam_sss.so allow_missing_name require_cert_auth\n"
        + "auth requisite pam_nologin.so\nauth optional pam_gnome_keyring.so\n" + session)
    let on = machine.run("enable", "gdm-password", "--yes")
    #expect(on.status == 0, "\(on.aside)")
    #expect(["gdm-password", "gdm-fingerprint", "gdm-smartcard"].allSatisfy(asks), "\(on.answer)")
    #expect(machine.run("disable", "gdm-fingerprint", "--only", "--yes").status == 0)
    #expect(machine.doctor().answer.contains("gdm with a fingerprint runs the service"))
  }

  @Test func `that log in without anybody there are told, and never changed`() throws {
    let gdm = Stacks.debian["other"] ?? ""
    try machine.write("/etc/pam.d/gdm-password", gdm + "\n")
    try machine.write("/etc/pam.d/gdm-autologin", "auth required pam_permit.so\n" + gdm + "\n")
    let on = machine.run("enable", "gdm-password", "--yes")
    #expect(on.status == 0 && asks("gdm-password") && !asks("gdm-autologin"), "\(on.aside)")
    #expect(on.answer.contains("warning: gdm-autologin logs in without anybody there"))
    let other = machine.run("enable", "gdm-autologin", "--force", "--yes")
    #expect(other.status == 78 && !asks("gdm-autologin"))
    #expect(other.aside.contains("gdm-autologin logs in without anybody there"))
  }

  @Test func `without a file are told of if other lets in`() throws {
    let machine = try PamBench()
    let on = machine.run("enable", "sudo", "--yes")
    #expect(on.answer.contains("warning: sudo -i runs the service sudo-i, which has no file"))
    try machine.write("/etc/pam.d/other", "auth required pam_deny.so\n")
    #expect(machine.run("disable", "sudo", "--yes").status == 0)
    #expect(!machine.run("enable", "sudo", "--yes").answer.contains("warning: sudo -i"))
  }
}
