import CCommand
import SallyportCore
import SallyportSystem
import Testing

@testable import PAMStack
@testable import SallyportDoctor
@testable import SallyportSupport

@Suite struct `Doctor on many services` {
  private func shared(_ name: String) -> ServiceFacts {
    var service = ServiceFacts(name: name, lines: Healthy.lines(), file: "/etc/pam.d/\(name)")
    service.stack = [.notCounted(FileLocation(file: "/etc/pam.d/sshd", line: 4))]
    return service
  }

  // decisive
  @Test func `What they share is told once, with those first that people log in by`() {
    let diagnosis = Healthy.diagnosis { $0.services = ["chfn", "passwd", "login"].map(shared) }
    #expect(diagnosis.wrong == ["stack-uncounted error"])
    #expect(diagnosis.findings[0].area == .service("login"))
    #expect(diagnosis.findings[0].alsoIn == ["chfn", "passwd"])
  }

  // decisive
  @Test func `sudo and sudo-i have one sudoers file, told once`() throws {
    let fake = FakeMachine()
    try fake.write("/etc/sudoers", "alice ALL=(ALL) NOPASSWD:ALL\n")
    let diagnosis = Healthy.diagnosis { facts in
      facts.services = ["sudo", "sudo-i"].map { ServiceFacts(name: $0, lines: Healthy.lines()) }
      facts.sudoers = Sudoers(of: fake.machine)
    }
    #expect(diagnosis.wrong == ["sudo-nopasswd error"])
  }

  @Test func `A shared line that asks where nobody answers is told`() {
    let diagnosis = Healthy.diagnosis { $0.services = ["cups", "swaylock"].map(shared) }
    #expect(diagnosis.wrong.contains("stack-shared warning"))
    #expect(
      diagnosis.findings.contains { $0.text.hasPrefix("this line also asks in cups and 1 more") })
  }

  @Test func `Another store that a line names is unseen`() {
    #expect(
      Healthy.diagnosis { $0.otherStores = ["/srv/store"] }.findings.first {
        $0.severity == .unseen
      }?.fixes == [.command("sallyport doctor --store /srv/store")])
  }
}
