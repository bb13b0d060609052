import OneTimePassword
import PAMSallyport
import SallyportCore
import SallyportLogin
import Testing

/// An application that plays a script: the prompts it is asked must be those, in that order, and
/// all of them.
final class ScriptedHost: PAMApplication {
  enum Reply {
    case text([UInt8])
    case failure(PAMFailure)
    /// Made of what was shown so far.
    case made(([String]) -> String)
  }

  var userName: Result<[UInt8], PAMFailure> = .success(Array("alice".utf8))
  var serviceName = "sshd"
  var remote: String? = "192.0.2.7"
  var token: String?
  /// What sshd has accepted so far; nil where it does not say.
  var sshInfo: String? = ""
  var isSilent = false
  /// Keyboard-interactive, where the service is an sshd.
  var reachesPerson = false
  var uid: UInt32 = 0
  var tokenFails: PAMFailure?
  private var script: [(prompt: String, echo: Bool, reply: Reply)] = []
  private(set) var log: [(level: LogLevel, line: String)] = []
  private(set) var delay: UInt32?
  /// What the phases keep on the handle.
  var kept: Mark?
  var hasEnvironmentMark = false
  var markFails: PAMFailure?
  /// What was shown, one text after the other.
  private(set) var shown: [String] = []
  var showFails: PAMFailure?
  /// What was shown as an error.
  private(set) var complaints: [String] = []

  func expect(_ prompt: String = "Verification code: ", echo: Bool = false, reply: Reply) {
    script.append((prompt, echo, reply))
  }

  func expect(_ prompt: String = "Verification code: ", echo: Bool = false, answer: String) {
    expect(prompt, echo: echo, reply: .text(Array(answer.utf8)))
  }

  /// The script was played to its end.
  var isUsedUp: Bool { script.isEmpty }

  func user() throws(PAMFailure) -> [UInt8] { try userName.get() }
  func service() -> [UInt8] { Array(serviceName.utf8) }
  func remoteHost() -> [UInt8]? { remote.map { Array($0.utf8) } }
  func password() -> Secret? { token.flatMap { Secret($0.utf8) } }
  func setPassword(_ password: Secret) throws(PAMFailure) {
    if let tokenFails { throw tokenFails }
    token = String(decoding: (0..<password.count).map { password[$0] }, as: UTF8.self)
  }
  func sshAuthenticationInfo() -> [UInt8]? { sshInfo.map { Array($0.utf8) } }
  func mark() -> Mark? { kept }
  func setMark(_ mark: Mark?) throws(PAMFailure) {
    if let markFails { throw markFails }
    kept = mark
  }
  func setEnvironmentMark(_ isThere: Bool) throws(PAMFailure) { hasEnvironmentMark = isThere }
  /// What the account stack says, and how often it was asked.
  var accountStack = AccountAnswer.yes
  private(set) var probes = 0
  var isProbe = false
  func probeAccountStack() -> AccountAnswer {
    probes += 1
    return accountStack
  }
  func realUserID() -> UInt32 { uid }
  /// Each of `wait`.
  private(set) var waits: [UInt64] = []
  func wait(until end: UInt64) { waits.append(end) }
  private(set) var leftText: String?
  func leaveText(_ text: LogLine) throws(PAMFailure) {
    leftText = String(decoding: text.bytes, as: UTF8.self)
  }
  func takeText() -> [UInt8]? {
    defer { leftText = nil }
    return leftText.map { Array($0.utf8) }
  }
  func delayFailure(_ microseconds: UInt32) { delay = microseconds }
  func log(_ level: LogLevel, _ line: LogLine) {
    log.append((level, String(decoding: line.bytes, as: UTF8.self)))
  }

  func show(_ text: Secret) throws(PAMFailure) {
    if let showFails { throw showFails }
    shown.append(String(decoding: text.bytes(in: 0..<text.count), as: UTF8.self))
  }

  func complain(_ text: Secret) throws(PAMFailure) {
    if let showFails { throw showFails }
    complaints.append(String(decoding: text.bytes(in: 0..<text.count), as: UTF8.self))
  }

  func ask(_ prompt: [UInt8], echo: Bool) throws(PAMFailure) -> Secret {
    guard !script.isEmpty else {
      Issue.record("asked once too often: \(String(decoding: prompt, as: UTF8.self))")
      throw .conversation
    }
    let next = script.removeFirst()
    #expect(String(decoding: prompt, as: UTF8.self) == next.prompt)
    #expect(echo == next.echo)
    switch next.reply {
    case .failure(let failure): throw failure
    case .made(let make):
      guard let secret = Secret(make(shown).utf8) else { throw .memory }
      return secret
    case .text(let bytes):
      guard let secret = Secret(bytes) else { throw .memory }
      return secret
    }
  }
}
