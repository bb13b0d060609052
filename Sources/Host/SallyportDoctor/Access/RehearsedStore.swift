import OneTimePassword
import PAMStack
import SallyportCore
import SallyportLogin
import SallyportSystem

/// The store of a rehearsed login. It reads policies, and writes nothing.
final class RehearsedStore: LoginStore {
  private let account: Account
  private let policies: PolicySources
  private let groups: (_ name: [UInt8]) -> Tristate
  /// The policy that the line got last, and the file whose lines made it.
  private(set) var policy: Policy?
  private var file: (path: String, PolicyFile)?

  init(
    _ account: Account, _ policies: PolicySources, groups: @escaping (_ name: [UInt8]) -> Tristate
  ) {
    (self.account, self.policies, self.groups) = (account, policies, groups)
  }

  func policy(at path: [UInt8]?, base: Policy, _ login: PolicyRequest) -> PolicyReading {
    let name = path.map { String(decoding: $0, as: UTF8.self) } ?? PolicySources.usual
    let source = policies.source(at: name, isOptional: path == nil)
    let (reading, file) = source.reading(base, login)
    self.file = file.map { (name, $0) }
    policy = reading.policy
    return reading
  }

  /// The line of the policy file that sets the key for this login; nil if none does.
  func line(of key: PolicyKey) -> FileLocation? {
    guard let (path, file) = file, file.line(of: key) > 0 else { return nil }
    return FileLocation(file: path, line: file.line(of: key))
  }

  func account(named name: UserName) throws(StoreTrouble) -> Account { account }
  func isMember(_ account: Account, of group: [UInt8]) -> Tristate { groups(group) }
  func isOwn(_ address: NumericAddress) -> Bool { false }
  let hasSessions = false
  var isInFleet: Bool { policies.isInFleet }
  func now() throws(StoreTrouble) -> UnixTime { try Clock.now() }

  // The authority of the login asks for none of these.
  func load(_ account: Account) throws(StoreTrouble) -> Record? { nil }
  func loadDecoy(for name: [UInt8]) throws(StoreTrouble) -> Record { throw .noStore(path: "") }
  func transact<Verdict>(
    _ record: Record, asKnown isKnown: Bool,
    _ body: (Enrollment, LoginState) throws(StoreTrouble) -> (Verdict, LoginState)
  ) throws(StoreTrouble) -> Transaction<Verdict> { .changed }
  func level(of account: Account) throws(StoreTrouble) -> UserNote.Level? { nil }
  func countLogin(of account: Account) throws(StoreTrouble) -> UInt32 { 1 }
  func rehearse() throws(StoreTrouble) {}
  func create(_ enrollment: Enrollment, _ state: LoginState) throws(StoreTrouble) {}
  func rewrite(
    _ record: Record, _ enrollment: Enrollment, _ change: (LoginState) -> LoginState
  ) throws(StoreTrouble) -> Transaction<Void> { .changed }
}

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
    other.known[path] = Source(text: text, trouble: nil, lastGood: nil)
    return other
  }

  private init(_ store: Store, root: String, isInFleet: Bool) {
    (self.store, self.root, self.isInFleet) = (store, root, isInFleet)
  }

  func source(at path: String, isOptional: Bool) -> Source {
    if let source = known[path] { return source }
    let file = Array((root + path).utf8)
    var (text, trouble) = (Secret?.none, StoreTrouble?.none)
    do throws(StoreTrouble) {
      text = try store.policyText(at: file, optional: isOptional)
    } catch {
      trouble = error
    }
    let source = Source(text: text, trouble: trouble, lastGood: store.lastGoodPolicy(at: file))
    known[path] = source
    return source
  }
}
