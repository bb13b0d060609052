import FleetProtocol
import Foundation
import OneTimePassword
import SallyportCore
import SallyportSupport
import TestSupport
import Testing

@testable import SallyportVerifier

private let alice = Array("alice".utf8)

/// The bytes of a file with the key of this id.
func keyFile(_ id: UInt8) throws -> Secret {
  try secret([id, 0, 0, 0] + [UInt8](repeating: id &+ 6, count: FleetKey.length))
}

/// The tests' own key, and the next one with this id.
func twoKeys(_ next: UInt8 = 2) throws -> FleetKey {
  let key = try fleetKey()
  try key.take(next: keyFile(next))
  return key
}

@Suite struct `While the key of a fleet changes` {
  private func row(_ joined: Int64 = 5) -> HostRow {
    HostRow(name: alice, key: [UInt8](repeating: 9, count: 32), joined: joined)
  }

  @Test func `the row of the fleet says which key seals, and both open`() throws {
    let (first, both) = (try fleetKey(), try twoKeys())
    let old = try both.seal(try secret("one"), .enrollment, of: alice)
    let oldSeal = try row().seal(under: both)
    #expect(old.prefix(5) == [1, 1, 0, 0, 0])
    #expect(try oldSeal == row().seal(under: first))
    both.follow([2, 0, 0, 0])
    let new = try both.seal(try secret("two"), .enrollment, of: alice)
    let newSeal = try row().seal(under: both)
    #expect(new.prefix(5) == [1, 2, 0, 0, 0] && newSeal != oldSeal)
    #expect(text(try both.open(old, .enrollment, of: alice)) == "one")
    #expect(text(try both.open(new, .enrollment, of: alice)) == "two")
    for seal in [oldSeal, newSeal] {
      #expect(row().isRight(seal, under: both) && !row(6).isRight(seal, under: both))
    }
    #expect(!row().isRight([2, 0, 0, 0] + oldSeal.dropFirst(4), under: both))
    #expect(throws: SealFault.otherKey(2)) { try first.open(new, .enrollment, of: alice) }
    #expect(!row().isRight(newSeal, under: first))
    both.follow([3, 0, 0, 0])
    #expect(both.id == 1)
  }

  @Test func `a row that was not right is so with a key that came since`() throws {
    let new = try twoKeys()
    new.follow([2, 0, 0, 0])
    let (key, seal) = (try fleetKey(), try row().seal(under: new))
    var checked = CheckedRows<HostRow>()
    #expect(checked.check(row(), seal, under: key) == (false, true))
    checked.begin()
    #expect(checked.check(row(), seal, under: key) == (false, false))
    try key.take(next: keyFile(2))
    checked.begin()
    #expect(checked.check(row(), seal, under: key) == (true, true))
  }

  @Test func `nothing is sealed with the former one again, once nothing needs it`() throws {
    let key = try twoKeys()
    key.follow([2, 0, 0, 0])
    key.follow([1, 0, 0, 0])
    #expect(key.id == 1 && key.lacks([1, 0, 0, 0]) == nil)
    key.noteOldest([1, 0, 0, 0])
    #expect(!key.isFirstOver)
    key.noteOldest([2, 0, 0, 0])
    #expect(key.id == 2 && key.isFirstOver && key.former?.id == 1)
    key.follow([1, 0, 0, 0])
    #expect(key.id == 2 && key.lacks([1, 0, 0, 0])?.contains("restored") == true)
    try key.endFirst()
    #expect(key.ids == [2] && !key.isFirstOver && key.former == nil)
  }

  @Test func `the next key is one of the files and of the copy`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/key"
    try PrivateFile.make(path, keyFile(1))
    let key = try FleetKey.read(at: path)
    #expect(key.ids == [1] && key.key(2) == nil)
    for _ in 0..<2 { try key.take(next: keyFile(2)) }
    #expect(try FleetKey.read(at: path).ids == [1, 2])
    let contents = try FleetKey.contents(at: path)
    let files = try FleetKey.files(contents, at: path)
    #expect(files.map(\.0) == [path, path + ".next"])
    #expect(try files.map { bytes($0.1) } == [bytes(keyFile(1)), bytes(keyFile(2))])
    for count in [0, 35, 71, 73] {
      #expect(throws: PrivateFile.Fault.damaged) {
        try FleetKey.files(secret([UInt8](repeating: 1, count: count)), at: path)
      }
    }
    // It is named, and not the file beside it.
    let fault = FleetKey.FileFault(path: path + ".next", fault: .damaged, isNext: true)
    try Data([1]).write(to: URL(fileURLWithPath: path + ".next"))
    #expect(throws: fault) { try FleetKey.read(at: path) }
    #expect(throws: PrivateFile.Fault.damaged) { try key.take(next: keyFile(3)) }
  }

  // decisive
  @Test func `no file of a key is written over with which something may be sealed`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/key"
    try PrivateFile.make(path, keyFile(1))
    let (key, other) = (try FleetKey.read(at: path), try FleetKey.read(at: path))
    try key.take(next: keyFile(2))
    try key.take(next: keyFile(3))
    #expect(try FleetKey.read(at: path).ids == [1, 3])
    #expect(try bytes(PrivateFile.read(path + ".00000002")) == bytes(keyFile(2)))
    // A command and the service of one directory.
    try other.take(next: keyFile(3))
    #expect(throws: PrivateFile.Fault.absent) { try PrivateFile.read(path + ".00000003") }
    try key.endFirst()
    try other.endFirst()
    #expect(other.ids == [3])
    #expect(try FleetKey.read(at: path).ids == [3])
    #expect(throws: PrivateFile.Fault.absent) { try PrivateFile.read(path + ".next") }
    // One at a time.
    // SAFETY: the C string lives for the call.
    let held = unsafe open(directory.path, O_RDONLY | O_DIRECTORY)
    defer { close(held) }
    #expect(flock(held, LOCK_EX) == 0)
    #expect(throws: PrivateFile.Fault.system("flock", errno: EWOULDBLOCK)) {
      try key.take(next: keyFile(4))
    }
    #expect(flock(held, LOCK_UN) == 0)
    try key.take(next: keyFile(4))
    #expect(try FleetKey.read(at: path).ids == [3, 4])
  }
}

@Suite struct `A seal` {
  /// As docs/fleet-format.md has it; by Python's hmac and hashlib.
  // shows: nonce
  @Test func `has a nonce that no other text has, where the random comes again`() throws {
    let one = SealingKey(
      id: 1, secret: try secret([UInt8](repeating: 7, count: FleetKey.length)))
    let random = [UInt8](repeating: 3, count: 16)
    func nonce(_ text: String, _ beside: [UInt8] = [1, 2]) throws -> [UInt8] {
      try one.nonce(of: secret(text), beside, random)
    }
    #expect(try hexadecimal(nonce("one")) == Array("1ade683547b0b4d612ee0390".utf8))
    let others = [
      try nonce("one"), try nonce("two"), try nonce("one", [1, 3]),
      try one.nonce(of: secret("one"), [1, 2], [UInt8](repeating: 4, count: 16)),
    ]
    #expect(Set(others).count == 4)
  }
}

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `A verifier whose fleet has changed its key` {
  private func change(_ one: Verifier) throws {
    let key = try twoKeys()
    key.follow([2, 0, 0, 0])
    let row = FleetRow(needs: Schema.number, writes: Schema.number)
    _ = try one.ask("UPDATE fleet SET seal = $1", [.bytes(try row.seal(under: key))])
  }

  @Test func `seals with the new one from the next login on, and reads the old one`() throws {
    let one = try Verifier("one", in: try OwnDatabase())
    let name = try one.enroll()
    try one.database.key.take(next: keyFile(2))
    #expect(try one.type("287082", as: name).isAccepted)
    try change(one)
    #expect(try one.type("359152", as: name, at: 89).isAccepted)
    #expect(
      try one.ask("SELECT get_byte(body, 1) FROM state WHERE name = $1", [.bytes(Array(name.utf8))])
        .int(0, 0) == 2)
    #expect(one.complaints.isEmpty)
  }

  @Test func `is away where it lacks the new one, and says so`() throws {
    let one = try Verifier("one", in: try OwnDatabase())
    let name = try one.enroll()
    try change(one)
    let store = one.store(for: name)
    #expect(throws: (any Error).self) {
      _ = try store.load(Account(name: #require(UserName(Array(name.utf8))), uid: 1000))
    }
    #expect(store.wasAway && one.database.isAway)
    #expect(one.complaints.contains { $0.contains("lacks the new one") })
    #expect(throws: DatabaseFault.self) { try one.database.begin() }
  }
}
