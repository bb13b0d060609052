import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem

/// The policy files of a machine, each read once.
final class PolicySources {
  /// What a login finds at one path.
  struct Source {
    let text: Secret?
    let trouble: StoreTrouble?
    let lastGood: Secret?

    /// As a login reads it (`Store.policy`), without keeping a copy. The file: whose lines count.
    func reading(_ base: Policy, _ login: PolicyRequest) -> (PolicyReading, PolicyFile?) {
      guard trouble != nil || text != nil else { return (PolicyReading(base), nil) }
      let present = text.map { PolicyFile($0, base: base, login) }
      if let present, present.problem == nil {
        return (PolicyReading(present.policy(base)), present)
      }
      if let good = lastGood.map({ PolicyFile($0, base: base, login) }), good.problem == nil {
        return (PolicyReading(good.policy(base), trouble: trouble), good)
      }
      var policy = base
      if let present { policy = present.policy(base) } else { policy.tighten() }
      let reading = PolicyReading(
        policy, trouble: trouble, isStrict: true, lacksVerifier: present?.lacksVerifier != false)
      return (reading, present)
    }
  }

  static let usual = "/etc/security/sallyport.conf"

  private let store: Store
  private let root: String
  let isInFleet: Bool
  private var known: [String: Source] = [:]

  init(_ store: Store, of machine: Machine) {
    (self.store, root) = (store, machine.root)
    isInFleet = machine.text("/etc/security/sallyport-fleet.conf") != .absent
  }

  /// The same files, but with this text at one path.
  func assuming(_ text: Secret, at path: String) -> PolicySources {
    let other = PolicySources(store, root: root, isInFleet: isInFleet)
    let source = Source(text: text, trouble: nil, lastGood: nil)
    (other.known[path], other.known["optional \(path)"]) = (source, source)
    return other
  }

  private init(_ store: Store, root: String, isInFleet: Bool) {
    (self.store, self.root, self.isInFleet) = (store, root, isInFleet)
  }

  func source(at path: String, isOptional: Bool) -> Source {
    // A file that is named has to be there.
    let key = isOptional ? "optional \(path)" : path
    if let source = known[key] { return source }
    let file = Array((root + path).utf8)
    var (text, trouble) = (Secret?.none, StoreTrouble?.none)
    do throws(StoreTrouble) {
      text = try store.policyText(at: file, optional: isOptional)
    } catch {
      trouble = error
    }
    let source = Source(text: text, trouble: trouble, lastGood: store.lastGoodPolicy(at: file))
    known[key] = source
    return source
  }
}
