import PAMStack
import SallyportAdministration
import SallyportCore
import SallyportSystem
import Testing

@testable import SallyportCLI
@testable import SallyportDoctor

@Suite struct `Doctor's report` {
  private func report(_ diagnosis: Diagnosis, marks: Bool = false, width: Int = 80) -> [String] {
    Report(diagnosis: diagnosis, hasMarks: marks, width: width).text.split(separator: "\n").map(
      String.init)
  }

  // decisive
  @Test func `Without root nobody is said to be locked out, or in`() {
    let end = "Who gets in: only root can tell (sudo sallyport doctor)"
    #expect(report(Healthy.diagnosis()).suffix(2) == ["0 errors, 0 warnings.", end])
  }

  @Test func `What many users have is one line in the text, and one finding for each of them`() {
    let names = ["alice", "bob"] + (3...11).map { "u\($0)" }
    let diagnosis = Healthy.diagnosis {
      $0.store.users = names.map { UserFacts(directory: "/s/users/\($0)", name: $0) }
      for index in names.indices {
        $0.store.users[index].state = FileFacts(modified: 1000, born: 2000)
      }
      $0.store.users[2].usesCounters = true
    }
    let lines = report(diagnosis, width: 100)
    let text = lines.map { $0.split(separator: " ").joined(separator: " ") }.joined(separator: " ")
    #expect(
      text.contains(
        "warning the states of 10 users were restored from a copy (backup codes and passes used "
          + "since then are valid again): alice, bob and 8 more # sallyport backup-codes alice"))
    #expect(text.contains("warning the state of u3 was restored from a copy:"))
    #expect(lines.contains("0 errors, 11 warnings."))
    #expect(diagnosis.findings.count { $0.id == "user-restored" } == 11)
  }

  @Test func `The same fault in the files of many users is one line, another fault its own`() {
    let root = "/var/lib/sallyport"
    let names = ["alice", "bob", "carol"]
    let diagnosis = Healthy.diagnosis {
      $0.store.users = names.map { UserFacts(directory: "\(root)/users/\($0)", name: $0) }
      for (index, name) in names.enumerated() {
        $0.store.users[index].error = .unsafe(
          path: "\(root)/users/\(name)/enrollment", name == "bob" ? .links(2) : .mode(0o644))
      }
    }
    let lines = report(diagnosis, width: 100)
    #expect(lines.contains { $0.hasPrefix("  error   the enrollments of 2 users cannot be used") })
    #expect(lines.contains { $0.contains("\(root)/users/*/enrollment") })
    #expect(lines.contains { $0.contains("\(root)/users/bob/enrollment") })
    #expect(lines.contains("      # chmod go= \(root)/users/alice/enrollment"))
  }

  @Test(arguments: [40, 80, 100])
  func `The text of findings is as wide as the terminal`(width: Int) {
    var diagnosis = Healthy.diagnosis()
    diagnosis.findings = [
      .error("x", .store, String(repeating: "word ", count: 60))
    ]
    let wide = report(diagnosis, width: width).map(\.unicodeScalars.count).max() ?? 0
    #expect(wide <= width && wide > width - 6)
  }

  @Test func `A finding has its location and its fix, in 80 columns`() {
    let location = FileLocation(file: "/etc/ssh/sshd_config.d/50-cloud-init.conf", line: 57)
    let found = Finding.error(
      "x", .service("sshd"), String(repeating: "word ", count: 30), location: location,
      fixes: [
        .line("A b"), .add("C d"), .command("e"),
        .advice(String(repeating: "f", count: 60) + " " + String(repeating: "g", count: 60)),
      ])
    var diagnosis = Healthy.diagnosis()
    diagnosis.findings = [found]
    let lines = report(diagnosis, marks: true)
    #expect(lines.allSatisfy { $0.unicodeScalars.count <= 80 })
    #expect(lines[1].hasPrefix("  ✗ word"))
    #expect(lines.contains { $0.hasSuffix(" /etc/ssh/sshd_config.d/50-cloud-init.conf:57") })
    #expect(
      lines.suffix(7).prefix(3) == ["      line: A b", "      add: C d", "      # e"])
    let advice = lines.suffix(4).prefix(2)
    #expect(advice.first == "      see: " + String(repeating: "f", count: 60))
    #expect(advice.last == String(repeating: " ", count: 11) + String(repeating: "g", count: 60))
  }

  @Test func `A command in a sentence stays on one line`() {
    let lines = report(Healthy.diagnosis { $0.store.otherMachine = [.machine] })
    let head = lines.firstIndex(of: "      see: if the other machine is gone:") ?? lines.endIndex
    #expect(
      lines.dropFirst(head + 1).first
        == "           rm /var/lib/sallyport/machine && sallyport prepare", "\(lines)")
  }

  @Test func `What others wrote brings no control characters to the terminal`() {
    var diagnosis = Healthy.diagnosis()
    diagnosis.findings = [.unseen("x", .store, "a\u{1b}[2Jb\u{9b}c")]
    #expect(report(diagnosis)[1] == "  unseen  a?[2Jb?c")
  }

  // shows: clock-jump
  @Test func `A source that anybody on the path can forge is advice, not a fault`() {
    func clock(_ isAuthenticated: Bool?) -> Diagnosis {
      Healthy.diagnosis {
        $0.clock.source = .init(name: "chrony", offset: 0, isAuthenticated: isAuthenticated)
      }
    }
    func advice(_ diagnosis: Diagnosis) -> [Finding] {
      diagnosis.findings.filter { $0.id == "clock-source" }
    }
    #expect(clock(false).status == 0)
    #expect(advice(clock(false)).map(\.fixes.count) == [1])
    let text = Report(diagnosis: clock(false), hasMarks: false, width: 80).text
    #expect(text.contains("a server that does not sign it") && text.contains("see: chrony.conf"))
    #expect(advice(clock(true)).isEmpty && advice(clock(nil)).isEmpty)
  }
}
