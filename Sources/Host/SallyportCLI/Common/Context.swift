internal import CService
import Glibc
import OneTimePassword
import PAMStack
package import SallyportCore
package import SallyportDoctor
package import SallyportLogin
import SallyportSupport
package import SallyportSystem
import SessionProtocol

/// The environment of a verb: everything that tests replace.
package struct Context {
  /// The version of the command and of the module.
  package static let version = "0.2.0"

  package let terminal: any Terminal
  /// The words after `sallyport`, for what names the command again.
  var typed: [String] = []
  package let effectiveUser: UInt32
  /// The user who called sudo or doas, if the caller is root by it.
  let caller: String?
  /// The default issuer in authenticator apps.
  let hostName: String?
  /// The PAM configuration and the modules of this machine.
  var stacks = StackDirectory()
  /// The policy file without `--conf`; nil for the usual one, which need not exist.
  package var policyFile: String?
  /// Where sessions for users who are not root are had.
  var sessions = SessionConnection.usualPath
  /// Runs the user's editor on a file.
  var edit: (_ path: String) -> EditorStatus = Editor.run
  let now: () throws(StoreTrouble) -> UnixTime
  /// Starts a program that outlives this process and its terminal.
  var detach: (_ words: [String]) throws(SystemError) -> Void = ProgramRun.detach
  /// Writes a line to the log of logins, with a priority of syslog(3).
  var tellLog: (_ priority: Int32, _ text: String) -> Void = { priority, text in
    ServiceLog.open(as: "sallyport", options: 0)
    ServiceLog.write(priority, text, limit: 4000)
  }
  /// Writes a record to the audit log of the kernel; `type` of libaudit.h.
  var audit: (_ type: Int32, _ operation: String, _ user: String?, _ isDone: Bool) -> Void = {
    type, operation, user, isDone in
    // SAFETY: the C strings live for the call.
    unsafe service_audit(type, operation, user, isDone)
  }
  /// The uid with which the session of this process began, as the kernel keeps it for audit; nil:
  /// there is none, as in what a service starts.
  var loginUID: () -> UInt32? = {
    guard let file = try? OpenFile("/proc/self/loginuid", O_RDONLY),
      let text = try? file.bytes(16), let uid = UInt32(String(decoding: text, as: UTF8.self))
    else { return nil }
    return uid == UserNote.noUID ? nil : uid
  }
  /// The terminal supports plain text only, or NO_COLOR is set.
  var isPlain = false
  /// The machine that doctor examines.
  package var machine = Machine()
  /// The store without `--store`, which belongs to root.
  var usualStore = Store()
  /// The fleet of this machine; nil: this command is built without it.
  package var fleet: (any FleetAccess)?

  /// The store to use. The usual one belongs to root, one named by `--store` to the caller.
  package func store(_ options: StoreOptions) throws(CommandError) -> Store {
    if options.store != nil { return Store(root: options.path, owner: .effectiveUser) }
    guard effectiveUser == 0 else { throw .notRoot }
    return usualStore
  }

  package func output(_ options: StoreOptions) -> Output {
    Output(terminal: terminal, isJSON: options.json)
  }

  /// The account with this name; its `uid` is nil if there is none.
  package func account(_ name: String) throws(CommandError) -> Account {
    guard let name = UserName(Array(name.utf8)) else {
      throw CommandError {
        Message("\"\($0.who)\" is not a valid user name", .noUser, hints: ["getent passwd"])
      }
    }
    return try storing { () throws(StoreTrouble) in try Accounts.find(name) }
  }

  /// The level that root has set for this account.
  func level(of account: Account, in store: Store) throws(CommandError) -> UserNote.Level? {
    try noting { () throws(StoreTrouble) in try store.level(of: account) }
  }

  /// The policy for a local login of this user in the service `sallyport`. If the file cannot be
  /// used, prints a warning that says which policy applies instead, where it `warns`. `file`: nil
  /// for the usual one.
  func policy(at file: String?, for account: Account, in store: Store, warns: Bool = true) -> Policy
  {
    let path = (file ?? policyFile).map { Array($0.utf8) }
    let reading = store.policy(at: path, base: Policy(), .command(for: account))
    if warns, let trouble = reading.trouble {
      let holds = reading.isStrict ? "the strict policy applies" : "the last good file applies"
      let reason = Message(trouble, at: Invocation(verb: "config", store: nil)).text
      let message = Message("\(reason); \(holds)", .configuration, hints: ["sallyport config edit"])
      terminal.write(Array(message.written.utf8), to: .aside)
    }
    return store.policy(of: reading, isSuperuser: account.uid == 0)
  }

  package func time() throws(CommandError) -> UnixTime {
    try storing { () throws(StoreTrouble) in try now() }
  }

  /// Throws if a signal has arrived or writing has failed. Called before something is changed.
  package func stopIfInterrupted(_ consequence: Consequence) throws(CommandError) {
    if let interruption = terminal.interruption() { throw .stopped(interruption, consequence) }
    if let number = terminal.failure { throw .output(errno: number) }
  }
}

extension LoginContext {
  /// A local login of the user, through the command.
  package static func command(under policy: Policy) -> LoginContext {
    LoginContext(policy: policy, origin: .local(own: true), service: .sallyport)
  }
}

extension Label {
  /// The service of logins through the command.
  package static let sallyport = Label("sallyport" as StaticString)
}

extension Output {
  /// As `ask`, but throws `stopped` if there is no answer.
  func ask(_ prompt: String, echo: Bool, or consequence: Consequence) throws(CommandError) -> Secret
  {
    try rethrow(
      { () throws(Interruption) in try ask(prompt, echo: echo) },
      as: { CommandError.stopped($0, consequence) })
  }

  /// As `agrees`; throws if there is no answer.
  func agrees(_ question: String, usually: Bool = false, or consequence: Consequence)
    throws(CommandError) -> Bool
  {
    try rethrow(
      { () throws(Interruption) in try agrees(question, usually: usually) },
      as: { CommandError.stopped($0, consequence) })
  }

  /// As `agrees`, but throws unless the answer is yes. `options`: the same command with them does
  /// not ask; where there is no terminal and no answer, that is told.
  func insist(
    _ question: String, usually: Bool = false, or consequence: Consequence,
    unless options: [String] = ["--yes"]
  ) throws(CommandError) {
    let isAgreed: Bool
    do throws(Interruption) {
      isAgreed = try agrees(question, usually: usually)
    } catch {
      guard error == .endOfInput, !terminal.isInteractive else {
        throw .stopped(error, consequence)
      }
      throw .nobodyToAsk(consequence, options)
    }
    guard isAgreed else { throw .declined(consequence) }
  }
}
