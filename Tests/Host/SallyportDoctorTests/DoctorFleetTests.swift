import Testing

@testable import SallyportDoctor

@Suite struct `Doctor on a machine of a fleet` {
  private static func findings(_ change: (inout DaemonFacts) -> Void = { _ in }) -> [Finding] {
    `Doctor on sallyportd`.findings(of: ["sshd"]) { daemon in
      daemon.isFleet = true
      daemon.fleetFile = .seen(FileFacts())
      daemon.fleetKey = .seen(FileFacts(mode: 0o600))
      change(&daemon)
    }
  }

  @Test func `says nothing where all is well, or where there is no fleet`() {
    #expect(Self.findings().wrong == [])
    #expect(
      Self.findings {
        ($0.isFleet, $0.fleetFile, $0.fleetKey) = (false, .absent, .absent)
      }.wrong == [])
  }

  private static let faults: [(String, @Sendable (inout DaemonFacts) -> Void)] = [
    ("fleet-not-joined error", { $0.fleetFile = .absent }),
    ("fleet-unserved error", { $0.root.file = .absent }),
    ("fleet-unserved error", { $0.root.answer = .nobody }),
    ("fleet-file error", { $0.fleetFile = .seen(FileFacts(mode: 0o664)) }),
    ("fleet-file error", { $0.fleetFile = .seen(FileFacts(owner: 1000)) }),
    ("fleet-key error", { $0.fleetKey = .absent }),
    ("fleet-key error", { $0.fleetKey = .seen(FileFacts(mode: 0o640)) }),
    ("fleet-key error", { $0.fleetKey = .seen(FileFacts(owner: 1000, mode: 0o600)) }),
  ]

  @Test(arguments: faults.indices) func `names what locks out users of the fleet`(index: Int) {
    let (wanted, change) = Self.faults[index]
    let found = Self.findings(change)
    #expect(found.wrong == [wanted])
    for finding in found where finding.severity == .error {
      #expect(!finding.fixes.isEmpty)
      #expect(
        finding.effect == .locksOut("all users of the fleet (verification = fleet)"))
    }
  }

  /// A host of a fleet cannot join one, which `fleet join` says: it leaves before.
  @Test func `has a host with a lost or shown key leave before it joins`() {
    for key in [.absent, .seen(FileFacts(mode: 0o640))] as [Probe<FileFacts>] {
      let found = Self.findings { $0.fleetKey = key }.first { $0.id == "fleet-key" }
      #expect(found?.fixes.last?.text.contains("sallyport fleet leave --force, then") == true)
    }
  }

  private static func fleet(
    _ answers: FleetFacts.Answer..., ahead: Int64? = 0, breakGlass: [String] = ["root"]
  ) -> FleetFacts {
    FleetFacts(
      verifiers: answers.map {
        FleetFacts.Verifier(
          address: "192.0.2.1:7353", answer: $0, text: "cannot be reached", clockOffset: ahead)
      }, breakGlass: breakGlass)
  }

  private static let answers: [(FleetFacts, [String])] = [
    (fleet(.verifies, .verifies), []), (fleet(.verifies, ahead: nil), []),
    (fleet(.verifies, ahead: -5), []),
    (fleet(.verifies, .away), ["fleet-verifier warning"]),
    (fleet(.away, .away), ["fleet-verifier error", "fleet-verifier error"]),
    (fleet(.verifies, .foreign), ["fleet-foreign warning"]),
    (fleet(.foreign), ["fleet-foreign error"]),
    (fleet(.revoked), ["fleet-revoked error"]),
    (fleet(.verifies, .stranger), ["fleet-unknown warning"]),
    (fleet(.verifies, ahead: -6), ["fleet-clock warning"]),
    (fleet(.verifies, breakGlass: []), ["fleet-no-break-glass warning"]),
  ]

  @Test(arguments: answers.indices) func `names what verifiers answer`(index: Int) {
    let (fleet, wanted) = Self.answers[index]
    #expect(Self.findings { $0.fleet = fleet }.wrong == wanted)
    #expect(
      Self.findings { ($0.fleet, $0.isFleet) = (fleet, false) }.wrong == ["fleet-not-asked warning"]
    )
  }

  @Test func `says that codes are accepted only from known places`() {
    var fleet = Self.fleet(.verifies)
    fleet.closing = "too many wrong codes"
    let found = Self.findings { $0.fleet = fleet }
    #expect(found.wrong == ["fleet-closed warning"])
    #expect(found.contains { $0.id == "fleet-closed" && $0.text == "too many wrong codes" })
  }

  @Test func `says by how much the clock is off, and where to`() {
    for (offset, text) in [
      (Int64(60), "60 s behind the verifiers'"), (-7, "7 s ahead of the"),
      (Int64.min, "9223372036854775808 s ahead"),
    ] {
      let found = Self.findings { $0.fleet = Self.fleet(.verifies, ahead: offset) }
      #expect(found.contains { $0.id == "fleet-clock" && $0.text.contains(text) })
    }
  }

  @Test(arguments: [["alice"], ["alice", "bob", "carol"]])
  func `names who is enrolled here and not asked here`(_ names: [String]) throws {
    var fleet = Self.fleet(.verifies)
    fleet.unasked = names
    let found = Self.findings { $0.fleet = fleet }
    #expect(found.wrong == ["fleet-unasked warning"])
    let text = try #require(found.first { $0.id == "fleet-unasked" }?.text)
    #expect(text.contains(names.count == 1 ? ": alice;" : ": alice and 2 more;"))
  }

  @Test func `says what this host may do, and what is left of it`() {
    var fleet = Self.fleet(.verifies)
    fleet.rights = ["enrolls: 3 of 20 today", "takes: 0 of 10 today"]
    let found = Self.findings { $0.fleet = fleet }
    #expect(found.wrong == [])
    #expect(
      found.contains {
        $0.id == "fleet-rights"
          && $0.text.hasSuffix("in the fleet: enrolls: 3 of 20 today; takes: 0 of 10 today")
      })
  }

  @Test func `warns where nothing is asked of the fleet`() {
    let found = Self.findings { $0.isFleet = false }
    #expect(found.wrong == ["fleet-not-asked warning"])
  }

  private static let unbuilt: [(String, @Sendable (inout DaemonFacts) -> Void)] = [
    ("fleet-not-built error", { $0.fleetFile = .absent }),
    ("fleet-not-built error", { ($0.root.file, $0.fleetKey) = (.absent, .absent) }),
    ("fleet-not-built error", { $0.fleetFile = .seen(FileFacts(owner: 1000)) }),
    ("fleet-not-asked warning", { $0.isFleet = false }),
    (
      "fleet-not-asked warning, fleet-key error",
      {
        ($0.isFleet, $0.fleetKey) = (false, .seen(FileFacts(mode: 0o640)))
      }
    ),
  ]

  @Test(arguments: unbuilt.indices)
  func `names no verb of the command where it is built without the fleet`(index: Int) {
    let (wanted, change) = Self.unbuilt[index]
    let found = Self.findings {
      $0.isBuiltWithFleet = false
      change(&$0)
    }
    #expect(found.wrong.joined(separator: ", ") == wanted)
    #expect(found.flatMap(\.fixes).allSatisfy { !"\($0)".contains("sallyport fleet") })
  }

  @Test func `reads from any section of the policy what verifies codes`() throws {
    for (text, isFleet) in [
      ("[default]\nverification = fleet\n", true),
      ("[rule a]\nmatch_user = alice\nverification = fleet\n", true),
      ("[default]\nverification = local\n", false), ("", false),
    ] {
      let fake = FakeMachine()
      try fake.write("/etc/security/sallyport.conf", text)
      try fake.write("/etc/security/sallyport-fleet.conf", "")
      let daemon = DaemonFacts(of: fake.machine)
      #expect(daemon.isFleet == isFleet && daemon.fleetFile.value != nil)
      #expect(daemon.fleetKey == .absent)
    }
  }
}
