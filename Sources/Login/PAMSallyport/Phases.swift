internal import CLinuxPAM
internal import SallyportCore
import SallyportLogin
import SallyportSystem

// From libpam's C arguments to the flow and back.

/// The phases in which the module has something to say.
package enum Phase: Int32, Sendable { case auth, account, session }

/// What libpam calls for; PAM_SYSTEM_ERR where it passes no handle.
@unsafe package func perform(
  _ phase: Phase, of handle: OpaquePointer?, flags: Int32, _ count: Int32,
  _ words: UnsafeMutablePointer<UnsafePointer<CChar>?>?
) -> Int32 {
  guard let handle = unsafe handle else { return PAM_SYSTEM_ERR }
  let errno = sp_errno()
  defer { sp_put_back_errno(errno) }
  let arguments = unsafe ModuleArguments(copied(count, words))
  // SAFETY: the handle is libpam's, valid for this call.
  let host = unsafe PAMHandle(handle, flags: flags, phase)
  if case .session = phase { return openSession(host).code }
  let store = arguments.store
  let (service, isServed) = service(arguments)
  switch phase {
  case .auth:
    return authenticate(host, arguments, store: store, service: service, isServed: isServed).code
  case .account, .session:
    return manageAccount(host, arguments, store: store, service: service, isServed: isServed).code
  }
}

/// The service as this process may ask it, and whether it answers where the policy does not say
/// that the fleet does. Not root: the service, or nobody. Root's, but started by somebody else (su,
/// sudo): the service where it is there, because the user who started the process can stop it,
/// starve it and set its limits; and so where only this process cannot write the files. All others:
/// the files, as under `store=`, which the service does not know.
@inline(never)
private func service(_ arguments: ModuleArguments) -> (any CodeAuthority, isServed: Bool) {
  let isRoot = geteuid() == 0
  let path = isRoot ? ServiceAuthority.rootSocket : ServiceAuthority.publicSocket
  let isServed =
    !arguments.hasOwnStore && (!isRoot || getuid() != 0 || arguments.store.isReadOnly)
  return (ServiceAuthority(at: path, isForRoot: isRoot), isServed)
}

/// The credentials phase: there is nothing to set.
package func answerSetCredentials() -> Int32 { ReturnCode.success.code }

/// A phase in which the module has nothing to say.
package func answerNothing() -> Int32 { ReturnCode.ignore.code }

@inline(never) @unsafe private func copied(
  _ count: Int32, _ words: UnsafeMutablePointer<UnsafePointer<CChar>?>?
) -> [[UInt8]] {
  guard let words = unsafe words, count > 0 else { return [] }
  var copies: [[UInt8]] = []
  for index in 0..<Int(count) {
    // SAFETY: libpam passes `count` strings.
    guard let word = unsafe words[index] else { continue }
    copies.append(unsafe [UInt8](UnsafeRawBufferPointer(start: word, count: strlen(word))))
  }
  return copies
}
