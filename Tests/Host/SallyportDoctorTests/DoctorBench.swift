import Foundation
import Glibc
import SallyportCore
import SallyportSystem
import Testing

@testable import PAMStack
@testable import SallyportDoctor

/// A root directory with files of its own, and programs that answer as they are told.
final class FakeMachine {
  let root = FileManager.default.temporaryDirectory
    .appendingPathComponent("doctor-\(UUID().uuidString)").path
  /// By the words of the command.
  var answers: [String: CommandOutput] = [:]

  deinit { try? FileManager.default.removeItem(atPath: root) }

  var machine: Machine {
    Machine(root: root) { words in
      let text = words.joined(separator: " ").replacing(FakeMachine.elsewhere, with: "")
      return self.answers[text].map { .seen($0) } ?? .absent
    }
  }

  /// Left out of what is asked of sshd: a login that no Match block is about.
  static let elsewhere =
    " -C addr=203.0.113.1,host=203.0.113.1,laddr=203.0.113.2,lport=22,rdomain=,user=nobody"

  /// What sshd is asked about a user's login from this machine.
  static func login(_ user: String, from address: String = "127.0.0.1") -> String {
    "sshd -T -C addr=\(address),host=localhost,laddr=127.0.0.1,lport=22,rdomain=,user=\(user)"
  }

  func write(_ path: String, _ text: String) throws {
    let url = URL(fileURLWithPath: root + path)
    try FileManager.default.createDirectory(
      at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try text.write(to: url, atomically: true, encoding: .utf8)
  }

  func change(_ path: String, mode: Int) throws {
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: root + path)
  }

  /// Binds a socket there, in a directory that exists; closed by the caller.
  func socket(at path: String, listens: Bool) -> Int32 {
    let descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    // SAFETY: the path is shorter; all pointers live for their calls.
    unsafe withUnsafeMutableBytes(of: &address.sun_path) {
      unsafe $0.copyBytes(from: (root + path).utf8)
    }
    let size = socklen_t(MemoryLayout<sockaddr_un>.size)
    let done = unsafe withUnsafePointer(to: &address) {
      unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe bind(descriptor, $0, size)
      }
    }
    #expect(done == 0)
    if listens { #expect(listen(descriptor, 8) == 0) }
    return descriptor
  }
}

/// Facts of a machine on which nothing is wrong. Tests break one thing each.
enum Healthy {
  static let now = UnixTime(1_800_000_000)

  static let sshText = """
    usepam yes
    kbdinteractiveauthentication yes
    passwordauthentication no
    pubkeyauthentication yes
    hostbasedauthentication no
    gssapiauthentication no
    permitrootlogin no
    usedns no
    authenticationmethods publickey,keyboard-interactive
    """

  /// `key value` pairs in place of the healthy ones.
  static func ssh(_ changes: String...) -> SSHFacts { ssh(changes) }

  static func ssh(_ changes: [String]) -> SSHFacts {
    SSHFacts(settings: .seen(SSHSettings((changes + [sshText]).joined(separator: "\n"))))
  }

  static func lines(_ words: String..., account: [String] = []) -> ModuleLines {
    lines(words, account: account)
  }

  static func lines(_ words: [String], account: [String] = []) -> ModuleLines {
    ModuleLines(lines: [line(.auth, 4, words), line(.account, 1, account)])
  }

  private static func line(_ phase: PAMPhase, _ number: Int, _ words: [String]) -> StackEntry {
    StackEntry(
      location: FileLocation(file: "/etc/pam.d/sshd", line: number), root: number...number,
      phase: phase, kind: .module, level: 0, controls: .allBad, module: "pam_sallyport.so",
      arguments: words, isSilent: false)
  }

  static let user = UserFacts(directory: "/var/lib/sallyport/users/alice", name: "alice")

  static var store: StoreFacts {
    StoreFacts(
      directories: ["/var/lib/sallyport": FileFacts(mode: 0o700)], disk: .seen(DiskFacts()),
      users: [user])
  }

  static var clock: ClockFacts { ClockFacts(isSynchronised: .seen(true), now: now) }

  static var module: ModuleFacts {
    ModuleFacts(
      path: "/lib/security/pam_sallyport.so", file: .seen(FileFacts()), machines: (62, 62))
  }

  static var facts: Facts {
    Facts(
      now: now, services: [ServiceFacts(name: "sshd", lines: lines())], ssh: ssh(), store: store,
      clock: clock, modules: [module])
  }

  static func diagnosis(_ change: (inout Facts) -> Void = { _ in }) -> Diagnosis {
    var facts = facts
    change(&facts)
    return Diagnosis(facts, version: "0.1.0")
  }
}

extension Diagnosis {
  /// `id severity` of everything that is not as it should be.
  var wrong: [String] {
    findings.filter { $0.severity != .ok }.map { "\($0.id) \($0.severity)" }
  }
}

extension [Finding] {
  var wrong: [String] {
    filter { $0.severity != .ok }.map { "\($0.id) \($0.severity)" }
  }
}
