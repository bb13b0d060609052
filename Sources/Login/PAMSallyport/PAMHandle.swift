internal import CLinuxPAM
package import OneTimePassword
import SallyportCore
package import SallyportLogin
import SallyportSystem

/// The one owner of libpam's handle during a call.
@safe package final class PAMHandle: PAMApplication {
  private let handle: OpaquePointer
  private let flags: Int32
  private let phase: Phase

  package var isSilent: Bool { flags & Int32(PAM_SILENT) != 0 }

  // SAFETY (whole class): the handle is libpam's and outlives the call it was passed to; strings
  // that libpam returns are copied at once.
  package init(_ handle: OpaquePointer, flags: Int32, _ phase: Phase) {
    unsafe self.handle = handle
    (self.flags, self.phase) = (flags, phase)
  }

  package func user() throws(PAMFailure) -> [UInt8] {
    var name: UnsafePointer<CChar>?
    let result = unsafe sp_pam_user(handle, &name)
    guard result == PAM_SUCCESS else { throw PAMFailure(result) }
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

  package func setPassword(_ password: Secret) throws(PAMFailure) {
    guard let terminated = password.terminated() else { throw .memory }
    let result = unsafe terminated.withBytes {
      unsafe pam_set_item(handle, PAM_AUTHTOK, $0.baseAddress)
    }
    guard result == PAM_SUCCESS else { throw PAMFailure(result) }
  }

  package func sshAuthenticationInfo() -> [UInt8]? {
    unsafe copied(sp_pam_ssh_info(handle))
  }

  package func realUserID() -> UInt32 { getuid() }

  package func ask(_ prompt: [UInt8], echo: Bool) throws(PAMFailure) -> Secret {
    var answer: UnsafeMutablePointer<CChar>?
    defer { unsafe sp_wipe_and_free(answer) }
    let style = echo ? PAM_PROMPT_ECHO_ON : PAM_PROMPT_ECHO_OFF
    let result = unsafe sp_pam_ask(handle, style, prompt + [0], &answer)
    guard result == PAM_SUCCESS else { throw PAMFailure(result) }
    // su without a terminal "succeeds" with no answer.
    guard let given = unsafe answer else { throw .conversation }
    guard let secret = unsafe secret(given) else { throw .memory }
    return secret
  }

  package var reachesPerson: Bool { unsafe sp_pam_has_conversation_data(handle) }

  package func show(_ text: Secret) throws(PAMFailure) { try show(text, PAM_TEXT_INFO) }

  package func complain(_ text: Secret) throws(PAMFailure) { try show(text, PAM_ERROR_MSG) }

  private func show(_ text: Secret, _ style: Int32) throws(PAMFailure) {
    guard let terminated = text.terminated() else { throw .memory }
    let result = unsafe terminated.withBytes { unsafe sp_pam_show(handle, style, $0.baseAddress) }
    guard result == PAM_SUCCESS else { throw PAMFailure(result) }
  }

  package func mark() -> Mark? {
    guard let data = unsafe sp_pam_mark(handle) else { return nil }
    // SAFETY: under this name there is nothing but what `setMark` retained.
    return unsafe Unmanaged<Mark>.fromOpaque(data).takeUnretainedValue()
  }

  package func setMark(_ mark: Mark?) throws(PAMFailure) {
    let data = unsafe mark.map { unsafe Unmanaged.passRetained($0).toOpaque() }
    let result = unsafe sp_pam_set_mark(handle, data) { _, data, _ in
      guard let data = unsafe data else { return }
      // SAFETY: libpam calls this once for each mark that it was given.
      unsafe Unmanaged<Mark>.fromOpaque(data).release()
    }
    guard result == PAM_SUCCESS else {
      // SAFETY: libpam took nothing.
      if let data = unsafe data { unsafe Unmanaged<Mark>.fromOpaque(data).release() }
      throw PAMFailure(result)
    }
  }

  package var hasEnvironmentMark: Bool { unsafe sp_pam_has_environment_mark(handle) }

  package func setEnvironmentMark(_ isThere: Bool) throws(PAMFailure) {
    // Removing what is not there is an error, and libpam logs it.
    guard isThere || hasEnvironmentMark else { return }
    let result = unsafe sp_pam_set_environment_mark(handle, isThere)
    guard result == PAM_SUCCESS else { throw PAMFailure(result) }
  }

  package func leaveText(_ text: LogLine) throws(PAMFailure) {
    let result = unsafe sp_pam_set_text(handle, text.bytes + [0])
    guard result == PAM_SUCCESS else { throw PAMFailure(result) }
  }

  package func takeText() -> [UInt8]? {
    guard let text = unsafe copied(sp_pam_text(handle)) else { return nil }
    _ = unsafe sp_pam_set_text(handle, nil)
    return text
  }

  package func probeAccountStack() -> AccountAnswer {
    var isOurs = false
    let code = unsafe sp_pam_probe_account(handle, flags, &isOurs)
    guard code == PAM_SUCCESS || code == PAM_NEW_AUTHTOK_REQD else { return .no(code) }
    return isOurs ? .yes : .yesWithoutUs
  }

  package var isProbe: Bool { unsafe sp_pam_is_probe(handle) }

  package func delayFailure(_ microseconds: UInt32) {
    // Without the delay the answer is still correct.
    _ = unsafe pam_fail_delay(handle, microseconds)
  }

  package func wait(until end: UInt64) { Clock.wait(until: end) }

  package func log(_ level: LogLevel, _ line: LogLine) {
    // SAFETY: the text ends with NUL and lives for the call.
    unsafe sp_pam_log(handle, phase.rawValue, level.rawValue, line.bytes + [0])
  }

  private func item(_ item: Int32) -> [UInt8]? { unsafe copied(sp_pam_item(handle, item)) }

  @unsafe private func copied(_ text: UnsafePointer<CChar>?) -> [UInt8]? {
    guard let text = unsafe text else { return nil }
    return unsafe copy(of: UnsafeRawBufferPointer(start: text, count: strlen(text)))
  }

  @unsafe private func secret(_ text: UnsafePointer<CChar>) -> Secret? {
    unsafe Secret(copying: UnsafeRawBufferPointer(start: text, count: strlen(text)))
  }
}

extension Secret {
  /// With a NUL at its end, for C; nil when out of memory.
  fileprivate func terminated() -> Secret? {
    guard let terminated = Secret(count: count + 1) else { return nil }
    // SAFETY: the index is below both counts.
    unsafe terminated.withMutableBytes { bytes in
      for index in 0..<count { unsafe bytes[index] = self[index] }
    }
    return terminated
  }
}

extension PAMFailure {
  fileprivate init(_ code: Int32) { self = code == PAM_BUF_ERR ? .memory : .conversation }
}
