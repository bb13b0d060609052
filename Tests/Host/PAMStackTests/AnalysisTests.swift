import Foundation
import TestSupport
import Testing

@testable import PAMStack

@Suite struct `The analysis of a stack` {
  private func findings(_ service: String, _ files: [String: String], debian: Bool = true)
    -> [String]
  {
    StackAnalysis(Stacks.parse(service, in: files, debian: debian)).findings
      .map(\.short)
  }

  // shows: enroll-after-yes, common-faults
  @Test func `a stack has these findings and no others`() throws {
    let text = try textOfSources("Tests/Vectors/stacks.txt")
    let cases = text.components(separatedBy: "\n\n").dropFirst()
    #expect(cases.count >= 30)
    for one in cases {
      let parts = one.components(separatedBy: "\n=>")
      try #require(parts.count == 2, "\(one)")
      var files = Stacks.debian
      files["x"] = parts[0]
      let found = findings("x", files).joined(separator: ", ")
      #expect(found == parts[1].trimmingCharacters(in: .whitespacesAndNewlines), "\(parts[0])")
    }
  }

  @Test func `a module that cannot be loaded keeps everybody out`() {
    var files = Stacks.debian
    files["x"] = "@include common-auth\nauth required pam_sallyport.so\n-auth optional pam_gone.so"
    let analysis = StackAnalysis(
      Stacks.parse("x", in: files),
      isMissing: { ["pam_sallyport.so", "pam_gone.so"].contains($0.module) })
    #expect(
      analysis.findings.map(\.short) == [
        "missing 2", "nobody auth", "ignoreDenied auth 2",
      ])
  }

  /// libpam reads it twice for a service of that name, which no program is; once as the fallback.
  @Test func `the fallback asks once, by the line that pam-auth-update writes`() {
    var files = Stacks.debian
    files["common-auth"]? += "\nauth required pam_sallyport.so"
    #expect(findings("other", files) == [])
    #expect(findings("nobody-knows-it", files) == [])
    files["other"]? += "\nauth required pam_sallyport.so"
    #expect(findings("other", files) == ["twice common-auth:9 other:5"])
    #expect(findings("nobody-knows-it", files) == ["twice common-auth:9 other:5"])
  }

  @Test func `Fedora's sudo ends its stack before a line after the include`() {
    let after = Stacks.with(
      "auth required pam_sallyport.so", after: "auth", in: "sudo", of: Stacks.fedora)
    #expect(
      findings("sudo", after, debian: false).prefix(2)
        == ["never sudo:3", "skipped sudo:3 by system-auth:3"])
    let before = Stacks.with(
      "auth required pam_sallyport.so", after: "#%PAM", in: "sudo", of: Stacks.fedora)
    #expect(findings("sudo", before, debian: false) == [])
  }

  @Test func `Fedora's sshd and Arch's sudo are right with a line after the first factor`() {
    let sshd = Stacks.with(
      """
      auth required pam_sallyport.so enroll
      account required pam_sallyport.so
      session required pam_sallyport.so
      """,
      after: "auth       substack", in: "sshd", of: Stacks.fedora)
    // A required pam_deny at the end of a substack lets the walk go on behind it.
    #expect(findings("sshd", sshd, debian: false) == ["wrongReaches sshd:3"])
    let sudo = Stacks.with(
      "auth required pam_sallyport.so", after: "auth", in: "sudo", of: Stacks.arch)
    #expect(findings("sudo", sudo, debian: false) == [])
  }

  @Test(arguments: ["cron", "atd", "systemd-user", "su", "su-l", "runuser", "common-account"])
  func `demand is wrong where nobody can be asked`(service: String) {
    let files = [
      service:
        """
      auth required pam_unix.so
      account required pam_sallyport.so demand
      account required pam_unix.so
      """
    ]
    #expect(findings(service, files).contains("demand \(service):2"))
    let by = ["x": "auth required pam_unix.so\naccount include \(service)"].merging(files) { $1 }
    #expect(findings("x", by).contains("demand \(service):2"))
  }

  @Test(arguments: [
    (
      "@include common-auth\nauth required pam_sallyport.so", ["prompts vsftpd:2 and common-auth:2"]
    ),
    (
      "auth required pam_sallyport.so\n@include common-auth", ["prompts vsftpd:1 and common-auth:2"]
    ),
    (
      "auth required pam_unix.so\nauth required pam_sallyport.so forward_pass",
      ["prompts vsftpd:2 and vsftpd:1"]
    ),
    (
      "auth required pam_exec.so expose_authtok /x\nauth required pam_sallyport.so",
      ["prompts vsftpd:2 and vsftpd:1"]
    ),
    (
      "auth required pam_sallyport.so forward_pass\nauth required pam_krb5.so",
      ["prompts vsftpd:1 and vsftpd:2"]
    ),
    ("auth required pam_sallyport.so forward_pass\n@include common-auth", []),
    (
      "auth required pam_sallyport.so forward_pass\nauth required pam_exec.so expose_authtok /x", []
    ),
    ("auth required pam_unix.so\nauth required pam_sallyport.so use_first_pass", []),
    (
      "auth required pam_sallyport.so forward_pass\nauth required pam_userdb.so use_first_pass", []
    ),
    (
      "auth required pam_sallyport.so forward_pass\nauth required pam_winbind.so use_first_pass", []
    ),
    (
      "auth required pam_unix.so\nauth required pam_sallyport.so use_first_pass try_first_pass",
      ["prompts vsftpd:2 and vsftpd:1"]
    ),
    ("auth required pam_exec.so /x\nauth required pam_sallyport.so", []),
    ("auth required pam_sallyport.so", []),
  ])
  func `two prompts where there is one field are found`(auth: String, found: [String]) {
    #expect(Stacks.prompts(of: "vsftpd", auth) == found)
    #expect(Stacks.prompts(of: "sudo", auth) == [])
  }
}
