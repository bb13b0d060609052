import CLinuxPAM
import PAMSallyport

@c(pam_sm_authenticate)
public func authenticate(
  _ handle: OpaquePointer?, _ flags: Int32, _ argc: Int32,
  _ argv: UnsafeMutablePointer<UnsafePointer<CChar>?>?
) -> Int32 { PAM_AUTH_ERR }
@c(pam_sm_setcred)
public func setcred(
  _ handle: OpaquePointer?, _ flags: Int32, _ argc: Int32,
  _ argv: UnsafeMutablePointer<UnsafePointer<CChar>?>?
) -> Int32 { PAM_AUTH_ERR }
@c(pam_sm_acct_mgmt)
public func a(
  _ handle: OpaquePointer?, _ flags: Int32, _ argc: Int32,
  _ argv: UnsafeMutablePointer<UnsafePointer<CChar>?>?
) -> Int32 { PAM_AUTH_ERR }
@c(pam_sm_open_session)
public func b(
  _ handle: OpaquePointer?, _ flags: Int32, _ argc: Int32,
  _ argv: UnsafeMutablePointer<UnsafePointer<CChar>?>?
) -> Int32 { PAM_AUTH_ERR }
@c(pam_sm_close_session)
public func c(
  _ handle: OpaquePointer?, _ flags: Int32, _ argc: Int32,
  _ argv: UnsafeMutablePointer<UnsafePointer<CChar>?>?
) -> Int32 { PAM_AUTH_ERR }
@c(pam_sm_chauthtok)
public func d(
  _ handle: OpaquePointer?, _ flags: Int32, _ argc: Int32,
  _ argv: UnsafeMutablePointer<UnsafePointer<CChar>?>?
) -> Int32 { PAM_AUTH_ERR }
