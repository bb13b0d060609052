internal import CSession
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSystem
import SessionProtocol

/// What a session has of its machine: all that tests replace.
struct SessionEnvironment {
  var store = Store()
  /// The policy file; nil for the usual one.
  var policyFile: [UInt8]?
  /// A new one for each step: the time that each may take begins with it.
  var authority: () -> any CodeAuthority = { ServiceAuthority(at: ServiceAuthority.rootSocket) }
  var takeTurn: (Client) throws(StoreTrouble) -> Bool = { client throws(StoreTrouble) in
    try client.takeTurn()
  }
  /// Whether the user's password is right; nil for the machine's own stack.
  var accepts: (([UInt8]) -> Bool)?

  // MARK: of the one whom a helper helps

  /// Of a fleet.
  var askFleet: (HelpRequest) throws(StoreTrouble) -> HelpAnswer = { request throws(StoreTrouble) in
    try HelpService.ask(request)
  }
  var find: (UserName) throws(StoreTrouble) -> Account = { name throws(StoreTrouble) in
    try Accounts.find(name)
  }
  /// The first account with a uid.
  var owner: (UInt32) throws(StoreTrouble) -> Account? = { uid throws(StoreTrouble) in
    try Accounts.find(uid: uid)
  }
  var isMember: (Account, [UInt8]) -> Tristate = { Accounts.isMember($0, of: $1) }
  /// In a group that the helpdesk's lines name, for certain.
  var isInGroup: (Account, [UInt8]) -> Tristate = { MachineRules.isMember($0, of: $1) }
  var rootPower: (Account) -> RootPower = { MachineRules.power(of: $0) }
}

/// One session of one user: one change request first, one password, one code, one change, and the
/// end.
package final class Session {
  /// For a whole session.
  static let seconds: UInt64 = 300
  private static let mostPrompts = 40
  /// Milliseconds from the connection to the change request.
  private static let untilRequest: UInt64 = 5000
  private static let service: StaticString = "sallyport"

  let client: Client
  private let line: SessionConnection
  let environment: SessionEnvironment
  private var prompts = 0
  /// What is wished, and what was found of it after the password.
  private var allowed: (ChangeRequest, Permission)?
  /// What was enrolled when the code was asked for; nil: nothing.
  var seenBefore: [UInt64]?

  init(_ client: Client, _ line: SessionConnection, _ environment: SessionEnvironment) {
    (self.client, self.line, self.environment) = (client, line, environment)
  }

  var store: Store { environment.store }
  var authority: any CodeAuthority { environment.authority() }

  /// Serves the peer of this connection, and returns when it is done.
  package static func serve(_ connection: Int32) {
    guard session_harden(connection, UInt32(seconds) + 30) == 0 else { return }
    SessionLog.open()
    let line = SessionConnection(connection, seconds: seconds)
    let last: FromSession
    do throws(Client.Refusal) {
      last = try Session(Client(at: connection), line, SessionEnvironment()).last()
    } catch {
      _ = try? line.receive(within: 100)
      switch error {
      case .nobody: return
      case .refused(let refusal, let user, let why):
        // Root looks whether the socket is served; that tells nobody anything.
        if user != 0 { SessionLog.write(.notice, .notServed(user, why)) }
        last = .refused(refusal, [])
      case .trouble(let trouble):
        SessionLog.write(.error, .trouble(trouble, user: [], from: nil, .unknown))
        last = .refused(.failed, [])
      }
    }
    _ = line.send(last.encoded())
  }

  /// What ends the session; nothing is taken from the connection afterwards.
  func last() -> FromSession {
    do throws(Ending) {
      guard try found({ () throws(StoreTrouble) in try environment.takeTurn(client) }) else {
        _ = try? line.receive(within: 100)
        throw .refused(.busy)
      }
      guard case .change(let change) = try received(within: Session.untilRequest) else {
        throw .gone
      }
      return try serve(change)
    } catch {
      switch error {
      case .refused(let refusal, let about):
        // A user can have the others as often as he likes.
        if refusal.isLogged {
          SessionLog.write(.info, .denied(client.account.name.bytes, refusal.name))
        }
        return .refused(refusal, about)
      case .gone: return .refused(.failed, [])
      }
    }
  }

  private func serve(_ change: ChangeRequest) throws(Ending) -> FromSession {
    if case .help(let act, let name) = change { return try help(act, name) }
    let (before, asked) = try permitted(change)
    switch before {
    case .refused(let refusal): throw .refused(refusal, about: change.about)
    case .show: return try status(of: client.account, asked)
    case .afterCode, .afterFirstCode: break
    }
    try askPassword()
    // What may have become another while the password was typed.
    let (now, context) = try permitted(change)
    guard now == before else { throw .refused(.changed) }
    allowed = (change, before)
    if case .afterCode(let id) = before { return try self.change(change, id, context) }
    guard case .enroll(let name, let parameters, let codes) = change else {
      throw .refused(.changed)
    }
    return try enroll(name, parameters, backupCodes: codes, context)
  }

  func askPassword() throws(Ending) {
    guard environment.accepts != nil || SystemStack.isSetUp else { throw .refused(.failed) }
    guard (environment.accepts ?? systemStack.accepts)(client.account.name.bytes) else {
      throw .refused(.password)
    }
  }

  private var systemStack: SystemStack {
    SystemStack(
      asks: { prompt, echo in try? self.ask(prompt, echo: echo) },
      shows: { text in self.line.send(FromSession.text(text).encoded()) })
  }

  // MARK: what may be changed

  /// With what is enrolled and the policy as they are now.
  private func permitted(_ change: ChangeRequest) throws(Ending) -> (Permission, LoginContext) {
    let context = context(of: client.account)
    let policy = context.policy
    guard policy.isSelfService, policy.isEnabled else {
      return (permission(for: change, .notEnrolled(.refuse), under: policy), context)
    }
    let enrollment = try found { () throws(StoreTrouble) -> OwnEnrollment in
      guard let pending = try authority.enrolled(client.account, in: context) else {
        return .notEnrolled(try authority.level(of: client.account, in: context))
      }
      // Nothing can be changed, and no backup code need be spent to find out.
      if pending.isAway {
        throw .service(path: ServiceAuthority.rootSocket, .trouble(mayBeTheCallers: true))
      }
      let all = pending.shape.authenticators
      return .enrolled(
        id: pending.enrollmentID, names: all.map(\.name),
        off: all.filter { policy.use(of: $0.kind) == .off }.map(\.name))
    }
    return (permission(for: change, enrollment, under: policy), context)
  }

  /// Policy and enrollment are still what they were after the password: root may have taken away
  /// meanwhile what the user has, or what he may.
  func insistOnPermission() throws(Ending) {
    guard let (change, before) = allowed, try permitted(change).0 == before else {
      throw .refused(.changed)
    }
  }

  /// Of a local login in the service `sallyport`.
  func context(of account: Account) -> LoginContext {
    let isSuperuser = account.uid == 0
    let login = PolicyRequest(
      service: bytes(of: Session.service), user: account.name.bytes, isSuperuser: isSuperuser,
      isRemote: false, address: nil, parse: Addresses.numeric,
      membership: { self.environment.isMember(account, $0) })
    let reading = store.policy(at: environment.policyFile, base: Policy(), login)
    if let trouble = reading.trouble {
      SessionLog.write(.error, .brokenPolicy(trouble, hasLastGood: !reading.isStrict))
    }
    return LoginContext(
      policy: store.policy(of: reading, isSuperuser: isSuperuser), origin: .local(own: true),
      service: Label(Session.service))
  }

  // MARK: talking

  /// What ends a session before its change.
  enum Ending: Error {
    case refused(ChangeRefusal, about: [UInt8])
    /// The user is gone, or says what is no answer.
    case gone

    static func refused(_ refusal: ChangeRefusal) -> Ending { .refused(refusal, about: []) }
  }

  func ask(_ prompt: [UInt8], echo: Bool) throws(Ending) -> Secret {
    prompts += 1
    guard prompts <= Session.mostPrompts else { throw .refused(.failed) }
    try send(.prompt(prompt, echo: echo))
    guard case .answer(let typed) = try received() else { throw .gone }
    return typed
  }

  func send(_ message: FromSession) throws(Ending) {
    guard line.send(message.encoded()) else { throw .gone }
  }

  /// nil: for as long as the session lasts.
  private func received(within milliseconds: UInt64? = nil) throws(Ending) -> FromUser {
    do throws(SessionConnection.Fault) {
      while true {
        do throws(SessionConnection.Fault) {
          let packet = try line.receive(within: milliseconds ?? 3_600_000)
          guard let message = FromUser.decode(packet) else { throw .garbage }
          return message
        } catch .nothingYet where milliseconds == nil {
          continue
        }
      }
    } catch {
      throw .gone
    }
  }

  /// Nothing is changed for somebody who is gone.
  func insistOnPresence() throws(Ending) {
    guard line.isWaiting else { throw .gone }
  }

  /// Logs what failed of the machine.
  func found<Value>(_ step: () throws(StoreTrouble) -> Value) throws(Ending) -> Value {
    do throws(StoreTrouble) {
      return try step()
    } catch {
      SessionLog.write(
        .error,
        .trouble(error, user: client.account.name.bytes, from: nil, .local(own: true)))
      throw .refused(.failed)
    }
  }
}

extension ChangeRequest {
  /// The name that a refusal is about.
  fileprivate var about: [UInt8] {
    switch self {
    case .add(let name?, _), .remove(let name): name.bytes
    case .rename(let name, _): name.bytes
    case .status, .enroll, .renew, .add: []
    case .help(_, let user): user.bytes
    }
  }
}

extension ChangeRefusal {
  /// Whether it tells something of a password, a code or a failure.
  fileprivate var isLogged: Bool {
    switch self {
    case .password, .code, .throttled, .firstCode, .changed, .failed, .unknown, .disabled, .level,
      .notForHelpers, .notHelped, .unclear, .helpInFleet, .helpedNotEnrolled, .helpedEnough,
      .helpedToday, .notLocked, .nothingToLend, .blockedByRoot, .blockedByHelper, .notBlocked:
      true
    case .off, .notEnrolled, .enrolled, .noSuchAuthenticator, .nameTaken, .tooMany, .last, .busy,
      .root, .noAccount, .inFleet, .notHelper:
      false
    }
  }

  /// For the log.
  var name: StaticString {
    switch self {
    case .off: "self-service-off"
    case .disabled: "disabled"
    case .level: "level"
    case .notEnrolled: "not-enrolled"
    case .enrolled: "enrolled"
    case .noSuchAuthenticator: "no-such-authenticator"
    case .nameTaken: "name-taken"
    case .tooMany: "too-many"
    case .last: "last-authenticator"
    case .password: "password"
    case .code: "code"
    case .throttled: "throttled"
    case .firstCode: "first-code"
    case .busy: "another-session"
    case .root: "root"
    case .noAccount: "no-account"
    case .changed: "changed-meanwhile"
    case .failed: "failed"
    case .unknown: "failed-while-changing"
    case .inFleet: "in-fleet"
    case .notHelper: "no-helper"
    case .notForHelpers: "not-for-helpers"
    case .notHelped: "not-to-be-helped"
    case .unclear: "unclear"
    case .helpInFleet: "fleet"
    case .helpedNotEnrolled: "not-enrolled"
    case .helpedEnough: "enough-for-this-person"
    case .helpedToday: "enough-for-this-helper"
    case .notLocked: "not-locked"
    case .nothingToLend: "nothing-to-lend"
    case .blockedByRoot: "blocked-by-root"
    case .blockedByHelper: "blocked-by-helper"
    case .notBlocked: "not-blocked"
    }
  }
}
