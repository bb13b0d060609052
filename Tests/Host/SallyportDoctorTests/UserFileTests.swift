import CCommand
import Foundation
import Glibc
import SallyportSupport
import SallyportSystem
import TestSupport
import Testing

@testable import PAMStack
@testable import SallyportDoctor

/// Files in a home, which root opens and their user chose.
@Suite struct `A file that a user chose` {
  private let directory: TemporaryDirectory
  private var path: String { "\(directory.path)/authorized_keys" }

  init() throws {
    directory = try TemporaryDirectory()
    try done(unsafe chmod(directory.path, 0o755))
  }

  private func write(_ path: String, _ text: String, owner: uid_t = 0, mode: mode_t = 0o644) throws
  {
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    try done(unsafe chmod(path, mode))
    if geteuid() == 0 { try done(unsafe chown(path, owner, owner)) }
  }

  // The C strings of these calls live for the call.
  private func done(_ result: Int32) throws { try #require(result == 0) }

  /// What is read, or why nothing is.
  private func read(as reader: FileReader? = nil, following: Bool = true) -> Result<
    String, SystemError
  > {
    do throws(SystemError) {
      let file = try OpenFile.regular(path, following: following, as: reader)
      return .success(String(decoding: try file.bytes(100), as: UTF8.self))
    } catch {
      return .failure(error)
    }
  }

  private func link(to target: String) throws { try done(unsafe symlink(target, path)) }

  @Test(arguments: ["/dev/full", "/dev/zero", "/dev/tty", "/dev", "/proc"])
  func `is not opened if it leads to a device or a directory`(target: String) throws {
    try link(to: target)
    #expect(read() == .failure(.notRegular))
  }

  @Test func `is not opened if it is a FIFO`() throws {
    try done(unsafe mkfifo(path, 0o666))
    #expect(read() == .failure(.notRegular))
  }

  @Test func `is read to a limit, however long it is`() throws {
    try write(path, "ssh-ed25519 AAAA x\n")
    try done(unsafe truncate(path, 10 << 30))
    #expect(try read().get().utf8.count == 100)
    let fake = FakeMachine()
    let home = AccountFacts.Account(name: "ana", uid: 1001, group: 1001, shell: "/bin/sh")
    try fake.write("/ana/long", String(repeating: "#\n", count: 1 << 19))
    #expect(fake.machine.text("/ana/long", of: home).value?.utf8.count == Machine.longestText)
  }

  @Test func `is found through a link, or not if links are not followed`() throws {
    try write("\(directory.path)/shared", "ssh-ed25519 AAAA x\n")
    try link(to: "shared")
    #expect(read() == .success("ssh-ed25519 AAAA x\n"))
    #expect(read(following: false) == .failure(SystemError(ELOOP)))
  }

  @Test(.enabled(if: geteuid() == 0, "only root can take a user's rights"))
  func `is opened with the rights of the user, which are put back`() throws {
    let (ana, bob) = (FileReader(user: 4001, group: 4001), FileReader(user: 4002, group: 4002))
    try write("\(directory.path)/of-bob", "ssh-ed25519 AAAA bob\n", owner: 4002, mode: 0o600)
    try link(to: "of-bob")
    let before = (getgroups(0, nil), rights_set_user(.max), rights_set_group(.max))
    #expect(read(as: ana) == .failure(SystemError(EACCES)))
    #expect(read(as: bob) == .success("ssh-ed25519 AAAA bob\n"))
    try done(unsafe chmod(path, 0o640))
    let member = FileReader(user: 4001, group: 1, groups: [4002])
    #expect(read(as: member) == .success("ssh-ed25519 AAAA bob\n"))
    #expect(read(as: FileReader(user: 4001, group: 1)) == .failure(SystemError(EACCES)))
    let after = (getgroups(0, nil), rights_set_user(.max), rights_set_group(.max))
    #expect(before == after && after.1 == 0)
    #expect(read() == .success("ssh-ed25519 AAAA bob\n"))
  }

  @Test func `and cannot be seen is nobody's lack of a key`() throws {
    let fake = FakeMachine()
    try fake.write("/etc/passwd", "ana:x:1001:1001::/ana:/bin/sh\nbob:x:1002:1002::/bob:/bin/sh\n")
    try fake.write("/etc/shadow", "ana:!::\nbob:!::\n")
    try fake.write("/ana/.ssh/authorized_keys/directory", "")
    let accounts = AccountFacts(of: fake.machine)
    #expect(accounts.accounts.map(\.hasKeys) == [nil, false])
    #expect(accounts.people.map(\.name) == ["ana"])
  }
}
