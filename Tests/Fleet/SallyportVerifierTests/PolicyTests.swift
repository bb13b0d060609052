import Foundation
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

@testable import SallyportVerifier

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `The policy of a fleet` {
  private let own: OwnDatabase
  private let directory: TemporaryDirectory
  private static let first = "# as it was typed\n[default]\nadjacent_intervals = 2\n"
  private static let next = "[default]\nadjacent_intervals = 1\n"

  init() throws {
    own = try OwnDatabase()
    directory = try TemporaryDirectory()
  }

  /// With its files in a directory of its own.
  private func verifier(_ name: String) throws -> Verifier {
    let place = directory.path + "/" + name
    try FileManager.default.createDirectory(
      atPath: place, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    return try Verifier(name, in: own, memory: place + "/seen", directory: place)
  }

  private func intervals(_ verifier: Verifier) -> UInt64 {
    let policy = FleetPolicy(in: "/var/empty/no-policy", stored: verifier.database.policy)
    let reading = policy.reading(service: [], user: [], isRemote: true, address: nil)
    return reading.policy[.adjacentIntervals]
  }

  private func store(_ text: String, by verifier: Verifier, after former: StoredPolicy?) throws
    -> Database.PolicyStored
  {
    try verifier.database.store(
      policy: Array(text.utf8), by: Array("root@here".utf8), after: former)
  }

  /// As each beat does.
  private func look(_ verifier: Verifier) throws {
    try verifier.database.lookForPolicy(by: verifier.admin)
  }

  private func begun() throws -> Verifier {
    let one = try verifier("one")
    #expect(try store(Self.first, by: one, after: nil) == .done(1))
    try look(one)
    return one
  }

  @Test func `is one for all verifiers, and as it was typed`() throws {
    let (one, two) = (try begun(), try verifier("two"))
    #expect(intervals(one) == 2 && intervals(two) == 2)
    let found = try two.database.newestPolicy()
    #expect(found.map { String(decoding: $0.text, as: UTF8.self) } == Self.first)
    #expect(try store(Self.next, by: two, after: found) == .done(2))
    for each in [one, two] { try look(each) }
    #expect(intervals(one) == 1 && intervals(two) == 1)
    #expect(try one.database.policyHistory().map(\.serial) == [1, 2])
    #expect(one.complaints.isEmpty && two.complaints.isEmpty)
  }

  // decisive
  // shows: host-policy
  @Test func `is changed by one of two at once`() throws {
    let one = try begun()
    let former = try one.database.newestPolicy()
    #expect(try store(Self.next, by: one, after: former) == .done(2))
    #expect(try store("[default]\n", by: one, after: former) == .late(2))
    try look(one)
    #expect(intervals(one) == 1)
  }

  // decisive
  // shows: host-policy
  @Test(
    arguments: [
      "DELETE FROM policy", "DELETE FROM policy WHERE serial = 2",
      "UPDATE policy SET body = 'x' WHERE serial = 2",
      "UPDATE policy SET serial = 5 WHERE serial = 2",
      "UPDATE policy SET at = -1 WHERE serial = 2",
    ])
  func `holds where its row is missing, forged or put back, and is put right`(by: String) throws {
    let one = try begun()
    #expect(try store(Self.next, by: one, after: try one.database.newestPolicy()) == .done(2))
    try look(one)
    let right = "SELECT count(*) FROM policy WHERE serial = 2 AND body = $1"
    _ = try one.ask(by)
    // Also by a verifier that was started since.
    let again = try verifier("one")
    for each in [one, again] { #expect(intervals(each) == 1) }
    #expect(again.complaints.contains { $0.contains("policy 2 was removed") })
    #expect(try one.ask(right, [.bytes(Array(Self.next.utf8))]).number(0, 0) == 1)
  }

  // shows: host-policy
  @Test func `is stored by nobody without the key`() throws {
    let one = try begun()
    _ = try one.ask("INSERT INTO policy SELECT 2, at, author, 'x', seal FROM policy")
    try look(one)
    #expect(intervals(one) == 2)
    #expect(one.complaints.contains { $0.contains("stored a policy: policy 1 stays in force") })
    // It keeps nobody from changing it.
    #expect(try store(Self.next, by: one, after: try one.database.newestPolicy()) == .done(2))
    try look(one)
    #expect(intervals(one) == 1)
  }

  // decisive; shows: host-policy
  @Test func `is stored in the place of any row that somebody without the key has made`() throws {
    let one = try begun()
    for at in ["-1", "0", "9223372036854775807"] {
      _ = try one.ask(
        "INSERT INTO policy SELECT max(serial) + 1, \(at), 'x', 'x', 'x' FROM policy")
      let former = try one.database.newestPolicy()
      let done = try store(Self.next, by: one, after: former)
      #expect(done == .done((former?.serial ?? 0) + 1), "\(at)")
    }
  }

  @Test func `is said to be the one that a verifier goes by`() throws {
    let one = try begun()
    #expect(
      try store("[default]\nnew = 1\n", by: one, after: try one.database.newestPolicy())
        == .done(2))
    try look(one)
    // Also after a start.
    for each in [one, try verifier("one")] {
      #expect(each.database.policy.newest?.serial == 2 && intervals(each) == 2)
      #expect(String(decoding: each.database.policy.told, as: UTF8.self).hasPrefix("1 "))
    }
  }

  /// The files' directory is one that nobody can write to.
  @Test func `is kept as soon as it can be, with one complaint`() throws {
    let one = try verifier("one")
    let (file, place) = (directory.path + "/one/policy", directory.path + "/one")
    func complaints() -> Int { one.complaints.count { $0.contains("/policy: ") } }
    try FileManager.default.moveItem(atPath: place, toPath: place + ".away")
    #expect(try store(Self.first, by: one, after: nil) == .done(1))
    for _ in 0..<3 { try look(one) }
    #expect(intervals(one) == 2 && complaints() == 1)
    try FileManager.default.moveItem(atPath: place + ".away", toPath: place)
    try look(one)
    #expect(FileManager.default.fileExists(atPath: file) && complaints() == 1)
    // Not where the next one alone could not be kept, either.
    try FileManager.default.moveItem(atPath: place, toPath: place + ".away")
    #expect(try store(Self.next, by: one, after: try one.database.newestPolicy()) == .done(2))
    try look(one)
    try FileManager.default.moveItem(atPath: place + ".away", toPath: place)
    try look(one)
    #expect(try String(contentsOfFile: file, encoding: .utf8).contains("serial = 2\n"))
    #expect(complaints() == 2)
  }

  @Test func `that is on disk and cannot be read is an alert, and replaced`() throws {
    _ = try begun()
    let file = directory.path + "/one/policy"
    let right = try Data(contentsOf: URL(fileURLWithPath: file))
    func alerts(_ content: Data, _ modes: Int) throws -> Int {
      try content.write(to: URL(fileURLWithPath: file))
      try FileManager.default.setAttributes([.posixPermissions: modes], ofItemAtPath: file)
      let one = try verifier("one")
      try look(one)
      #expect(intervals(one) == 2)
      #expect(try Data(contentsOf: URL(fileURLWithPath: file)) == right)
      return one.complaints.count { $0.contains("whether the policy went back is not known") }
    }
    #expect(try alerts(right, 0o600) == 0)
    #expect(try alerts(right, 0o644) == 1)
    #expect(try alerts(Data(right.dropLast()), 0o600) == 1)
  }

  @Test func `of two with one number is the later one, everywhere`() throws {
    let one = try begun()
    let rival = StoredPolicy(
      serial: 1, at: (one.database.policy.newest?.at ?? 0) + 1, author: Array("r".utf8),
      text: Array(Self.next.utf8))
    let columns = try rival.columns(under: try fleetKey())
    _ = try one.ask("DELETE FROM policy")
    _ = try one.ask(Statement.putPolicy, columns + [.null])
    try look(one)
    #expect(intervals(one) == 1)
  }

  @Test func `is not stored while somebody is there who may not read it`() throws {
    let one = try begun()
    for change in ["version = 4", "policy = '1 1'", "policy = NULL"] {
      _ = try one.ask("UPDATE worker SET now = clock_timestamp(), \(change) WHERE worker = 0")
      let done = try store(Self.next, by: one, after: try one.database.newestPolicy())
      #expect(done == .unread(["one"]))
    }
  }

  @Test func `that cannot be read leaves what could be`() throws {
    let one = try begun()
    #expect(
      try store("[default]\nnew = 1\n", by: one, after: try one.database.newestPolicy())
        == .done(2))
    try look(one)
    #expect(intervals(one) == 2)
    #expect(one.complaints.contains { $0.contains("policy 2:2: ") })
  }

  @Test func `is that of the file until one is stored`() throws {
    let one = try verifier("one")
    #expect(one.database.policy.used == nil && one.database.policy.newest == nil)
    #expect(String(decoding: one.database.policy.told, as: UTF8.self).hasPrefix("file:none "))
    _ = try one.ask("UPDATE worker SET now = clock_timestamp()")
    #expect(try one.database.policyFiles().map(\.digest) == ["file:none"])
  }
}

@Suite struct `A policy that is kept` {
  // decisive
  @Test func `is believed with its seal alone`() throws {
    let key = try fleetKey()
    let policy = StoredPolicy(
      serial: 7, at: 1_700_000_000, author: Array("root@here".utf8), text: Array("[default]\n".utf8)
    )
    let file = try policy.file(under: key)
    #expect(StoredPolicy(file: file, under: key) == policy)
    for index in file.indices {
      var other = file
      other[index] ^= 1
      #expect(StoredPolicy(file: other, under: key) == nil, "\(index)")
    }
    #expect(StoredPolicy(file: Array(file.dropLast()), under: key) == nil)
    #expect(StoredPolicy(file: [], under: key) == nil)
  }
}
