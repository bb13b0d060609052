import Foundation
import OneTimePassword
import SallyportCore
import Testing

@testable import SallyportSystem

extension Account: Equatable {
  static func == (a: Account, b: Account) -> Bool {
    a.name == b.name && a.uid == b.uid && a.group == b.group
  }
}

@Suite struct `Accounts, clock, random bytes and addresses` {
  @Test func `An account has its own spelling and uid`() throws {
    let name = try userName("root")
    #expect(try Accounts.find(name) == Account(name: name, uid: 0, group: 0))
    let line = try #require(
      try String(contentsOfFile: "/etc/passwd", encoding: .utf8)
        .split(separator: "\n").map { $0.split(separator: ":", omittingEmptySubsequences: false) }
        .first { $0.count == 7 && $0[2] != "0" })
    let other = try userName(String(line[0]))
    #expect(
      try Accounts.find(other) == Account(name: other, uid: UInt32(line[2]), group: UInt32(line[3]))
    )
  }

  @Test(arguments: ["no-such-user", "a b"])
  func `No such account is the name as typed, without a uid`(typed: String) throws {
    let name = try userName(typed)
    #expect(try Accounts.find(name) == Account(name: name, uid: nil))
  }

  @Test func `The clock is that of the system`() throws {
    let before = Int64(Date().timeIntervalSince1970)
    let now = try Clock.now().seconds
    #expect((before...Int64(Date().timeIntervalSince1970) + 1).contains(now))
  }

  @Test(arguments: [1, 20, 1000, 100_000])
  func `Random bytes fill what is asked for and differ`(count: Int) throws {
    let (first, second) = (try Random.secret(count: count), try Random.secret(count: count))
    #expect(first.count == count)
    let same = (0..<count).filter { first[$0] == second[$0] }.count
    #expect(count == 1 || same < count / 4)
    // The end of a long request is filled, too.
    #expect(count < 1000 || (count - 64..<count).contains { first[$0] != 0 })
  }

  // decisive
  @Test func `Identifiers are never 0 and differ`() throws {
    let numbers = try (0..<100).map { _ in try Random.identifier() }
    #expect(Set(numbers).count == 100 && !numbers.contains(0))
  }

  @Test func `The name of this machine is the kernel's`() throws {
    let name = try contents("/proc/sys/kernel/hostname").dropLast()
    #expect(HostName.label == Label([UInt8](name)) && !HostName.label.bytes.isEmpty)
  }

  @Test(arguments: [
    ("192.0.2.7", "192.0.2.7"), ("0.0.0.0", "0.0.0.0"), ("::ffff:192.0.2.7", "192.0.2.7"),
    ("2001:db8::1", "2001:db8::/64"), ("2001:db8:0:1:2:3:4:5", "2001:db8:0:1::/64"),
    ("fe80::1%eth0", "fe80::/64"), ("::1", "::/64"), ("2001:DB8::", "2001:db8::/64"),
  ])
  func `Addresses are read and shown as the network that counts`(text: String, shown: String) throws
  {
    #expect(Addresses.text(try #require(Addresses.parse([UInt8](text.utf8)))) == shown)
  }

  @Test(arguments: [
    ("192.0.2.7", "192.0.2.7"), ("::ffff:192.0.2.7", "192.0.2.7"), ("2001:DB8::1", "2001:db8::1"),
    ("2001:db8:0:1:2:3:4:5", "2001:db8:0:1:2:3:4:5"),
  ])
  func `An address in full is shown in full`(text: String, shown: String) throws {
    #expect(Addresses.text(try #require(Addresses.numeric([UInt8](text.utf8)))) == shown)
  }

  @Test func `The addresses that lead to this machine are its own, and no others`() throws {
    func isOwn(_ text: String) throws -> Bool {
      Addresses.isOwn(try #require(Addresses.numeric([UInt8](text.utf8))))
    }
    // Every loopback interface that is up has them.
    for own in ["127.0.0.1", "::ffff:127.0.0.1", "127.0.0.2"] {
      #expect(try isOwn(own), "\(own)")
    }
    for other in ["192.0.2.7", "2001:db8::7", "::127.0.0.1"] {
      #expect(try !isOwn(other), "\(other)")
    }
  }

  // shows: place-by-name
  @Test(arguments: [
    "", "host.example", "192.0.2", "192.0.2.7:22", "[::1]", " ::1", "192.0.2.07x", "1",
    "192.0.2.7%eth0", "%eth0", "::1\0", "192.0.2.7\0", "2001:db8::/64",
    String(repeating: "1:", count: 40),
  ])
  func `What is no numeric address is none`(text: String) {
    #expect(Addresses.parse([UInt8](text.utf8)) == nil)
  }
}
