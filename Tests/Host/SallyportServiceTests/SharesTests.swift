import CSystem
import Foundation
import SallyportSupport
import TestSupport
import Testing

@testable import SallyportService

@Suite struct `Whose share of the service a peer has` {
  private let own: TemporaryDirectory
  private let file: String

  init() throws {
    own = try TemporaryDirectory()
    file = own.path + "/subuid"
  }

  private func shares(
    _ text: String, accounts: Set<UInt32> = [], names: [String: UInt32] = [:]
  ) throws -> Shares {
    try text.write(toFile: file, atomically: true, encoding: .utf8)
    return Shares(file: file) {
      accounts.contains($0) ? 1 : 0
    } uid: {
      names[$0]
    }
  }

  /// The ranges, the uid, and whose share it is where alice is 3001 and nobody was seen.
  static let cases: [(String, UInt32, Share)] = [
    ("alice:100000:65536", 0, .root),
    ("alice:100000:65536", 3001, .strangers),
    ("alice:100000:65536", 99_999, .strangers),
    ("alice:100000:65536", 100_000, .user(3001)),
    ("alice:100000:65536", 165_535, .user(3001)),
    ("alice:100000:65536", 165_536, .strangers),
    ("3002:100000:65536", 100_001, .user(3002)),
    ("nobody-here:100000:65536", 100_001, .ranges(of: "nobody-here")),
    ("root:100000:65536", 100_001, .ranges(of: "root")),
    ("0:100000:65536", 100_001, .ranges(of: "0")),
    ("3002:1000000:1000000000\nalice:1065536:65536", 1_065_536, .user(3001)),
    ("3002:1000000:1000000000\nalice:1065536:65536", 1_131_072, .user(3002)),
    ("3002:4294967295:4294967295", 4_294_967_294, .strangers),
    ("3002:4294967290:4294967295", 4_294_967_294, .user(3002)),
    ("\n# no\n:100000:65536\nalice:100000", 100_001, .strangers),
    ("alice:-1:65536\nalice:100000:65536:7", 100_001, .strangers),
    ("3002:100000:0", 100_000, .strangers),
    ("", 100_000, .strangers),
  ]

  /// A stranger's account is found while three others and he have all workers of strangers.
  @Test(.enabled(if: isRoot, "the service is root's"))
  func `that is found to be another one lets workers go on that sleep`() async {
    await #expect(processExitsWith: .success) {
      let (finding, unknown, done) = (Gate(), Gate(), Gate())
      let shares = Shares(file: "/nowhere/subuid") { user in
        (user == 1 ? finding : unknown).pass(user)
        return user == 1 ? 1 : 0
      }
      let service = try TestService(shares: shares) { peer, _, _ in
        done.pass(peer.realUser)
        return [1]
      }
      func send(as user: uid_t) throws -> RawClient {
        try #require(sys_set_real_and_saved_user(user, 0) == 0 && seteuid(user) == 0)
        let client = try RawClient(service.everybody)
        client.send([0])
        try #require(seteuid(0) == 0 && sys_set_real_and_saved_user(0, 0) == 0)
        return client
      }
      let found = try send(as: 1)
      #expect(soon { finding.inside.count == 1 })
      let others = try (0..<4).map { _ in try send(as: 2) }
      #expect(soon { unknown.inside.count == 3 })
      finding.open()
      #expect(soon { done.inside.count == 1 && unknown.inside.count == 4 })
      for gate in [unknown, done] { gate.open() }
      #expect(found.answer() == [1] && others.allSatisfy { $0.answer() == nothingDone })
    }
  }

  // shows: session-share
  @Test(arguments: cases.indices)
  func `is that of the owner of its range, else of all strangers`(_ index: Int) throws {
    let (text, user, share) = Self.cases[index]
    let shares = try shares(text, names: ["alice": 3001, "root": 0])
    #expect(soon { shares.share(of: user) == share }, "\(shares.share(of: user))")
  }

  // decisive
  @Test func `is its own once it was found to have an account, and no flood ends that`() throws {
    let shares = try shares("3002:100000:65536", accounts: [3001, 100_000])
    #expect(shares.share(of: 3001) == .strangers)
    for user: UInt32 in [3001, 100_000] { #expect(shares.hasAccount(user) == 1) }
    for user in UInt32(200_000)..<220_000 { #expect(shares.hasAccount(user) == 0) }
    #expect(shares.share(of: 3001) == .user(3001) && shares.share(of: 100_000) == .user(100_000))
    #expect(shares.share(of: 200_000) == .strangers && shares.share(of: 100_001) == .user(3002))
  }

  @Test func `is remembered for who asks, however many accounts there are`() throws {
    let shares = try shares("", accounts: Set(1...40_000))
    for user in UInt32(1)...40_000 {
      #expect(shares.hasAccount(user) == 1)
      #expect(shares.isFound(1))
    }
    #expect(!shares.isFound(2))
  }

  @Test func `is of the ranges alone as long as nobody says whose they are`() throws {
    try "alice:100000:65536\nbob:200000:65536".write(
      toFile: file, atomically: true, encoding: .utf8)
    let isOver = Locked(false)
    let shares = Shares(file: file) { _ in
      0
    } uid: { name in
      while !isOver.withLock({ $0 }) { usleep(1000) }
      return name == "alice" ? 3001 : nil
    }
    #expect(shares.share(of: 100_000) == .ranges(of: "alice"))
    #expect(shares.share(of: 200_000) == .ranges(of: "bob"))
    isOver.withLock { $0 = true }
    #expect(soon { shares.share(of: 100_000) == .user(3001) })
    #expect(shares.share(of: 200_000) == .ranges(of: "bob"))
  }

  @Test func `follows the file`() throws {
    let shares = try shares("3001:100000:65536")
    #expect(shares.share(of: 100_000) == .user(3001))
    try "3002:100000:65536\n".write(toFile: file, atomically: true, encoding: .utf8)
    #expect(soon { shares.share(of: 100_000) == .user(3002) })
    try FileManager.default.removeItem(atPath: file)
    #expect(soon { shares.share(of: 100_000) == .strangers })
  }

  @Test func `counts by it who is driven out`() {
    let crowd: [Share] = [.user(1), .strangers, .ranges(of: "a"), .strangers, .user(1), .strangers]
    #expect(crowdedOut(of: crowd) == 1)
    #expect(crowdedOut(of: [.user(1), .user(2)]) == 0)
    #expect(crowdedOut(of: []) == nil)
  }
}
