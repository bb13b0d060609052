import OneTimePassword
import PAMStack
import SallyportCore
import SallyportDoctor
import SallyportSystem
import SallyportText

/// What a verb finds around it: everything that a test replaces.
struct Context {
  /// Of the command, and of the module beside it.
  static let version = "0.1.0"

  let terminal: any Terminal
  let effectiveUser: UInt32
  /// Who called sudo or doas, where that made the caller root.
  let caller: String?
  /// Who runs the machine, in an authenticator app.
  let hostName: String?
  /// The machine's files of PAM.
  var stacks = StackDirectory()
  /// The policy file where none is named; nil: the usual one, which need not exist.
  var policyFile: String?
  /// Lets a person edit a file: the exit status of the editor.
  var edit: (_ path: String) -> EditorStatus = Editor.run
  let now: () throws(StoreTrouble) -> UnixTime
  /// The terminal shows plain text only.
  var isPlain = false
  /// What doctor looks at.
  var machine = Machine()

  /// The store to work on. The usual one is root's; `--store` may name one of the caller's own.
  func store(_ options: StoreOptions) throws(CommandError) -> Store {
    if options.store != nil { return Store(root: options.path, owner: .effectiveUser) }
    guard effectiveUser == 0 else { throw .notRoot }
    return Store()
  }

  func output(_ options: StoreOptions) -> Output {
    Output(terminal: terminal, isJSON: options.json)
  }

  /// The account of that name; its `uid` is nil where there is none.
  func account(_ name: String) throws(CommandError) -> Account {
    guard let name = UserName(Array(name.utf8)) else { throw .notAUserName }
    return try storing { () throws(StoreTrouble) in try Accounts.find(name) }
  }

  /// The enrollment of a user, who must have one.
  func record(_ user: String, _ options: UserOptions, in store: Store) throws(CommandError)
    -> Record
  {
    let account = try account(user)
    let record = try storing { () throws(StoreTrouble) in try store.load(account) }
    guard let record else {
      throw account.uid == nil && !options.allowMissing ? .noSuchUser : .notEnrolled
    }
    return record
  }

  /// Logins of one who is not enrolled that were counted.
  func loginsCounted(of account: Account, in store: Store) throws(CommandError) -> UInt32 {
    do throws(StoreTrouble) {
      return try store.loginsCounted(of: account.name)
    } catch {
      throw CommandError(note: error)
    }
  }

  /// What is kept of a user apart from an enrollment.
  func note(of account: Account, in store: Store) throws(CommandError) -> UserNote {
    do throws(StoreTrouble) {
      return try store.note(of: account.name)
    } catch {
      throw CommandError(note: error)
    }
  }

  /// The policy that holds for a user's login on this machine itself, in the service `sallyport`. A
  /// file that cannot be used is told, and what holds then.
  func policy(_ options: PolicyOptions, for account: Account, in store: Store) -> Policy {
    let login = PolicyRequest(
      service: Label.sallyport.bytes, user: account.name.bytes, isRemote: false, address: nil,
      parse: Addresses.numeric, membership: { Accounts.isMember(account, of: $0) })
    let path = (options.conf ?? policyFile).map { Array($0.utf8) }
    let reading = store.policy(at: path, base: Policy(), login)
    if let trouble = reading.trouble {
      let holds = reading.policy == nil ? "the strict policy applies" : "the last good file applies"
      let reason = Message(trouble, at: Invocation(verb: "config", store: nil)).text
      let message = Message("\(reason); \(holds)", .configuration, hints: ["sallyport config edit"])
      terminal.write(Array(message.written.utf8), to: .aside)
    }
    return reading.policy ?? .strict
  }

  /// `body` again while others change the enrollment in between, three times at most.
  func settled<Value>(
    at path: String, _ body: () throws(CommandError) -> Transaction<Value>
  ) throws(CommandError) -> Value {
    for _ in 0..<3 {
      switch try body() {
      case .committed(let value): return value
      case .changed: continue
      }
    }
    throw .store(.unsettled(path: path))
  }

  func time() throws(CommandError) -> UnixTime {
    try storing { () throws(StoreTrouble) in try now() }
  }

  /// The last chance to turn back before something is changed.
  func stopIfInterrupted(_ consequence: Consequence) throws(CommandError) {
    if let interruption = terminal.interruption() { throw .stopped(interruption, consequence) }
    if let number = terminal.failure { throw .output(errno: number) }
  }
}

extension Label {
  /// The service of logins through the command.
  static let sallyport = Label("sallyport" as StaticString)
}

extension Output {
  /// As `ask`, where no answer ends the command.
  func ask(_ prompt: String, echo: Bool, or consequence: Consequence) throws(CommandError) -> Secret
  {
    do throws(Interruption) {
      return try ask(prompt, echo: echo)
    } catch {
      throw .stopped(error, consequence)
    }
  }

  /// As `agrees`, where no answer, or no, ends the command.
  func insist(_ question: String, usually: Bool = false, or consequence: Consequence)
    throws(CommandError)
  {
    let agreed: Bool
    do throws(Interruption) {
      agreed = try agrees(question, usually: usually)
    } catch {
      throw .stopped(error, consequence)
    }
    guard agreed else { throw .declined(consequence) }
  }
}
