import OneTimePassword
import PAMSallyport
import SallyportCore
import Testing

/// An application that plays a script: the prompts it is asked must be those, in that order, and
/// all of them.
final class ScriptedHost: Host {
  enum Reply {
    case text([UInt8])
    case failure(HostFailure)
  }

  var userName: Result<[UInt8], HostFailure> = .success(Array("alice".utf8))
  var serviceName = "sshd"
  var remote: String? = "192.0.2.7"
  var token: String?
  var sshInfo = true
  var uid: UInt32 = 0
  var tokenFails: HostFailure?
  private var script: [(prompt: String, echo: Bool, reply: Reply)] = []
  private(set) var log: [(level: LogLevel, line: String)] = []
  private(set) var delay: UInt32?

  func expect(_ prompt: String = "Verification code: ", echo: Bool = false, reply: Reply) {
    script.append((prompt, echo, reply))
  }

  func expect(_ prompt: String = "Verification code: ", echo: Bool = false, answer: String) {
    expect(prompt, echo: echo, reply: .text(Array(answer.utf8)))
  }

  /// The script was played to its end.
  var isUsedUp: Bool { script.isEmpty }

  func user() throws(HostFailure) -> [UInt8] { try userName.get() }
  func service() -> [UInt8] { Array(serviceName.utf8) }
  func remoteHost() -> [UInt8]? { remote.map { Array($0.utf8) } }
  func password() -> Secret? { token.flatMap { Secret($0.utf8) } }
  func setPassword(_ password: Secret) throws(HostFailure) {
    if let tokenFails { throw tokenFails }
    token = String(decoding: (0..<password.count).map { password[$0] }, as: UTF8.self)
  }
  func hasSSHAuthenticationInfo() -> Bool { sshInfo }
  func realUserID() -> UInt32 { uid }
  func delayFailure(_ microseconds: UInt32) { delay = microseconds }
  func log(_ level: LogLevel, _ line: LogLine) {
    log.append((level, String(decoding: line.bytes, as: UTF8.self)))
  }

  func ask(_ prompt: [UInt8], echo: Bool) throws(HostFailure) -> Secret {
    guard !script.isEmpty else {
      Issue.record("asked once too often: \(String(decoding: prompt, as: UTF8.self))")
      throw .conversation
    }
    let next = script.removeFirst()
    #expect(String(decoding: prompt, as: UTF8.self) == next.prompt)
    #expect(echo == next.echo)
    switch next.reply {
    case .failure(let failure): throw failure
    case .text(let bytes):
      guard let secret = Secret(bytes) else { throw .memory }
      return secret
    }
  }
}
