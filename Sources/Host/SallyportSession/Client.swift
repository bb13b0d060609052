internal import CService
import Glibc
import OneTimePassword
internal import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem
import SessionProtocol

/// The user at the other end, by the kernel's word.
package struct Client {
  let process: Int32
  let user: UInt32
  let account: Account

  /// Why nobody is served.
  enum Refusal: Error {
    case refused(ChangeRefusal, user: UInt32, why: StaticString)
    case trouble(StoreTrouble)
    /// There is no peer.
    case nobody
  }

  init(process: Int32, user: UInt32, account: Account) {
    (self.process, self.user, self.account) = (process, user, account)
  }

  /// The one name of the peer's uid, which must lead back to it: several names may have one.
  init(at connection: Int32) throws(Refusal) {
    var peer = service_sender()
    // SAFETY: filled within the call.
    guard unsafe service_peer(connection, &peer) == 0 else { throw .nobody }
    let (process, user) = (peer.process, peer.user)
    if user == 0 { throw .refused(.root, user: user, why: "root uses the command itself") }
    guard service_is_user(user) else {
      throw .refused(.noAccount, user: user, why: "no user of this machine")
    }
    let account: Account?
    do throws(StoreTrouble) {
      account = try Accounts.find(uid: user)
    } catch {
      throw .trouble(error)
    }
    guard let account, account.uid == user else {
      throw .refused(.noAccount, user: user, why: "no account, or its name is another one's")
    }
    self.init(process: process, user: user, account: account)
  }

  /// One session of a user at a time; false where there is another. Held until this process ends.
  func takeTurn() throws(StoreTrouble) -> Bool {
    let path = "/run/sallyport/session-\(user).lock"
    // SAFETY: the C string lives for the call.
    let result = unsafe service_lock(path)
    if result >= 0 { return true }
    if result == -EAGAIN || result == -EWOULDBLOCK { return false }
    throw .system("open", path: path, errno: -result)
  }
}
