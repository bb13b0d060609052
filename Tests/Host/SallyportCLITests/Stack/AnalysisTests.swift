import Foundation
import TestSupport
import Testing

@testable import PAMStack
@testable import SallyportCLI

@Suite struct `The analysis of a stack` {
  /// Findings in short: `name line`, of lines of /etc/pam.d/x without the file.
  static func short(_ finding: StackFinding) -> String {
    func at(_ location: StackLocation) -> String {
      location.text.replacing("/etc/pam.d/x:", with: "").replacing("/etc/pam.d/", with: "")
    }
    switch finding {
    case .fault(let fault): return "fault \(at(fault.location))"
    case .moduleMissing(let location, _): return "missing \(at(location))"
    case .nobodyPasses(let phase): return "nobody \(phase)"
    case .tooComplex(let phase): return "complex \(phase)"
    case .notAsked: return "notAsked"
    case .authNeverRuns(let location): return "authNeverRuns \(location.map(at) ?? "-")"
    case .secondPrompt(let location, let other, _):
      return "prompts \(at(location)) and \(at(other))"
    case .neverReached(let location): return "never \(at(location))"
    case .skipped(let location, let by, _, _): return "skipped \(at(location)) by \(at(by))"
    case .notCounted(let location): return "notCounted \(at(location))"
    case .codeAlone(let location): return "alone \(at(location))"
    case .unknownAlone(let location, let by, _): return "alone \(at(location)) unless \(at(by))"
    case .nothingToTake(let location): return "starved \(at(location))"
    case .jumpPastEnd(let location): return "jump \(at(location))"
    case .jumpedOver(let location, let by, _): return "jumped \(at(location)) by \(at(by))"
    case .askedTwice(let one, let two): return "twice \(at(one)) \(at(two))"
    case .wrongPasswordReaches(let location): return "wrongReaches \(at(location))"
    case .ignoreIsDenied(let phase, let location): return "ignoreDenied \(phase) \(at(location))"
    case .enrollWithoutLine(let location, let missing):
      return "enroll \(at(location)) without \(missing)"
    case .accountNotFirst(let location, let after, let isSkipped):
      return "account \(at(location)) after \(at(after))\(isSkipped ? " skipped" : "")"
    case .sessionSkipped(let location): return "session \(at(location)) skipped"
    case .enrollWithoutFirstFactor(let location): return "enroll \(at(location)) without factor"
    case .wrongPasswordEnrolls(let location, let by):
      return "stranger enrolls \(at(location)) by \(by.map(at) ?? "nobody")"
    case .enrollWithFirstPass(let location, let word): return "enroll \(at(location)) with \(word)"
    case .demandForbidden(let location): return "demand \(at(location))"
    }
  }

  private func findings(_ service: String, _ files: [String: String], debian: Bool = true)
    -> [String]
  {
    StackAnalysis(Stacks.parse(service, in: files, debian: debian)).findings
      .map(`The analysis of a stack`.short)
  }

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
      analysis.findings.map(`The analysis of a stack`.short) == [
        "missing 2", "nobody auth", "ignoreDenied auth 2",
      ])
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
}
