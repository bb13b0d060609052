import OneTimePassword
package import SallyportCore
import SallyportSystem

extension PolicyRequest {
  /// A login in the service `sallyport`, by which the command counts and checks a user's codes.
  package static func command(for account: Account) -> PolicyRequest {
    command(for: account) { Accounts.isMember(account, of: $0) }
  }

  fileprivate static func command(
    for account: Account, membership: @escaping (_ group: [UInt8]) -> Tristate
  ) -> PolicyRequest {
    PolicyRequest(
      service: Array("sallyport".utf8), user: account.name.bytes, isSuperuser: account.uid == 0,
      isRemote: false, address: nil, parse: Addresses.numeric, membership: membership)
  }
}

/// What the usual policy file says about the codes of each user, as `status` counts them. The file
/// is read once for all, and evaluated once for those whom it treats alike.
final class CommandPolicy {
  private let store: Store
  private let accounts: AccountFacts
  private let path: [UInt8]
  private var text: Secret?
  /// The file cannot be read or is not valid, so the last good one applies.
  private var isBroken = false
  private var terms = PolicyTerms()
  private var known: [PolicyTerms.Truths: Policy] = [:]

  /// `accounts` spare questions to the name service.
  init(of machine: Machine, _ store: Store, _ accounts: AccountFacts = AccountFacts()) {
    (self.store, self.accounts) = (store, accounts)
    path = Array("\(machine.root)\(Store.usualPolicy)".utf8)
    do throws(StoreTrouble) {
      text = try store.policyText(at: path, optional: true)
    } catch {
      isBroken = true
    }
    for text in [text, store.lastGoodPolicy(at: path)].compactMap({ $0 }) {
      terms.take(PolicyText("", text))
    }
  }

  func policy(for account: Account) -> Policy {
    let truths = terms.truths(of: account) { accounts.isMember(account, of: $0) }
    if let policy = known[truths] { return policy }
    let policy = read(for: account)
    known[truths] = policy
    return policy
  }

  private func read(for account: Account) -> Policy {
    let request = PolicyRequest.command(for: account) { [accounts] group in
      accounts.isMember(account, of: String(decoding: group, as: UTF8.self))
    }
    if let text {
      let file = PolicyFile(text, base: Policy(), request)
      if file.problem == nil { return file.policy(Policy()) }
    } else if !isBroken {
      return Policy()
    }
    return store.policy(at: path, base: Policy(), request).policy
  }
}
