import OneTimePassword
import PAMStack
import SallyportCore
import SallyportLogin
import SallyportSystem

/// The store of a rehearsed login. It reads policies, and writes nothing.
final class RehearsedStore: LoginStore {
  private let account: Account?
  private let policies: PolicySources
  private let groups: (_ name: [UInt8]) -> Tristate
  private let isBlocked: Bool
  /// The policy that the line got last, and the file whose lines made it.
  private(set) var policy: Policy?
  private var file: (path: String, PolicyFile)?

  init(
    _ account: Account?, _ policies: PolicySources, isBlocked: Bool,
    groups: @escaping (_ name: [UInt8]) -> Tristate
  ) {
    (self.account, self.policies, self.groups) = (account, policies, groups)
    self.isBlocked = isBlocked
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

  func account(named name: UserName) throws(StoreTrouble) -> Account {
    account ?? Account(name: name, uid: nil, group: nil)
  }
  func isMember(_ account: Account, of group: [UInt8]) -> Tristate { groups(group) }
  func isOwn(_ address: NumericAddress) -> Bool { false }
  let hasSessions = false
  var isInFleet: Bool { policies.isInFleet }
  func now() throws(StoreTrouble) -> UnixTime { try Clock.now() }

  func mayBlock() throws(StoreTrouble) -> Bool { isBlocked }
  func isBlocked(_ account: Account, at now: TimeSource) throws(StoreTrouble) -> Bool { isBlocked }

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
