import Glibc
import PAMStack
import SallyportLogin
import SallyportSystem
import Testing

@testable import SallyportDoctor

/// Units of systemd that may not write the store.
@Suite struct `The unit of a service` {
  private let fake = FakeMachine()
  private static let unit = "polkit-agent-helper@.service"
  private static let strict = "[Service]\nProtectHome=yes\nProtectSystem=strict\n"

  private func isShut(_ store: String = Store.usualRoot) -> Bool? {
    ServiceUnit(of: "polkit-1", store: store, on: fake.machine)?.isShut
  }

  private func write(_ text: String, _ path: String) throws {
    try fake.write("\(path)/systemd/system/\(Self.unit)", text)
  }

  // decisive
  @Test func `is shut by ProtectSystem=strict, until a drop-in opens the store`() throws {
    #expect(isShut() == nil)
    try write(Self.strict, "/usr/lib")
    #expect(isShut() == true)
    let dropIns = "/etc/systemd/system/\(Self.unit).d"
    for (text, isOpen) in [
      ("ReadWritePaths=/var/lib/other", false), ("ReadWritePaths=/var/lib/sally", false),
      ("ReadWritePaths=-/var/lib/sallyport /x", true), ("ReadWritePaths = /var/lib", true),
      ("ReadWritePaths=/var/lib\nReadWritePaths=", false), ("ProtectSystem=full", true),
    ] {
      try fake.write("\(dropIns)/a.conf", "[Service]\n\(text)\n")
      #expect(isShut() == !isOpen, "\(text)")
    }
    #expect(isShut("/srv/store") == false)
  }

  // decisive
  @Test func `is not shut where sallyportd saves what the module accepts`() throws {
    try write(Self.strict, "/usr/lib")
    let unit = { (store: String) in ServiceUnit(of: "polkit-1", store: store, on: fake.machine) }
    #expect(unit(Store.usualRoot)?.opening.contains("ReadWritePaths=-%s") == true)
    let socket = "sallyport-root.socket"
    try fake.write("/usr/lib/systemd/system/\(socket)", "")
    #expect(unit(Store.usualRoot)?.opening == "systemctl enable --now \(socket)")
    #expect(isShut() == true)
    try fake.write("/run/sallyport/x", "")
    let bound = fake.socket(at: ServiceAuthority.rootSocket, listens: false)
    defer { close(bound) }
    #expect(isShut() == true)
    #expect(listen(bound, 8) == 0)
    #expect(isShut() == false)
    // With `store=`, the module asks nobody.
    #expect(isShut("/srv/store") == true)
    #expect(unit("/srv/store")?.opening.contains("ReadWritePaths=-%s") == true)
  }

  @Test func `of /etc takes the place of the package's`() throws {
    try write(Self.strict, "/usr/lib")
    try write("[Service]\n", "/etc")
    #expect(isShut() == false)
    #expect(ServiceUnit(of: "sudo", store: Store.usualRoot, on: fake.machine) == nil)
  }

  // decisive
  @Test func `that is shut is told of where our line is in its stack`() throws {
    try write(Self.strict, "/usr/lib")
    try fake.write(
      "/etc/pam.d/polkit-1", "auth required pam_unix.so\nauth required pam_sallyport.so\n")
    let stack = ServiceStack(of: fake.machine, "polkit-1")
    let found = StackFindings(ServiceFacts(stack, of: fake.machine), ssh: nil).all
    let sandbox = found.filter { $0.id == "service-sandbox" }
    #expect(sandbox.map(\.severity) == [.error])
    #expect(sandbox.first?.fixes.first?.text.contains("ReadWritePaths=-%s") == true)
    try fake.write("/etc/pam.d/polkit-1", "auth required pam_unix.so\n")
    let without = ServiceFacts(ServiceStack(of: fake.machine, "polkit-1"), of: fake.machine)
    #expect(!StackFindings(without, ssh: nil).all.contains { $0.id == "service-sandbox" })
  }
}
