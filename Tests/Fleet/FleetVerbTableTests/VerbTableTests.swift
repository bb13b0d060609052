import FleetProtocol
import FleetTransport
import Foundation
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

@testable import FleetCommand
@testable import SallyportCLI
@testable import SallyportVerifier

/// The verifier that the command of a host asks, without what lies between.
private struct NearVerifier: FleetVerifiers {
  let database: Database

  func ask(_ kind: FrameKind, within milliseconds: UInt64, _ made: (UInt64) -> Secret?)
    throws(TransportFault) -> VerifierAnswer
  {
    guard let frame = made(milliseconds) else { throw .away }
    guard kind == .management, let pin = Pin([UInt8](repeating: 3, count: 32)) else {
      return .notServed
    }
    let host = HostIdentity(pin, host: Array("web1".utf8), enrolls: true)
    return ManagementHandler(database).answer(frame, from: host, arrived: 0)
  }
}

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `Root's verbs on a host, over the fleet's database` {
  private let bench = Bench()
  private let own: TemporaryDirectory
  private let verifier: Verifier
  private let account: Account

  init() throws {
    own = try TemporaryDirectory()
    account = Account(name: try #require(UserName(Array("nobody".utf8))), uid: 65534)
    let now = bench.now
    verifier = try Verifier("verbs", in: try OwnDatabase(), now: { now })
    try bench.policy("[default]\nverification = fleet\n")
    try becomeHost()
    try Store(root: own.path + "/files", owner: .effectiveUser).prepare()
    let verifier = verifier
    bench.place.directory = own.path
    bench.place.authority = {
      RecordAuthority(store: verifier.store(for: "nobody", uid: 65534)) { now }
    }
    bench.place.asking = { _, _, _ in NearVerifier(database: verifier.database) }
  }

  private func becomeHost() throws {
    let file = FleetFile(
      host: "web1", enrolls: true, verifiers: [try #require(VerifierAddress("192.0.2.1:7353"))],
      pins: [try #require(Pin([UInt8](repeating: 7, count: 32)))])
    let key = try Identity.newKey()
    for (name, text, mode) in [
      (FleetFile.name, file.written(), 0o644),
      (FleetFile.keyName, String(decoding: bytes(key), as: UTF8.self), 0o600),
    ] {
      let path = own.path + "/" + name
      try Data(text.utf8).write(to: URL(fileURLWithPath: path))
      try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }
  }

  private var store: FleetStore { verifier.store(for: "nobody", uid: 65534) }

  @Test func `do to one person what the table of all ways says`() throws {
    defer { #expect(verifier.complaints.isEmpty) }
    for one in try VerbCase.all(on: .fleet) {
      if let before = try store.load(account) {
        #expect(try store.end(account, id: before.enrollment.id))
      }
      _ = try store.unblock(account)
      if let (enrollment, state) = try one.stored(for: account.name, uid: nil, at: bench.now) {
        try store.create(enrollment, state)
      }
      try one.replace(account, in: store, at: bench.now)
      if one.isBlocked { #expect(try store.block(account, until: nil)) }
      let run = VerbRun(one: one, way: .fleet, user: "nobody", now: bench.now)
      try run.check { bench.runAsRoot($0, on: $1, store: own.path + "/files") }
      let found = try store.load(account).map { ($0.enrollment, $0.state) }
      let facts = try one.facts(on: .fleet, found, for: account.name, uid: nil, at: bench.now)
      #expect(facts.found == facts.expected, "\(one)")
    }
  }
}
