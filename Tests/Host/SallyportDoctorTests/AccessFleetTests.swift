import Foundation
import PAMStack
import SallyportCore
import SallyportSupport
import SallyportSystem
import Testing

@testable import SallyportDoctor

@Suite struct `Who gets in by the fleet`: AccessTrial {
  let fake = FakeMachine()

  init() throws { try prepare() }

  /// `policy`: beside that the fleet verifies codes.
  private func table(_ roster: FleetRoster?, _ policy: String = "") throws -> AccessTable {
    try fake.write("/etc/security/sallyport-fleet.conf", "")
    try fake.write(
      "/etc/security/sallyport.conf", "[default]\nverification = fleet\n\(policy)")
    let store = Store(root: Array("\(fake.root)/store".utf8), owner: .effectiveUser)
    var facts = AccessFacts(of: fake.machine, store, at: Healthy.now)
    facts.isStoreBroken = false
    if let roster { facts.ask { _ in roster } }
    return AccessTable(facts)
  }

  private func alice(_ place: FleetRoster.Person.Place, _ level: UserNote.Level? = nil) throws
    -> FleetRoster
  {
    .told([FleetRoster.Person(try #require(UserName("alice".utf8)), place, level)])
  }

  private static var factors: Factors {
    var factors = Factors()
    factors.insert(.totp)
    return factors
  }

  @Test func `a person of the fleet is asked for its codes`() throws {
    let enrolled = try table(alice(.enrolled(Self.factors)), "enrollment = voluntary\n")
    #expect(verdicts(enrolled, "alice", "su") == [.asked(.codeOfFleet)])
    #expect(verdicts(enrolled, "git", "su") == [.withoutCode(.voluntary)])
    #expect(enrolled.rows.first { $0.user == "alice" }?.isEnrolled == true)
    let out = try table(alice(.notEnrolled), "enrollment = refuse\n")
    #expect(verdicts(out, "alice", "su") == [.refused(.notEnrolled)])
    let exempt = try table(alice(.notEnrolled, .exempt(until: nil)), "enrollment = refuse\n")
    #expect(verdicts(exempt, "alice", "su") == [.withoutCode(.exempt)])
    #expect(
      verdicts(try table(alice(.unreadable)), "alice", "su") == [.refused(.brokenEnrollment)])
    #expect(verdicts(try table(alice(.taken(by: "web2"))), "alice", "su").first?.name == "refused")
  }

  @Test(
    arguments: [
      (.silent("away"), .fleetSilent), (.keeps, .fleetKeeps), (nil, .fleetSilent),
    ] as [(FleetRoster?, AccessGap)])
  func `what the fleet does not say is not known, where it makes a difference`(
    _ roster: FleetRoster?, _ gap: AccessGap
  ) throws {
    for level in ["voluntary", "offer", "required", "refuse"] {
      let table = try table(roster, "enrollment = \(level)\n")
      #expect(verdicts(table, "alice", "su") == [.unseen(gap)], "\(level)")
      #expect(verdicts(table, "ansible", "sudo") == [.withoutCode(.noPasswd)])
      #expect(table.severity == .error)
    }
    let off = try table(roster, "state = disabled\n")
    #expect(verdicts(off, "alice", "su") == [.withoutCode(.disabled)])
    try accounts(["root:x:0:0", "alice:x:1000:1000"], passwords: ["alice": "*"])
    #expect(verdicts(try table(roster), "alice", "su") == [.refused(.noPassword)])
  }

  @Test func `the fleet is asked once, and only where a policy names it`() throws {
    let store = Store(root: Array("\(fake.root)/store".utf8), owner: .effectiveUser)
    var asked: [[String]] = []
    func ask() {
      var facts = AccessFacts(of: fake.machine, store, at: Healthy.now)
      facts.ask { names in
        asked.append(names.map(\.text))
        return .told([])
      }
      _ = AccessTable(facts)
    }
    ask()
    try fake.write("/etc/security/sallyport.conf", "[default]\nverification = local\n")
    ask()
    #expect(asked == [])
    try fake.write(
      "/etc/security/sallyport.conf", "[rule a]\nmatch_user = alice\nverification = fleet\n")
    ask()
    #expect(asked == [["root", "alice", "ansible", "git"]])
  }
}
