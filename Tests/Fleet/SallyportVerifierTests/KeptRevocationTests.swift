import Foundation
import Glibc
import OneTimePassword
import SallyportSupport
import TestSupport
import Testing

@testable import SallyportVerifier

@Suite struct `The file of what was revoked, after a change of the key` {
  private let directory: TemporaryDirectory
  private var path: String { directory.path + "/revoked" }
  private let host = Array("web1".utf8)
  private let pin = [UInt8](repeating: 1, count: 32)

  init() throws { directory = try TemporaryDirectory() }

  private func row(_ name: [UInt8], _ at: Int64) throws -> RevokedRow {
    RevokedRow(subject: try RevokedRow.subject(ofName: name), host: name, at: at)
  }

  private func text() throws -> String { try String(contentsOfFile: path, encoding: .utf8) }

  private func lines(by id: String) throws -> Int {
    try text().split(separator: "\n").count { $0.contains(" \(id)") }
  }

  // decisive
  @Test func `refuses by a key that is not here, and allows nothing by it`() throws {
    let names = Revocations.names(of: host, pin)
    let rows = [
      RevokedRow(subject: [UInt8](repeating: 2, count: 32), host: host, at: 4),
      try row(names.rests, 5), try row(names.accepted, 6),
    ]
    try RevocationFile(path, key: fleetKey()).add(rows)
    #expect(try !Revocations(at: path, key: fleetKey()).rests(host, pin))
    // A verifier that was not there while the key was changed, and took a copy of the next one.
    let new = FleetKey(id: 2, try secret([UInt8](repeating: 8, count: 32)))
    let later = try Revocations(at: path, key: new)
    #expect(later.has([UInt8](repeating: 2, count: 32)) && later.rests(host, pin))
    let file = RevocationFile(path, key: new)
    try file.sealAgain()
    #expect(try lines(by: "02000000") == 2 && lines(by: "01000000") == 1)
    try file.add([RevokedRow(subject: pin, host: host, at: 7)])
    #expect(try lines(by: "02000000") == 3 && lines(by: "01000000") == 1)
    #expect(throws: PrivateFile.Fault.absent) { try PrivateFile.read(path + ".damaged") }
    // With both keys all of it counts again, and is sealed with the present one.
    let both = try twoKeys()
    let known = FleetKey(id: 2, try secret([UInt8](repeating: 8, count: 32)))
    both.follow([2, 0, 0, 0])
    #expect(both.id == 2 && bytes(both.present.secret) == bytes(known.present.secret))
    #expect(try !Revocations(at: path, key: both).rests(host, pin))
    try RevocationFile(path, key: both).sealAgain()
    #expect(try lines(by: "02000000") == 4 && lines(by: "01000000") == 0)
    // A line that is changed is damage, by a key that is here or by another.
    let whole = try text()
    for damaged in [whole.replacing(" 7 ", with: " 8 "), whole.replacing("02000000", with: "")] {
      try damaged.write(toFile: path, atomically: false, encoding: .utf8)
      #expect(try RevocationFile(path, key: both).read()?.isWhole == false)
    }
  }

  // decisive
  @Test(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
  func `is what the database has, where a host is found to rest after it`() throws {
    let fleet = try ChangingFleet()
    let revocations = try Revocations(at: path, key: fleet.one.database.key, patience: 0)
    try revocations.begin(by: fleet.one.database)
    try revocations.noteRest(of: host, pin, in: fleet.one.database)
    let names = Revocations.names(of: host, pin)
    let since = try #require(revocations.end(of: names.rests))
    try revocations.add(name: names.accepted, at: since, to: fleet.one.database)
    try fleet.change()
    // It is found before the row of the first time is sealed again.
    try revocations.noteRest(of: host, pin, in: fleet.one.database)
    #expect(revocations.rests(host, pin))
    let table = try HostTable(
      fleet.own.words + " user=sallyport_verifier", key: fleet.one.database.key)
    #expect(try table.end(ofName: names.rests) > since)
    try revocations.settle(by: fleet.one.database)
    #expect(fleet.one.complaints.isEmpty, "\(fleet.one.complaints)")
  }
}
