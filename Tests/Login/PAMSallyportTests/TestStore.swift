import Glibc
import OneTimePassword
import PAMSallyport
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

/// The real store in a directory of its own, with an account list and a clock that the test sets,
/// and with any call failing on demand.
final class TestStore: LoginStore {
  enum Call: CaseIterable {
    case account, now, load, loadDecoy, note, count, transact, rehearse, noteEnrolling, create
    case rewrite, suspend, mayBlock, isBlocked
  }

  static let secret = Array("12345678901234567890".utf8)
  static let backup = "7KMF2X9QD4TW0HZA"

  let directory: TemporaryDirectory
  let store: Store
  var accounts: [[UInt8]: UInt32] = [Array("alice".utf8): 1000, Array("bob".utf8): 1001]
  var groups: [String: (Account) -> Tristate] = [:]
  var time = UnixTime(1_111_111_111)
  var ownAddresses: [[UInt8]] = []
  var isInFleet = false
  var hasSessions = false
  /// Runs before what suspends an enrollment, and after all that was checked before.
  var meanwhile: () throws -> Void = {}
  /// nil: what the line says.
  var usualPolicy: Policy?
  var failing: Call?
  /// What a failing call throws.
  var trouble = StoreTrouble.system("test", path: "/nowhere", errno: 28)
  var changes = 0
  private(set) var calls: [Call] = []
  /// The catalogs that were read.
  private(set) var read: [String] = []
  /// Of each transaction.
  private(set) var waitedAsKnown: [Bool] = []

  init() throws {
    directory = try TemporaryDirectory()
    store = Store(root: directory.path + "/store", owner: .effectiveUser)
    try makeEmptyStore(at: directory.path + "/store")
  }

  func account(named name: UserName) throws(StoreTrouble) -> Account {
    try meet(.account)
    return Account(name: name, uid: accounts[name.bytes])
  }

  /// Never the policy of the machine that runs the tests.
  func policy(at path: [UInt8]?, base: Policy, _ login: PolicyRequest) -> PolicyReading {
    if let path { return store.policy(at: path, base: base, login) }
    return PolicyReading(usualPolicy ?? base)
  }

  /// As they are installed; `xx` is none.
  func sentences(in language: UInt64) throws(StoreTrouble) -> Sentences {
    let name = String(decoding: Policy.name(ofLanguage: language), as: UTF8.self)
    let path = "pam/messages/\(name)"
    read.append(name)
    guard let text = (try? textOfSources(path)).flatMap({ Secret($0.utf8) }) else {
      throw .system("open", path: path, errno: ENOENT)
    }
    do throws(SettingsError) {
      var lines = try SettingsScanner(text)
      return try Sentences(catalog: text, &lines)
    } catch {
      throw .malformed(path: path, error)
    }
  }

  func isMember(_ account: Account, of group: [UInt8]) -> Tristate {
    groups[String(decoding: group, as: UTF8.self)].map { $0(account) } ?? .no
  }

  func isOwn(_ address: NumericAddress) -> Bool { ownAddresses.contains(address.bytes) }

  func now() throws(StoreTrouble) -> UnixTime {
    try meet(.now)
    return time
  }

  func load(_ account: Account) throws(StoreTrouble) -> Record? {
    try meet(.load)
    return try store.load(account)
  }

  func mayBlock() throws(StoreTrouble) -> Bool {
    try meet(.mayBlock)
    return try store.mayBlock()
  }

  func isBlocked(_ account: Account, at now: TimeSource) throws(StoreTrouble) -> Bool {
    try meet(.isBlocked)
    return try store.isBlocked(account, at: now)
  }

  func loadDecoy(for name: [UInt8]) throws(StoreTrouble) -> Record {
    try meet(.loadDecoy)
    return try store.loadDecoy(for: name)
  }

  func level(of account: Account) throws(StoreTrouble) -> UserNote.Level? {
    try meet(.note)
    return try store.level(of: account)
  }

  func countLogin(of account: Account) throws(StoreTrouble) -> UInt32 {
    try meet(.count)
    return try store.countLogin(of: account)
  }

  func rehearse() throws(StoreTrouble) {
    try meet(.rehearse)
    try store.rehearse()
  }

  func noteEnrolling(of account: Account, begun time: UnixTime?) throws(StoreTrouble) {
    try meet(.noteEnrolling)
    try store.noteEnrolling(of: account, begun: time)
  }

  func create(_ enrollment: Enrollment, _ state: LoginState) throws(StoreTrouble) {
    try meet(.create)
    try store.create(enrollment, state)
  }

  func rewrite(
    _ record: Record, _ enrollment: Enrollment, _ change: (LoginState) -> LoginState
  ) throws(StoreTrouble) -> Transaction<Void> {
    try meet(.rewrite)
    return try store.rewrite(record, enrollment, change)
  }

  func suspend(
    _ record: Record, for enrollment: Enrollment, claim: UInt64, at now: UnixTime
  ) throws(StoreTrouble) -> Transaction<Void> {
    try meet(.suspend)
    try? meanwhile()
    return try store.suspend(record, for: enrollment, claim: claim, at: now)
  }

  func transact<Verdict>(
    _ record: Record, asKnown isKnown: Bool,
    _ body: (Enrollment, LoginState) throws(StoreTrouble) -> (Verdict, LoginState)
  ) throws(StoreTrouble) -> Transaction<Verdict> {
    try meet(.transact)
    if changes > 0 {
      changes -= 1
      return .changed
    }
    waitedAsKnown.append(isKnown)
    return try store.transact(record, asKnown: isKnown, body)
  }

  private func meet(_ call: Call) throws(StoreTrouble) {
    calls.append(call)
    if failing == call { throw trouble }
  }

  /// As root's command sets it.
  func setLevel(_ level: UserNote.Level, of account: Account) throws {
    let note = UserNote(level: level, uid: account.uid)
    try makeNote(note, on: account.name, at: directory.path + "/store")
  }

  /// Takes alice's files away, as root's command does.
  static func unenrollAlice(_ directory: String) {
    // SAFETY: the C strings live for the call.
    _ = unsafe rename(directory + "/store/users/alice", directory + "/gone")
  }

  /// Enrolls alice with the secret of RFC 6238 (SHA-1), digits as wanted, and one backup code.
  func enrollAlice(digits: Digits = .six) throws {
    let parameters = try #require(
      CodeParameters(type: .totp(period: 30), algorithm: .sha1, digits: digits))
    let authenticator = Authenticator(
      id: 7, name: try #require(Label("phone".utf8)), parameters: parameters,
      secret: try #require(Secret(Self.secret)), initialLastAccepted: nil, created: UnixTime(0))
    let salt = [UInt8](repeating: 3, count: BackupCodeSet.saltLength)
    let code = try #require(Secret(Self.backup.utf8))
    let codes = BackupCodeSet(id: 9, salt: salt, digests: [try BackupCode.digest(code, salt: salt)])
    let enrollment = Enrollment(
      id: 5, user: try #require(UserName("alice".utf8)), uid: 1000, created: UnixTime(0),
      authenticators: [authenticator], backupCodes: codes)
    try store.create(enrollment, LoginState(initialFor: enrollment))
  }
}
