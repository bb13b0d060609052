import OneTimePassword
package import SallyportCore
import SallyportSystem

extension PolicyRequest {
  /// A login in the service `sallyport`, by which the command counts and checks a user's codes.
  package static func command(for account: Account) -> PolicyRequest {
    PolicyRequest(
      service: Array("sallyport".utf8), user: account.name.bytes, isSuperuser: account.uid == 0,
      isRemote: false, address: nil, parse: Addresses.numeric,
      membership: { Accounts.isMember(account, of: $0) })
  }
}

/// What the usual policy file says about the codes of each user, as `status` counts them. The file
/// is read once for all.
struct CommandPolicy {
  private let store: Store
  private let path: [UInt8]
  private var text: Secret?
  /// The file cannot be read or is not valid, so the last good one applies.
  private var isBroken = false

  init(of machine: Machine, _ store: Store) {
    self.store = store
    path = Array("\(machine.root)\(Store.usualPolicy)".utf8)
    do throws(StoreTrouble) {
      text = try store.policyText(at: path, optional: true)
    } catch {
      isBroken = true
    }
  }

  func policy(for account: Account) -> Policy {
    let request = PolicyRequest.command(for: account)
    if let text {
      let file = PolicyFile(text, base: Policy(), request)
      if file.problem == nil { return file.policy(Policy()) }
    } else if !isBroken {
      return Policy()
    }
    return store.policy(at: path, base: Policy(), request).policy
  }
}
