import FleetProtocol
import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSupport
import TestSupport
import Testing

@testable import FleetHost
@testable import SallyportService
@testable import SallyportSystem

@Suite struct `The reserve of a host` {
  private func section(_ set: UInt64 = 0xb0b0, used: UInt64 = 0, enrollment: UInt64 = 0xe0e0)
    throws -> ReserveAnswer.Section
  {
    ReserveAnswer.Section(
      enrollmentID: enrollment, receipt: [UInt8](repeating: 9, count: 32), set: try codes(set),
      used: used)
  }

  // shows: stolen-host
  @Test func `has backup codes and what is used of them, and outlives its service`() throws {
    let host = try CutHost()
    try host.reserve.put(name("alice"), section(used: 2))
    let again = try host.restarted()
    let found = try #require(try again.entries().first)
    #expect(try found.name == name("alice"))
    #expect(found.enrollmentID == 0xe0e0 && found.setID == 0xb0b0 && found.used == 2)
    let file = try String(
      contentsOfFile: host.path + "/users/alice/enrollment", encoding: .utf8)
    #expect(file.contains("reserve = 0909") && !file.contains("authenticator"))
  }

  @Test func `joins what is used of the same codes, and forgets none`() throws {
    let host = try CutHost()
    try host.reserve.put(name("alice"), section(used: 1))
    try host.reserve.put(name("alice"), section(used: 2))
    try host.reserve.put(name("alice"), section(used: 0))
    #expect(try host.entry("alice")?.used == 3)
  }

  @Test func `takes other codes in the place of those that it had`() throws {
    let host = try CutHost()
    try host.reserve.put(name("alice"), section(used: 3))
    try host.reserve.put(name("alice"), section(0xc0c0, used: 1))
    #expect(try host.entry("alice")?.setID == 0xc0c0)
    #expect(try host.entry("alice")?.used == 1)
    try host.reserve.put(name("alice"), section(0xc0c0, enrollment: 0xf0f0))
    #expect(try host.entry("alice")?.enrollmentID == 0xf0f0)
  }

  @Test(arguments: ["enrollment", "state"])
  func `puts a good entry in the place of a damaged one`(_ file: String) throws {
    let host = try CutHost()
    try host.reserve.put(name("alice"), section())
    try Data("garbage".utf8).write(
      to: URL(fileURLWithPath: host.path + "/users/alice/" + file), options: [])
    try host.reserve.confirm(at: host.reserve.now)
    #expect(throws: StoreTrouble.self) { _ = try host.type(first, as: "alice") }
    try host.reserve.put(name("alice"), section(used: 1))
    #expect(try host.entry("alice")?.used == 1)
  }

  @Test func `wipes whom it has no more`() throws {
    let host = try CutHost()
    try host.reserve.put(name("alice"), section())
    try host.reserve.put(name("bob"), section())
    try host.reserve.remove(name("alice"))
    try host.reserve.remove(name("nobody"))
    #expect(try host.reserve.entries().map(\.name) == [name("bob")])
    try host.reserve.store.dismantle()
    #expect(!FileManager.default.fileExists(atPath: host.path))
    try host.reserve.store.dismantle()
  }

  @Test func `is no store of enrollments, nor is one of these a reserve`() throws {
    let host = try CutHost()
    try host.reserve.put(name("alice"), section())
    let other = Store(root: host.path, owner: .effectiveUser)
    #expect(throws: StoreTrouble.self) {
      _ = try other.load(Account(name: name("alice"), uid: nil))
    }
    let entry = try #require(try host.reserve.store.load(Account(name: name("alice"), uid: nil)))
    #expect(throws: StoreTrouble.self) {
      try other.create(entry.enrollment, LoginState(initialFor: entry.enrollment))
    }
    let enrollment = try Store.makeDecoy()
    #expect(throws: StoreTrouble.self) {
      try host.reserve.store.create(enrollment, LoginState(initialFor: enrollment))
    }
  }

  @Test func `is good for so long after the fleet has confirmed it, and not before`() throws {
    let host = try CutHost()
    #expect(!host.reserve.isGood(for: 100))
    try host.reserve.confirm(at: host.reserve.now)
    #expect(host.reserve.isGood(for: 100))
    host.pass(99)
    #expect(host.reserve.isGood(for: 100))
    #expect(try host.restarted().isGood(for: 100))
    host.pass(1)
    #expect(!host.reserve.isGood(for: 100))
    #expect(try !host.restarted().isGood(for: 100))
  }

  @Test func `is of no age where what says so is damaged`() throws {
    let host = try CutHost()
    try host.reserve.confirm(at: host.reserve.now)
    let file = URL(fileURLWithPath: host.path + "/confirmed")
    let text = try Data(contentsOf: file)
    for count in [0, 1, text.count - 1] {
      try text.prefix(count).write(to: file, options: [])
      #expect(try !host.restarted().isGood(for: UInt64.max))
    }
  }
}

@Suite struct `The age of a reserve` {
  private static func moment(_ clock: Int64, _ boot: String, _ uptime: UInt64)
    -> ReserveAge.Moment
  {
    ReserveAge.Moment(clock: UnixTime(clock), boot: Array(boot.utf8), uptime: uptime)
  }

  private let confirmed = ReserveAge(confirmedAt: moment(10_000, "a", 500))

  // shows: reserve-ends
  @Test(
    arguments: [
      // The same boot: the time that it has run, whatever the clock says, but never less than that.
      (moment(10_060, "a", 560), 60), (moment(10_000, "a", 560), 60), (moment(9000, "a", 560), 60),
      (moment(10_600, "a", 560), 600), (moment(10_060, "a", 400), nil),
      // Another one: the clock, and at least the time since then.
      (moment(10_060, "b", 10), 60), (moment(10_005, "b", 10), 10), (moment(10_000, "b", 7), 7),
      // A machine without a clock, and one that was set back: nobody knows.
      (moment(9999, "b", 7), nil), (moment(0, "b", 7), nil), (moment(9999, "", 7), nil),
      (moment(10_001, "", 7), 7),
    ] as [(ReserveAge.Moment, UInt64?)])
  func `is what can be known`(_ moment: ReserveAge.Moment, _ age: UInt64?) {
    #expect(confirmed.age(at: moment) == age)
  }

  // shows: reserve-ends
  @Test func `does not shrink by a clock that goes back, over as many boots as there are`() {
    var age = confirmed.noted(at: Self.moment(10_100, "a", 600))
    #expect(age.age(at: Self.moment(10_100, "a", 600)) == 100)
    // Set back while it was off: behind the note.
    #expect(age.age(at: Self.moment(10_050, "b", 20)) == nil)
    age = age.noted(at: Self.moment(10_050, "b", 20))
    age = age.noted(at: Self.moment(10_120, "b", 90))
    #expect(age.age(at: Self.moment(10_120, "b", 90)) == 190)
    #expect(age.age(at: Self.moment(10_000, "b", 100)) == 200)
  }

  @Test func `is read as it was written, and as nothing else`() {
    var random = Seeded(3)
    let boots = ["", "0a0a0a0a-1111-4222-8333-444444444444"]
    for _ in 0..<200 {
      let moment = Self.moment(
        Int64(random.number64() >> 1), random.pick(boots), random.number64())
      let age = ReserveAge(
        confirmed: UnixTime(Int64(random.number64() >> 1)), counted: random.number64(),
        noted: moment)
      #expect(ReserveAge.read(age.written()) == age)
      // Extremes overflow nothing.
      _ = age.age(at: Self.moment(Int64.max, "c", UInt64.max))
      var text = age.written()
      text[random.number(0...text.count - 1)] = random.byte()
      if let other = ReserveAge.read(text) { #expect(other.written() == text) }
    }
  }
}
