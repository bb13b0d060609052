import Foundation
import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

private let question = "Set it up now? [y/n]: "

/// An sshd under another name than sshd: whose word on a key is taken, and where the mark for its
/// session phase is left.
@Suite struct `An sshd by another name` {
  private let host = ScriptedHost()
  private let store: TestStore
  private var path: String { store.directory.path + "/policy.conf" }

  init() throws {
    store = try TestStore()
    host.userName = .success(Array("bob".utf8))
    host.sshInfo = "publickey ssh-ed25519 AAAA"
  }

  private func auth(_ policy: String, _ service: String) throws -> ReturnCode {
    try Data("[default]\nenrollment = required\n\(policy)\n".utf8)
      .write(to: URL(fileURLWithPath: path))
    host.serviceName = service
    let words = ["conf=" + path, "enroll"].map { Array($0.utf8) }
    let answer = authenticate(host, ModuleArguments(words), store: store)
    #expect(host.isUsedUp)
    return answer
  }

  @Test func `is believed where the policy names it`() throws {
    #expect(try auth("sshd_services = sshd-git, sshd", "sshd-git") == .success)
    #expect(host.hasEnvironmentMark)
    #expect(try auth("", "sshd") == .success)
  }

  /// Any other program may take that variable from a file of the user's.
  // shows: key-claim
  @Test(arguments: [("", "sshd-git"), ("sshd_services = sshd-git", "sshd"), ("", "sudo")])
  func `is not believed elsewhere`(_ policy: String, _ service: String) throws {
    host.expect(answer: "123456")
    #expect(try auth(policy, service) == .refused)
    #expect(host.kept == nil && !host.hasEnvironmentMark)
  }

  /// Its session phase runs in another process, which knows the mark by PAM's environment alone.
  @Test(arguments: [
    ("sshd-git", "" as String?, true), ("sshd-git", "password", true), ("sshd", nil, true),
    ("cockpit", nil, false),
  ]) func `finds the mark in its session phase after a password too`(
    _ service: String, _ info: String?, _ isMarked: Bool
  ) throws {
    (host.token, host.sshInfo) = ("any", info)
    #expect(try auth("", service) == .ignore)
    #expect(host.hasEnvironmentMark == isMarked)
    host.kept = nil
    #expect(openSession(host) == (isMarked ? .denied : .ignore))
  }

  @Test func `whose method password answers with the password is seen through`() throws {
    try store.enrollAlice()
    host.userName = .success(Array("alice".utf8))
    (host.token, host.sshInfo) = ("482913", nil)
    host.expect(answer: "482913")
    #expect(try auth("sshd_services = sshd-git", "sshd-git") == .refused)
    #expect(host.log.last?.line.contains("PasswordAuthentication") == true)
  }
}
