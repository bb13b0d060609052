import OneTimePassword
import SallyportCore
import SallyportLogin
import Testing

@testable import SallyportSystem

/// A store in a directory of its own, accounts alice (3001) and bob (3002), and a clock that
/// stands.
struct Machine: LoginStore, Sendable {
  var hasSessions: Bool { false }
  let store: Store
  /// For the service `sallyport-user`.
  var own = Policy()
  static let time = UnixTime(1_111_111_111)

  func account(named name: UserName) -> Account {
    let users: [[UInt8]: UInt32] = [Array("alice".utf8): 3001, Array("bob".utf8): 3002]
    return Account(name: name, uid: users[name.bytes])
  }
  func policy(at path: [UInt8]?, base: Policy, _ login: PolicyRequest) -> PolicyReading {
    PolicyReading(own)
  }
  func isMember(_ account: Account, of group: [UInt8]) -> Tristate { .no }
  func isOwn(_ address: NumericAddress) -> Bool { false }
  var isInFleet: Bool { false }
  func now() -> UnixTime { Machine.time }
  func load(_ account: Account) throws(StoreTrouble) -> Record? { try store.load(account) }
  func mayBlock() throws(StoreTrouble) -> Bool { try store.mayBlock() }
  func isBlocked(_ account: Account, at now: TimeSource) throws(StoreTrouble) -> Bool {
    try store.isBlocked(account, at: now)
  }
  func loadDecoy(for name: [UInt8]) throws(StoreTrouble) -> Record {
    try store.loadDecoy(for: name)
  }
  func level(of account: Account) throws(StoreTrouble) -> UserNote.Level? {
    try store.level(of: account)
  }
  func rehearse() throws(StoreTrouble) { try store.rehearse() }
  func noteEnrolling(of account: Account, begun time: UnixTime?) throws(StoreTrouble) {
    try store.noteEnrolling(of: account, begun: time)
  }
  func countLogin(of account: Account) throws(StoreTrouble) -> UInt32 {
    try store.countLogin(of: account)
  }
  func create(_ enrollment: Enrollment, _ state: LoginState) throws(StoreTrouble) {
    try store.create(enrollment, state)
  }
  func rewrite(
    _ record: Record, _ enrollment: Enrollment, _ change: (LoginState) -> LoginState
  ) throws(StoreTrouble) -> Transaction<Void> {
    try store.rewrite(record, enrollment, change)
  }
  func transact<Verdict>(
    _ record: Record, asKnown isKnown: Bool,
    _ body: (Enrollment, LoginState) throws(StoreTrouble) -> (Verdict, LoginState)
  ) throws(StoreTrouble) -> Transaction<Verdict> {
    try store.transact(record, asKnown: isKnown, body)
  }
}

extension Machine {
  /// With RFC 6238's secret.
  func enroll(_ name: String, _ uid: UInt32) throws {
    let parameters = try #require(
      CodeParameters(type: .totp(period: 30), algorithm: .sha1, digits: .six))
    let authenticator = Authenticator(
      id: 7, name: try #require(Label("phone".utf8)), parameters: parameters,
      secret: try #require(Secret(Array("12345678901234567890".utf8))), initialLastAccepted: nil,
      created: UnixTime(0))
    let enrollment = Enrollment(
      id: UInt64(uid), user: try #require(UserName(name.utf8)), uid: uid, created: UnixTime(0),
      authenticators: [authenticator], backupCodes: nil)
    try store.create(enrollment, LoginState(initialFor: enrollment))
  }
}
