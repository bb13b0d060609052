internal import CLinuxPAM
package import OneTimePassword
import SallyportCore

/// The one owner of libpam's handle during a call.
@safe package final class PAMHandle: Host {
  private let handle: OpaquePointer

  // SAFETY (whole class): the handle is libpam's and outlives the call it was passed to; strings
  // that libpam returns are copied at once.
  package init(_ handle: OpaquePointer) { unsafe self.handle = handle }

  package func user() throws(HostFailure) -> [UInt8] {
    var name: UnsafePointer<CChar>?
    let result = unsafe sp_pam_user(handle, &name)
    guard result == PAM_SUCCESS else { throw HostFailure(result) }
    return unsafe copied(name) ?? []
  }

  package func service() -> [UInt8] { item(PAM_SERVICE) ?? [] }

  package func remoteHost() -> [UInt8]? {
    guard let host = item(PAM_RHOST), !host.isEmpty else { return nil }
    return host
  }

  package func password() -> Secret? {
    guard let text = unsafe sp_pam_item(handle, PAM_AUTHTOK) else { return nil }
    return unsafe secret(text)
  }

  package func setPassword(_ password: Secret) throws(HostFailure) {
    // libpam copies up to the first NUL; so does this, into a buffer that is wiped.
    guard let terminated = Secret(count: password.count + 1) else { throw .memory }
    let result = unsafe terminated.withMutableBytes { bytes in
      for index in 0..<password.count { unsafe bytes[index] = password[index] }
      return unsafe pam_set_item(handle, PAM_AUTHTOK, bytes.baseAddress)
    }
    guard result == PAM_SUCCESS else { throw HostFailure(result) }
  }

  package func hasSSHAuthenticationInfo() -> Bool {
    unsafe pam_getenv(handle, "SSH_AUTH_INFO_0") != nil
  }

  package func realUserID() -> UInt32 { getuid() }

  package func ask(_ prompt: [UInt8], echo: Bool) throws(HostFailure) -> Secret {
    var answer: UnsafeMutablePointer<CChar>?
    defer { unsafe sp_wipe_and_free(answer) }
    let style = echo ? PAM_PROMPT_ECHO_ON : PAM_PROMPT_ECHO_OFF
    let result = unsafe sp_pam_ask(handle, style, prompt + [0], &answer)
    guard result == PAM_SUCCESS else { throw HostFailure(result) }
    // su without a terminal "succeeds" with no answer.
    guard let given = unsafe answer else { throw .conversation }
    guard let secret = unsafe secret(given) else { throw .memory }
    return secret
  }

  package func delayFailure(_ microseconds: UInt32) {
    // A delay that cannot be had makes no answer less right.
    _ = unsafe pam_fail_delay(handle, microseconds)
  }

  package func log(_ level: LogLevel, _ line: LogLine) {
    // SAFETY: the text ends with NUL and lives for the call.
    unsafe sp_pam_log(handle, level.priority, line.bytes + [0])
  }

  private func item(_ item: Int32) -> [UInt8]? { unsafe copied(sp_pam_item(handle, item)) }

  @unsafe private func copied(_ text: UnsafePointer<CChar>?) -> [UInt8]? {
    guard let text = unsafe text else { return nil }
    let bytes = unsafe UnsafeRawBufferPointer(start: text, count: strlen(text))
    return unsafe [UInt8](bytes)
  }

  @unsafe private func secret(_ text: UnsafePointer<CChar>) -> Secret? {
    unsafe Secret(copying: UnsafeRawBufferPointer(start: text, count: strlen(text)))
  }
}

extension HostFailure {
  fileprivate init(_ code: Int32) { self = code == PAM_BUF_ERR ? .memory : .conversation }
}

extension LogLevel {
  fileprivate var priority: Int32 {
    switch self {
    case .alert: LOG_ALERT
    case .error: LOG_ERR
    case .notice: LOG_NOTICE
    case .info: LOG_INFO
    case .debug: LOG_DEBUG
    }
  }
}
