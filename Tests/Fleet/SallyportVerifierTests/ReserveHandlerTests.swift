import CService
import FleetProtocol
import FleetTransport
import Foundation
import OneTimePassword
import SallyportLogin
import SallyportSupport
import SallyportSystem
import TestSupport
import Testing

@testable import SallyportCore
@testable import SallyportVerifier

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `What a host asks about its reserve` {
  private let verifier: Verifier
  private let handler: ReserveHandler
  private let logins = RecentLogins()
  private let directory: TemporaryDirectory
  private let web: Pin
  private let mail: Pin

  init() throws {
    (web, mail) = (try Self.pin(1), try Self.pin(2))
    verifier = try Verifier()
    directory = try TemporaryDirectory()
    handler = ReserveHandler(verifier.database, logins, FleetPolicy(in: directory.path))
  }

  /// From now on.
  private func policy(_ text: String) throws {
    try ("[default]\n" + text + "\n").write(
      toFile: directory.path + "/sallyport.conf", atomically: false, encoding: .utf8)
  }

  private static func pin(_ byte: UInt8) throws -> Pin {
    try #require(Pin([UInt8](repeating: byte, count: 32)))
  }

  private func ask(_ question: ReserveQuestion, as pin: Pin) throws -> ReserveAnswer {
    let answer = handler.answer(
      try #require(question.encoded()), from: HostIdentity(pin, host: Array("web1".utf8)),
      arrived: sys_monotonic())
    return try #require(ReserveAnswer.decode(answer.body, to: question))
  }

  /// Enrolled, with a phone, two backup codes and a scratch code.
  private func enroll() throws -> UserName {
    let name = "away-\(UUID().uuidString)"
    let enrollment = try fleetEnrollment(
      [try authenticator(parameters())], name,
      codes: backupCodes(
        ["7KMF2X9QD4TW0HZA", "M3PC8RV1KX5N6GDJ"], scratch: ["12345678"], id: 0xb0b0))
    try verifier.store(for: name).create(enrollment, LoginState(initialFor: enrollment))
    return enrollment.user
  }

  /// What web1 is given after a login there.
  private func fetched(_ name: UserName) throws -> ReserveAnswer.Section {
    logins.note(name.bytes, on: web)
    let answer = try ask(.fetch(name, receipt: nil), as: web)
    guard case .section(let section) = answer else {
      Issue.record("\(answer)")
      throw CancellationError()
    }
    return section
  }

  private func entry(_ name: UserName, _ section: ReserveAnswer.Section, used: UInt64 = 0)
    -> ReserveQuestion.Entry
  {
    ReserveQuestion.Entry(
      name: name, enrollmentID: section.enrollmentID, receipt: section.receipt,
      setID: section.set.id, used: used)
  }

  private func text(_ name: UserName) -> String { String(decoding: name.bytes, as: UTF8.self) }

  private func used(_ name: UserName) throws -> UInt64? {
    try verifier.store().load(Account(name: name, uid: nil))?.state.backupCodes?.used
  }

  // shows: receipts
  @Test func `gives the codes of who has just logged in there, and nothing else of him`() throws {
    let name = try enroll()
    #expect(try ask(.fetch(name, receipt: nil), as: web) == ReserveAnswer.none)
    let section = try fetched(name)
    #expect(section.set.digests.count == 2 && section.set.scratchDigests.isEmpty)
    #expect(section.set.id == 0xb0b0 && section.used == 0)
    // To that host alone, and again for what it shows.
    #expect(try ask(.fetch(name, receipt: nil), as: mail) == ReserveAnswer.none)
    #expect(try ask(.fetch(name, receipt: section.receipt), as: mail) == ReserveAnswer.none)
    let other = ReserveHandler(
      verifier.database, RecentLogins(), FleetPolicy(in: directory.path))
    let question = ReserveQuestion.fetch(name, receipt: section.receipt)
    let again = other.answer(
      try #require(question.encoded()), from: HostIdentity(web, host: Array("web1".utf8)),
      arrived: sys_monotonic())
    #expect(ReserveAnswer.decode(again.body, to: question) == .section(section))
  }

  // decisive
  // shows: receipts
  @Test func `gives nothing for a row that somebody has put into the table of events`() throws {
    let name = try enroll()
    _ = try verifier.ask(
      "INSERT INTO event (at, host, name, service, address, outcome) "
        + "VALUES (now(), 'web1', $1, 'sshd', 'local', 'accepted')", [.bytes(name.bytes)])
    #expect(try ask(.fetch(name, receipt: nil), as: web) == ReserveAnswer.none)
  }

  // decisive
  // shows: reserve-goes-up
  @Test func `takes a code that was used there for used, everywhere and once`() throws {
    let name = try enroll()
    let section = try fetched(name)
    for _ in 0..<3 {
      #expect(
        try ask(.confirm([entry(name, section, used: 3)]), as: web)
          == .confirmed([.keep(used: 3)]))
    }
    #expect(try used(name) == 3)
    #expect(try verifier.events(of: text(name)) == ["used-away 0", "used-away 1"])
    let outcome = try verifier.type("7KMF2X9QD4TW0HZA", as: text(name))
    guard case .refused(.response(.replayed, _)) = outcome else {
      Issue.record("\(outcome)")
      return
    }
  }

  // shows: receipts, key-change
  @Test func `believes nothing of a host without a receipt of its own`() throws {
    let name = try enroll()
    let section = try fetched(name)
    let forged = ReserveQuestion.Entry(
      name: name, enrollmentID: section.enrollmentID, receipt: [UInt8](repeating: 0, count: 32),
      setID: section.set.id, used: 1)
    // What would be lost is kept there, and root is told once.
    for pin in [mail, try Self.pin(3), mail] {
      #expect(
        try ask(.confirm([entry(name, section, used: 1)]), as: pin) == .confirmed([.keep(used: 0)]))
      #expect(try ask(.confirm([entry(name, section)]), as: pin) == .confirmed([.delete]))
    }
    #expect(try ask(.confirm([forged]), as: web) == .confirmed([.keep(used: 0)]))
    let told = verifier.complaints.filter { $0.contains(text(name)) }
    #expect(told.count == 1 && told[0].contains("host=web1"), "\(told)")
    // Of another set, of a scratch code, and of codes that do not exist, nothing is used up.
    let other = ReserveQuestion.Entry(
      name: name, enrollmentID: section.enrollmentID, receipt: section.receipt, setID: 0xb0b1,
      used: 1)
    #expect(try ask(.confirm([other]), as: web) == .confirmed([.replace]))
    #expect(
      try ask(.confirm([entry(name, section, used: UInt64.max << 2)]), as: web)
        == .confirmed([.keep(used: 0)]))
    #expect(try used(name) == 0)
    #expect(try verifier.events(of: text(name)).isEmpty)
    // Nothing is lost where that is known already, or the codes are others by now.
    #expect(
      try ask(.confirm([entry(name, section, used: 1)]), as: web) == .confirmed([.keep(used: 1)]))
    let replaced = ReserveQuestion.Entry(
      name: name, enrollmentID: section.enrollmentID, receipt: section.receipt, setID: 0xb0b1,
      used: 2)
    let both = ReserveQuestion.confirm([entry(name, section, used: 1), replaced])
    #expect(try ask(both, as: mail) == .confirmed([.delete, .delete]))
  }

  // decisive
  @Test func `believes a host by the keys that it had before`() throws {
    let name = try enroll()
    let section = try fetched(name)
    let revocations = Revocations(key: verifier.database.key)
    let host = Array("web1".utf8)
    let handler = ReserveHandler(
      verifier.database, logins, FleetPolicy(in: directory.path), revocations: revocations)
    func ask(_ question: ReserveQuestion, of host: [UInt8]) throws -> ReserveAnswer? {
      let answer = handler.answer(
        try #require(question.encoded()), from: HostIdentity(mail, host: host),
        arrived: sys_monotonic())
      return ReserveAnswer.decode(answer.body, to: question)
    }
    revocations.note([RevokedRow(subject: web.bytes, host: host, at: 5)])
    let used = ReserveQuestion.confirm([entry(name, section, used: 1)])
    #expect(try ask(used, of: Array("web2".utf8)) == .confirmed([.keep(used: 0)]))
    #expect(try self.used(name) == 0)
    #expect(try ask(used, of: host) == .confirmed([.keep(used: 1)]))
    #expect(try self.used(name) == 1)
    // Then it gets a receipt for the key that it has now.
    #expect(try ask(used, of: host) == .confirmed([.replace]))
    guard
      case .section(let new) = try ask(.fetch(name, receipt: section.receipt), of: host),
      new.receipt != section.receipt
    else {
      Issue.record("no new receipt")
      return
    }
    let again = ReserveQuestion.confirm([entry(name, new, used: 1)])
    #expect(try ask(again, of: host) == .confirmed([.keep(used: 1)]))
  }

  @Test func `has a host delete a user who is enrolled again, or not any more`() throws {
    let name = try enroll()
    let section = try fetched(name)
    let other = try enroll()
    let stranger = try #require(UserName(Array("nobody-\(UUID().uuidString)".utf8)))
    let entries = [
      ReserveQuestion.Entry(
        name: name, enrollmentID: section.enrollmentID + 1, receipt: section.receipt,
        setID: section.set.id, used: 1),
      entry(other, section), entry(stranger, section, used: 1), entry(name, section),
    ]
    #expect(
      try ask(.confirm(entries), as: web)
        == .confirmed([.delete, .delete, .delete, .keep(used: 0)]))
  }

  /// Where they are restored, or the older ones believed after all, what was used on the host would
  /// be good again.
  // shows: block-fleet
  @Test func `has a host delete who is blocked, and takes what was used before`() throws {
    let name = try enroll()
    let section = try fetched(name)
    let store = verifier.store(for: text(name))
    #expect(try store.block(Account(name: name, uid: nil), until: nil))
    let entry = entry(name, section, used: 0b10)
    #expect(try ask(.confirm([entry]), as: web) == .confirmed([.delete]))
    #expect(try used(name) == 0b10)
    logins.note(name.bytes, on: web)
    #expect(try ask(.fetch(name, receipt: section.receipt), as: web) == ReserveAnswer.none)
    #expect(try store.unblock(Account(name: name, uid: nil)))
    #expect(try ask(.confirm([entry]), as: web) == .confirmed([.keep(used: 0b10)]))
  }

  @Test func `leaves a host what it has where his rows cannot be believed`() throws {
    let name = try enroll()
    let section = try fetched(name)
    let used = ReserveQuestion.confirm([entry(name, section, used: 2)])
    // Twice is as it was.
    func damage() throws {
      _ = try verifier.ask(
        "UPDATE state SET body = set_byte(body, 60, get_byte(body, 60) # 1) WHERE name = $1",
        [.bytes(name.bytes)])
    }
    try damage()
    #expect(try ask(used, as: web) == .confirmed([.keep(used: 0)]))
    let fetch = try #require(ReserveQuestion.fetch(name, receipt: section.receipt).encoded())
    let answer = handler.answer(
      fetch, from: HostIdentity(web, host: Array("web1".utf8)), arrived: sys_monotonic())
    #expect(answer == VerifierAnswer(to: .reserve, []), "nothing that has it delete anything")
    try damage()
    #expect(try ask(used, as: web) == .confirmed([.keep(used: 2)]))
    #expect(try self.used(name) == 2)
  }

  @Test(arguments: ["away = refuse", "factor_backup_code = off", "reserve_for = 0"])
  func `gives no codes where the policy of the fleet has none for hosts`(line: String) throws {
    let name = try enroll()
    // Where it cannot be used, and never could: what applies instead says nothing of them.
    try policy("away = perhaps")
    let section = try fetched(name)
    try policy(line)
    #expect(try ask(.fetch(name, receipt: section.receipt), as: web) == ReserveAnswer.none)
    #expect(
      try ask(.confirm([entry(name, section, used: 1)]), as: web) == .confirmed([.delete]))
    #expect(try used(name) == 1, "what was used there")
  }

  /// The table is locked for as long as a question may take; others are answered. What the host has
  /// used up would be lost with what it deletes.
  @Test func `has a host delete nobody where the database does not answer about him`() throws {
    let own = try OwnDatabase()
    let verifier = try Verifier(in: own)
    let name = "away-\(UUID().uuidString)"
    let enrollment = try fleetEnrollment(
      [try authenticator(parameters())], name,
      codes: backupCodes(["7KMF2X9QD4TW0HZA"], id: 0xb0b0))
    try verifier.store(for: name).create(enrollment, LoginState(initialFor: enrollment))
    let handler = ReserveHandler(verifier.database, logins, FleetPolicy(in: directory.path))
    let asker = HostIdentity(web, host: Array("web1".utf8))
    func ask(_ question: ReserveQuestion) throws -> VerifierAnswer {
      handler.answer(try #require(question.encoded()), from: asker, arrived: sys_monotonic())
    }
    logins.note(enrollment.user.bytes, on: web)
    let fetch = ReserveQuestion.fetch(enrollment.user, receipt: nil)
    let fetched = ReserveAnswer.decode(try ask(fetch).body, to: fetch)
    guard case .section(let section) = fetched else {
      Issue.record("\(String(describing: fetched))")
      return
    }
    let used = ReserveQuestion.confirm([entry(enrollment.user, section, used: 1)])
    // A connection that goes on, beside the one that is refused.
    let number = verifier.database.books.withLock { $0.number() }
    let spare = try DatabaseConnection(
      own.words + " user=sallyport_verifier", worker: number, preparing: Statement.prepared)
    verifier.database.books.withLock { $0.idle.insert(spare, at: 0) }
    _ = try verifier.ask("BEGIN")
    _ = try verifier.ask("LOCK TABLE enrollment IN ACCESS EXCLUSIVE MODE")
    #expect(try ask(used) == .databaseAway)
    _ = try verifier.ask("COMMIT")
    #expect(
      ReserveAnswer.decode(try ask(used).body, to: used) == .confirmed([.keep(used: 1)]))
  }

  @Test func `is to be asked again, where it has waited for others too long`() throws {
    let question = try #require(ReserveQuestion.confirm([]).encoded())
    let host = HostIdentity(web, host: Array("web1".utf8))
    for (seconds, answer): (UInt64, ReserveAnswer) in [(0, .confirmed([])), (1, .busy)] {
      let arrived = sys_monotonic() - seconds * 1_000_000_000
      #expect(
        handler.answer(question, from: host, arrived: arrived)
          == VerifierAnswer(to: .reserve, answer))
    }
    // It waits with those of all hosts, and takes no turn of logins.
    let read = try #require(handler.read(question))
    guard case .reserves? = handler.line(of: read) else {
      Issue.record("in no line")
      return
    }
  }

  @Test func `is a verifier that is there, where nothing is asked`() throws {
    #expect(try ask(.confirm([]), as: web) == .confirmed([]))
    let garbage = try #require(Secret(Array("garbage".utf8)))
    let asker = HostIdentity(web, host: Array("web1".utf8))
    #expect(
      handler.answer(garbage, from: asker, arrived: sys_monotonic())
        == VerifierAnswer(to: .reserve, []))
  }
}
