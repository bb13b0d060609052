import Foundation
import SallyportCore
import SallyportSystem
import Testing

@testable import PAMStack
@testable import SallyportCLI
@testable import SallyportDoctor

@Suite struct `Services that doctor is asked about` {
  private let machine: PamBench

  init() throws { machine = try PamBench() }

  @Test(arguments: [
    ("ssh", "there is no service ssh: no file /etc/pam.d/ssh. Did you mean: sshd"),
    ("nosuch", "there is no service nosuch: no file /etc/pam.d/nosuch\nhint: ls /etc/pam.d"),
    ("root", "there is no service root, but a user. Did you mean: sallyport status root\n"),
  ]) func `One without a file is refused`(name: String, told: String) {
    let done = machine.doctor("sudo", name)
    #expect(done.status == 66)
    #expect(done.aside.hasPrefix("sallyport: \(told)"), "\(done.aside)")
    #expect(done.answer == "")
  }

  @Test func `One that only the vendor has a file for is examined`() throws {
    try machine.write("/usr/lib/pam.d/vendors", "auth required pam_unix.so\n")
    #expect(machine.doctor("vendors").status == 2)
  }

  @Test func `Each finding names its service, with the fix for it`() throws {
    struct Answer: Decodable {
      struct Finding: Decodable {
        struct Fix: Decodable { let text: String }
        let id: String
        let services: [String]
        let fixes: [Fix]
      }
      let findings: [Finding]
    }
    let text = machine.doctor("sudo", "su").answer
    for name in ["sudo", "su"] {
      #expect(
        text.contains(
          "\n\(name)\n  error   no auth line names pam_sallyport.so: nobody is asked for a code\n"
            + "      # sallyport pam enable \(name)\n") || text.hasPrefix("\(name)\n  error "),
        "\(text)")
    }
    let found = try machine.doctor("sudo", "su", "--json").json(Answer.self).findings
      .filter { $0.id == "service-unasked" }
    #expect(found.map(\.services) == [["sudo"], ["su"]])
    #expect(
      found.map { $0.fixes[0].text } == ["sallyport pam enable sudo", "sallyport pam enable su"])
  }

  @Test func `What several services have alike is one line with all their names`() throws {
    let diagnosis = Healthy.diagnosis { facts in
      facts.services = ["sudo", "su", "login"].map { name in
        var service = ServiceFacts(name: name, lines: Healthy.lines(), file: "/etc/pam.d/\(name)")
        service.stack = [.notCounted(FileLocation(file: "/etc/pam.d/common-auth", line: 4))]
        return service
      }
    }
    let text = Report(diagnosis: diagnosis, hasMarks: false, width: 200).text
    #expect(text.contains("(also in sudo, su)"), "\(text)")
    #expect(diagnosis.findings.count { $0.id == "stack-uncounted" } == 1)
  }
}

@Suite struct `What doctor says of users` {
  @Test func `A user who is exempt and enrolled is still asked`() {
    let diagnosis = Healthy.diagnosis { facts in
      facts.store.notes = ["alice", "bob"].map { name in
        var note = NoteFacts(path: "/var/lib/sallyport/unenrolled/\(name)")
        (note.name, note.level) = (name, .exempt(until: nil))
        return note
      }
    }
    let found = diagnosis.findings.filter { $0.id == "note-enrolled" }
    #expect(found.map(\.text) == ["alice is exempt but enrolled, so logins ask for a code"])
    #expect(found.first?.severity == .ok)
    #expect(
      Report(diagnosis: diagnosis, hasMarks: false, width: 80).text.contains("alice is exempt but")
    )
  }

  @Test func `Tries are counted by the policy's budget, as status does`() throws {
    let machine = try PamBench()
    let conf = "\(machine.root)/etc/security/sallyport.conf"
    try FileManager.default.createDirectory(
      atPath: "\(machine.root)/etc/security", withIntermediateDirectories: true)
    // A quarter of the built-in one, so the wait is four times as long.
    try machine.write("/etc/security/sallyport.conf", "[default]\nguess_budget = 0.25 %\n")
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: conf)
    for _ in 0..<20 {
      machine.bench.run(
        "verify", "alice", "--allow-missing", "--conf", conf, on: FakeTerminal([.types("000000")]))
    }
    let status = machine.bench.run("status", "alice", "--allow-missing", "--conf", conf).answer
    #expect(status.contains("next in 4 days from known places"), "\(status)")
    let told = machine.doctor("sudo").answer.replacing(/\n +/, with: " ")
    #expect(told.contains("alice has no tries left from known places, next try in 4 days"))
    // And with the built-in one, where there is no file.
    try FileManager.default.removeItem(atPath: conf)
    let usual = machine.doctor("sudo").answer.replacing(/\n +/, with: " ")
    #expect(usual.contains("next try in 21 h"), "\(usual)")
  }
}
