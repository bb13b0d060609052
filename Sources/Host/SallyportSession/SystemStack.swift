internal import CSession
import Glibc
import OneTimePassword
import SallyportLogin
import SallyportSystem

/// The password, or whatever else the system asks for: the stack `sallyport`, with its prompts
/// relayed to the user. It proves nothing to us but that the user there may log in.
final class SystemStack {
  private let asks: (_ prompt: [UInt8], _ echo: Bool) -> Secret?
  private let shows: (_ text: [UInt8]) -> Bool

  /// The end of the conversation gives nil and false.
  init(
    asks: @escaping (_ prompt: [UInt8], _ echo: Bool) -> Secret?,
    shows: @escaping (_ text: [UInt8]) -> Bool
  ) {
    (self.asks, self.shows) = (asks, shows)
  }

  /// Whether there is a stack of that name: without one libpam takes `other`, which may permit.
  static var isSetUp: Bool {
    for directory in ["/etc/pam.d", "/usr/lib/pam.d"] {
      // SAFETY: the C string lives for the call.
      if unsafe access("\(directory)/sallyport", F_OK) == 0 { return true }
    }
    return false
  }

  /// Whether both stacks return PAM_SUCCESS, for this very user.
  func accepts(_ user: [UInt8]) -> Bool {
    let name = user + [0]
    // SAFETY: the object and the C strings outlive the transaction.
    let code = withExtendedLifetime(self) {
      unsafe name.withUnsafeBytes { bytes -> Int32 in
        guard let name = unsafe bytes.bindMemory(to: CChar.self).baseAddress else {
          return PAM_SYSTEM_ERR
        }
        let me = unsafe Unmanaged.passUnretained(self).toOpaque()
        var conversation = unsafe session_conversation(turn: turn, context: me)
        return unsafe transaction(name, &conversation)
      }
    }
    // A user who leaves at a prompt has not typed a wrong password.
    if code != PAM_SUCCESS, code != PAM_CONV_ERR {
      SessionLog.write(.notice, .passwordRefused(user, code))
    }
    return code == PAM_SUCCESS
  }

  fileprivate func answer(_ style: Int32, _ text: [UInt8]) -> Answer {
    switch style {
    case PAM_PROMPT_ECHO_OFF, PAM_PROMPT_ECHO_ON:
      guard let typed = asks(text, style == PAM_PROMPT_ECHO_ON), typed.count < PAM_MAX_RESP_SIZE,
        typed.first(0, in: 0..<typed.count) == nil
      else { return .none }
      return .typed(typed)
    case PAM_TEXT_INFO, PAM_ERROR_MSG: return shows(text) ? .shown : .none
    case _: return .none
    }
  }

  fileprivate enum Answer {
    case typed(Secret)
    case shown
    case none
  }
}

/// A return code of PAM. A password that has to be changed first is no success here.
@unsafe private func transaction(
  _ user: UnsafePointer<CChar>, _ conversation: UnsafeMutablePointer<session_conversation>
) -> Int32 {
  var started: OpaquePointer?
  // SAFETY: the C strings live for the call; so for the calls below. The handle is ended once.
  var code = unsafe session_start("sallyport", user, conversation, &started)
  guard let handle = unsafe started else { return code == PAM_SUCCESS ? PAM_SYSTEM_ERR : code }
  let flags = Int32(bitPattern: UInt32(PAM_DISALLOW_NULL_AUTHTOK))
  if code == PAM_SUCCESS { code = unsafe pam_authenticate(handle, flags) }
  if code == PAM_SUCCESS { code = unsafe pam_acct_mgmt(handle, flags) }
  if code == PAM_SUCCESS {
    let found = unsafe session_user(handle)
    if let found = unsafe found, unsafe strcmp(found, user) == 0 {} else { code = PAM_PERM_DENIED }
  }
  _ = unsafe pam_end(handle, code)
  return code
}

/// `session_turn` of CSession.
@unsafe private func turn(
  _ style: Int32, _ text: UnsafePointer<CChar>,
  into answer: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>,
  _ context: UnsafeMutableRawPointer?
) -> Int32 {
  guard let context = unsafe context else { return -1 }
  // SAFETY: the object that `accepts` passed, which outlives the transaction.
  let first = unsafe Unmanaged<SystemStack>.fromOpaque(context).takeUnretainedValue()
  let message = unsafe [UInt8](UnsafeRawBufferPointer(start: text, count: min(strlen(text), 2000)))
  switch first.answer(style, message) {
  case .none: return -1
  case .shown: return 0
  case .typed(let typed):
    // SAFETY: one byte more than the answer, for its NUL; libpam wipes and frees it.
    guard let copy = unsafe calloc(typed.count + 1, 1) else { return -1 }
    unsafe typed.withBytes { bytes in
      if let base = bytes.baseAddress { unsafe copy.copyMemory(from: base, byteCount: bytes.count) }
    }
    unsafe answer.pointee = unsafe copy.bindMemory(to: CChar.self, capacity: typed.count + 1)
    return 0
  }
}
