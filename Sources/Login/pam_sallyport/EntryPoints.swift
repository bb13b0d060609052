internal import CLinuxPAM
internal import PAMSallyport

// What libpam looks up. Everything behind these six is in PAMSallyport.

// SAFETY (all): libpam passes a valid handle and `count` C strings that outlive the call.

@_cdecl("pam_sm_authenticate") @unsafe
public func authenticate(
  _ handle: OpaquePointer?, _ flags: Int32, _ count: Int32,
  _ words: UnsafeMutablePointer<UnsafePointer<CChar>?>?
) -> Int32 {
  unsafe perform(.auth, of: handle, flags: flags, count, words)
}

/// Always a success: there are no credentials, and libpam takes the stack's result from the first
/// phase.
@_cdecl("pam_sm_setcred") @unsafe
public func setCredentials(
  _ handle: OpaquePointer?, _ flags: Int32, _ count: Int32,
  _ words: UnsafeMutablePointer<UnsafePointer<CChar>?>?
) -> Int32 {
  answerSetCredentials()
}

@_cdecl("pam_sm_acct_mgmt") @unsafe
public func manageAccount(
  _ handle: OpaquePointer?, _ flags: Int32, _ count: Int32,
  _ words: UnsafeMutablePointer<UnsafePointer<CChar>?>?
) -> Int32 {
  unsafe perform(.account, of: handle, flags: flags, count, words)
}

@_cdecl("pam_sm_open_session") @unsafe
public func openSession(
  _ handle: OpaquePointer?, _ flags: Int32, _ count: Int32,
  _ words: UnsafeMutablePointer<UnsafePointer<CChar>?>?
) -> Int32 {
  unsafe perform(.session, of: handle, flags: flags, count, words)
}

@_cdecl("pam_sm_close_session") @unsafe
public func closeSession(
  _ handle: OpaquePointer?, _ flags: Int32, _ count: Int32,
  _ words: UnsafeMutablePointer<UnsafePointer<CChar>?>?
) -> Int32 {
  answerNothing()
}

@_cdecl("pam_sm_chauthtok") @unsafe
public func changeToken(
  _ handle: OpaquePointer?, _ flags: Int32, _ count: Int32,
  _ words: UnsafeMutablePointer<UnsafePointer<CChar>?>?
) -> Int32 {
  answerNothing()
}
