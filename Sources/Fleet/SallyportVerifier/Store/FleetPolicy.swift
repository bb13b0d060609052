import SallyportCore
package import SallyportLogin
import SallyportSystem

/// The policy of a fleet: what is stored in its database, or before, the sallyport.conf of a
/// verifier.
package struct FleetPolicy: Sendable {
  private let store: Store
  private let file: [UInt8]
  private let stored: PolicyHolder?

  /// `directory`: where the file is. `stored`: what the fleet has; nil: nothing.
  package init(in directory: String, stored: PolicyHolder? = nil) {
    self.stored = stored
    store = Store(root: Array(directory.utf8), owner: .effectiveUser)
    file = Array((directory + "/sallyport.conf").utf8)
  }

  /// What it says about a login.
  func reading(
    service: [UInt8], user: [UInt8], isRemote: Bool, address: NumericAddress?
  ) -> PolicyReading {
    let login = PolicyRequest(
      service: service, user: user, isRemote: isRemote, address: address,
      parse: Addresses.numeric, membership: { _ in .unknown })
    guard let text = stored?.used else { return store.policy(at: file, base: Policy(), login) }
    let found = PolicyFile(text, base: Policy(), login)
    let trouble = found.problem.map { StoreTrouble.malformed(path: "policy", $0) }
    return PolicyReading(found.policy(Policy()), trouble: trouble, isStrict: trouble != nil)
  }

  /// The stricter of a host's and the fleet's; a flaw of the file is given to `tell`. `shared` is
  /// the fleet's, of all hosts alike, whatever each of them says.
  func tightened(
    _ policy: Policy, service: [UInt8], user: [UInt8], isRemote: Bool, address: NumericAddress?,
    tell: (LogLine) -> Void
  ) -> Policy {
    let reading = reading(service: service, user: user, isRemote: isRemote, address: address)
    if let flaw = reading.flaw { tell(flaw) }
    var policy = policy
    policy.tighten(by: reading.policy)
    policy.shared = SharedBudgetBox(reading.policy.sharedBudget)
    return policy
  }

  /// What is wrong with the file as it is now, and what applies instead; nil if nothing is.
  package var flaw: LogLine? {
    reading(service: [], user: [], isRemote: true, address: nil).flaw
  }
}

extension PolicyReading {
  var flaw: LogLine? {
    trouble.map { .brokenPolicy($0, hasLastGood: !isStrict) }
  }
}
