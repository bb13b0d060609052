import OneTimePassword
import PAMSallyport
import SallyportCore
import SallyportLogin

/// The program of a rehearsed login, for one line of ours.
final class RehearsedApplication: PAMApplication {
  private let login: RehearsedLogin
  /// `forward_pass`: the prompt is for the password and the code.
  private let isOneField: Bool
  private let phase: Phase
  /// Whether the person has to have a code; who needs none types the password alone.
  private let needsCode: () -> Bool
  private(set) var handle: RehearsedHandle

  init(
    _ login: RehearsedLogin, _ handle: RehearsedHandle, isOneField: Bool, in phase: Phase,
    needsCode: @escaping () -> Bool
  ) {
    (self.login, self.handle, self.isOneField) = (login, handle, isOneField)
    (self.phase, self.needsCode) = (phase, needsCode)
  }

  func user() throws(PAMFailure) -> [UInt8] { login.user }
  func service() -> [UInt8] { Array(login.service.utf8) }
  func remoteHost() -> [UInt8]? { login.remote.map { Array($0.utf8) } }
  func password() -> Secret? { handle.password }
  func setPassword(_ password: Secret) throws(PAMFailure) { handle.password = password }
  func sshAuthenticationInfo() -> [UInt8]? {
    login.accepted.map { methods in methods.flatMap { Array("\($0) \n".utf8) } }
  }
  func realUserID() -> UInt32 { login.caller }

  func ask(_ prompt: [UInt8], echo: Bool) throws(PAMFailure) -> Secret {
    if phase == .account, !login.asksInAccount { throw .conversation }
    // The first question of enrolling. What comes of it is the person's choice.
    if handle.isEnrolling { throw .conversation }
    let person = login.person
    let both = (person.password ?? "") + (needsCode() ? person.code : "")
    let field = phase == .auth ? login.field : nil
    let text = field ?? (isOneField ? both : person.code)
    guard let secret = Secret(text.utf8) else { throw .memory }
    return secret
  }

  var reachesPerson: Bool { login.field == nil }
  func show(_ text: Secret) throws(PAMFailure) {}
  func complain(_ text: Secret) throws(PAMFailure) {}
  let isSilent = true
  func mark() -> Mark? { handle.mark }
  func setMark(_ mark: Mark?) throws(PAMFailure) { handle.mark = mark }
  var hasEnvironmentMark: Bool { handle.hasEnvironmentMark }
  func setEnvironmentMark(_ isThere: Bool) throws(PAMFailure) {
    handle.hasEnvironmentMark = isThere
  }
  func leaveText(_ text: LogLine) throws(PAMFailure) {}
  func takeText() -> [UInt8]? { nil }

  /// Asked right before somebody is asked to enroll, if prompts reach him. What the other lines of
  /// the account stack say is walked in any case.
  func probeAccountStack() -> AccountAnswer {
    handle.isEnrolling = login.asksInAccount
    return .yes
  }
  let isProbe = false
  func delayFailure(_ microseconds: UInt32) {}
  func wait(until end: UInt64) {}
  func log(_ level: LogLevel, _ line: LogLine) {}
}
