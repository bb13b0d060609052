import Foundation
import TestSupport
import Testing

@testable import PAMStack
@testable import SallyportDoctor

/// Match blocks by chance, read here and by the real sshd: others each time, unless
/// SALLYPORT_BLOCKS_SEED says which.
@Suite(.enabled(if: RealSSHD.isThere, "there is no sshd, or no /run/sshd"))
struct `Match blocks by chance` {
  @Test func `hold here where they hold for sshd`() throws {
    let real = try RealSSHD()
    let given = ProcessInfo.processInfo.environment["SALLYPORT_BLOCKS_SEED"].flatMap { UInt64($0) }
    let seed = given ?? UInt64.random(in: 0..<1_000_000_000)
    var random = Seeded(seed)
    for _ in 0..<3 {
      let criteria = (0..<40).map { _ in RealSSHD.criterion(&random) }
      // sshd adds up the words of all blocks that hold.
      let text = criteria.enumerated().map { "Match \($1)\n  AllowUsers block\($0)\n" }.joined()
      try real.fake.write("/etc/ssh/sshd_config", text)
      try real.write(text)
      let blocks = SSHBlocks(SSHConfiguration(of: real.fake.machine))
      for login in real.logins {
        for connection in RealSSHD.connections {
          let said = try real.settings(String(decoding: login.name, as: UTF8.self), connection)
          let held = blocks.holding(blocks.about(login), blocks.about(connection))
          let wrong = Set(said.all("allowusers")).symmetricDifference(held.map { "block\($0)" })
          let named = wrong.compactMap { Int($0.dropFirst(5)) }.map { criteria[$0] }
          let who = String(decoding: login.name, as: UTF8.self)
          #expect(named == [], "SEED=\(seed): \(who) from \(connection)")
        }
      }
    }
  }
}

/// sshd with a file of its own, about this machine's accounts.
final class RealSSHD {
  static let isThere = ["/usr/sbin/sshd", "/run/sshd", "/usr/bin/ssh-keygen"].allSatisfy {
    FileManager.default.fileExists(atPath: $0)
  }

  static let connections = [
    SSHConnection.here(port: "22"), .elsewhere(port: "2222"),
    SSHConnection(
      name: "", address: "10.1.2.3", host: "a.example.org", localAddress: "192.0.2.1", port: "22",
      domain: "red"),
    SSHConnection(
      name: "", address: "2001:db8::5", host: "2001:db8::5", localAddress: "2001:db8::1",
      port: "2222"),
  ]
  private static let words = [
    "User": ["root", "r*", "!root,*", "daemon,nobody", "*,!d*", "?oot", "Root", "!nobody"],
    "Group": ["root", "d*", "!daemon,*", "nogroup,nobody", "*,!*root*", "mail"],
    "Address": [
      "10.0.0.0/8", "10.*,!10.1.2.3", "*", "2001:db8::/32", "127.0.0.1,203.0.113.0/24",
      "!10.1.2.3,*",
      "0.0.0.0/0",
    ],
    "Host": ["*.example.org", "localhost", "*,!A.example.org", "2001:*", "10.*"],
    "LocalAddress": ["192.0.2.0/24", "127.0.0.1", "2001:db8::1"], "LocalPort": ["22", "2222"],
    "RDomain": ["red", "*", "!red,*"],
  ]

  static func criterion(_ random: inout Seeded) -> String {
    let count = Int.random(in: 1...2, using: &random)
    let names = words.keys.sorted().shuffled(using: &random).prefix(count)
    return names.map { "\($0) \(words[$0]?.randomElement(using: &random) ?? "")" }
      .joined(separator: " ")
  }

  let fake = FakeMachine()
  private var file: String { fake.root + "/sshd_config" }
  let logins: [SSHLogin]

  init() throws {
    let machine = Machine()
    let accounts = AccountFacts(of: machine)
    logins = accounts.accounts.filter { ["root", "daemon", "nobody"].contains($0.name) }
      .map { SSHLogin($0, accounts) }
    try fake.write("/key", "")
    try FileManager.default.removeItem(atPath: fake.root + "/key")
    let words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", fake.root + "/key"]
    try #require(machine.run(words).value?.status == 0)
  }

  func write(_ text: String) throws {
    try fake.write("/sshd_config", "HostKey \(fake.root)/key\n" + text)
  }

  func settings(_ user: String, _ connection: SSHConnection) throws -> SSHSettings {
    let found = SSHFacts.settings(of: Machine(), ["-f", file], user: user, from: connection)
    return try #require(found.value, "\(found)")
  }
}

@Suite struct `Patterns of sshd` {
  @Test(arguments: [
    ("alice", "alice", true), ("a*e", "alice", true), ("a*", "a", true), ("a?", "a", false),
    ("*", "", true), ("?", "", false), ("*i*i*", "alice", false), ("**e", "alice", true),
    ("a*b*c", "axbxxc", true), ("a*b*c", "axbxx", false), ("[a]", "a", false), ("A", "a", false),
  ]) func `match by stars and question marks`(pattern: String, text: String, holds: Bool) {
    #expect(SSHPattern(pattern).matches(Array(text.utf8)) == holds)
  }

  @Test(arguments: [
    ("192.0.2.0/24", "192.0.2.7", SSHMatch.yes), ("192.0.2.0/24", "192.0.3.7", .no),
    ("192.0.2.0/24,!192.0.2.7", "192.0.2.7", .excluded),
    ("!192.0.2.7,192.0.2.0/24", "192.0.2.8", .yes), ("192.0.2.*", "192.0.2.7", .yes),
    ("2001:db8::/32", "2001:db8::5", .yes), ("::/0", "192.0.2.7", .no),
    ("0.0.0.0/0", "2001:db8::5", .no), ("*", "2001:db8::5", .yes),
    ("2001:DB8::5", "2001:db8::5", .yes),
  ]) func `match addresses by number and by text`(list: String, address: String, found: SSHMatch) {
    #expect(SSHAddressList(list).match(address) == found)
  }
}
