import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem
import SessionProtocol

extension SubjectOptions {
  /// The names that each pair gives, where this is for a session of the caller's own: he is not
  /// root, names no store, and nobody else. nil: the verb goes on as root's. `isWhole`: each pair
  /// has to be given, so with no more words than that none of them is the user. Throws where one of
  /// `roots` is given, which only root can use.
  func own(
    in context: Context, naming pairs: [(word: String?, option: Label?)] = [],
    isWhole: Bool = false, roots: KeyValuePairs<String, Bool> = [:]
  ) throws(CommandError) -> [Label?]? {
    guard context.effectiveUser != 0, storeOptions.store == nil, !users.allowMissing else {
      return nil
    }
    var words = ([argument.option == nil ? argument.word : nil] + pairs.map(\.word))
      .compactMap { $0 }
    let places = pairs.filter { $0.option == nil }.count
    var user = argument.option
    if user == nil, let first = words.first, !(isWhole && words.count <= places) {
      // `add laptop`
      let isName = words.count <= places && (try? context.account(first))?.uid == nil
      user = isName ? nil : first
      if isName { words.append(first) }
      words.removeFirst()
    }
    if let user, try context.account(user).uid != context.effectiveUser { return nil }
    if let option = roots.first(where: \.value)?.key {
      throw CommandError {
        Message(
          "only root can use \(option) here", .notPermitted, hints: ["sudo \($0.again())"])
      }
    }
    return try SallyportCLI.names(typed: pairs.map(\.option), words)
  }

  /// What comes of the verb where the caller is a member of the helpdesk and names somebody else;
  /// nil: it goes on as root's. Throws what anybody is told who is not root: that nobody is named,
  /// or himself, or a name that no account has; and where one of `roots` is given, which only root
  /// can use.
  func helped(_ act: HelpAct, in context: Context, roots: KeyValuePairs<String, Bool> = [:])
    throws(CommandError) -> OwnSession.Answer?
  {
    guard context.effectiveUser != 0, storeOptions.store == nil, !users.allowMissing else {
      return nil
    }
    if let option = roots.first(where: \.value)?.key { throw .rootsOption(option, of: act) }
    guard let typed = argument.name else { throw .nobodyNamed }
    guard let account = try? context.account(typed) else { return nil }
    guard let uid = account.uid else { throw .noSuchUser }
    if uid == context.effectiveUser { throw .helpForHimself }
    return try OwnSession(context, storeOptions).help(act, account.name)
  }
}

/// A session with `sallyport-session`, in which a user who is not root makes one change request.
struct OwnSession {
  private let context: Context
  let output: Output
  /// What he reads, in the language that the policy has for him.
  let words: Sentences

  init(_ context: Context, _ options: StoreOptions) {
    (self.context, output) = (context, context.output(options))
    words = .session(context.ownCatalog)
  }

  /// How it ended well.
  enum Answer {
    case done(of: UserName, backupCodes: [Secret], names: [Label])
    case status(Enrollment, LoginState)
    case passed(to: UserName, Secret, until: UnixTime)
    case lent(to: UserName, tries: UInt8)
  }

  /// Relays the questions of the session. `show`: what is done with the secret of a new
  /// authenticator, before its first code is asked for. `redraw`: what is done where another
  /// drawing is asked for then.
  func ask(
    for change: ChangeRequest, over connection: SessionConnection? = nil,
    show: (UserName, Label, Secret) throws(CommandError) -> Void = { _, _, _ in },
    redraw: (QRLook) -> Void = { _ in }
  ) throws(CommandError) -> Answer {
    // Of a user who is enrolled a code was accepted before.
    var (isShown, consequence) = (false, SessionSentence.nothingChanged)
    var look = QRLook()
    context.terminal.watchForInterruption()
    let line = if let connection { connection } else { try connect() }
    // A user who is refused at once is told so, whether or not this arrives.
    _ = line.send(FromUser.change(change).encoded())
    while true {
      switch try next(line) {
      case .prompt(let text, let echo):
        let prompt = Self.readable(text)
        var answer = try typed(prompt, echo: echo, or: consequence)
        while isShown, look.change(by: answer) {
          redraw(look)
          answer = try typed(prompt, echo: echo, or: consequence)
        }
        _ = line.send(FromUser.answer(answer).encoded())
      case .text(let text):
        for row in text.split(separator: 0x0a) { output.say(Self.readable(row)) }
      case .secret(let user, let name, let secret):
        isShown = true
        if case .add = change { consequence = .codeUsed }
        try show(user, name, secret)
      case .done(let user, let codes, let names):
        return .done(of: user, backupCodes: codes, names: names)
      case .status(let enrollment, let state): return try status(enrollment, state)
      case .passed(let user, let code, let end): return .passed(to: user, code, until: end)
      case .lent(let user, let tries): return .lent(to: user, tries: tries)
      case .refused(let refusal, let about):
        throw .refused(refusal, about: printable(about, limit: 64), in: words)
      }
    }
  }

  private func typed(_ prompt: String, echo: Bool, or consequence: SessionSentence)
    throws(CommandError) -> Secret
  {
    try rethrow(
      { () throws(Interruption) in try output.ask(prompt, echo: echo) },
      as: { CommandError.stopped($0, words.words(consequence)) })
  }

  /// As `session` of a `CommandError`, in his language.
  func fault(_ fault: SessionConnection.Fault) -> CommandError { .session(fault, in: words) }

  /// In any language.
  private static func readable(_ text: some Collection<UInt8>) -> String {
    Label.isPresentable(text) ? String(decoding: text, as: UTF8.self) : printable(text, limit: 500)
  }

  /// What is enrolled.
  func status() throws(CommandError) -> (Enrollment, LoginState) {
    guard case .status(let enrollment, let state) = try ask(for: .status) else {
      throw fault(.garbage)
    }
    return (enrollment, state)
  }

  /// As a member of the helpdesk, for somebody else; nil where the caller is none: then only root
  /// can.
  func help(_ act: HelpAct, _ user: UserName) throws(CommandError) -> Answer? {
    let line = try connect { .helpNotServed }
    do throws(CommandError) {
      return try ask(for: .help(act, user), over: line)
    } catch {
      if case .notHelper = error.cause { return nil }
      throw error
    }
  }

  /// `absence`: what is thrown where nothing listens.
  private func connect(_ absence: (() -> CommandError)? = nil) throws(CommandError)
    -> SessionConnection
  {
    do throws(SessionConnection.Fault) {
      return try SessionConnection.connect(context.sessions, seconds: 400)
    } catch {
      throw error == .absent ? absence?() ?? .notServed(in: words) : fault(error)
    }
  }

  /// Ends on a signal too: what the session waits for may take long.
  private func next(_ line: SessionConnection) throws(CommandError) -> FromSession {
    while true {
      do throws(SessionConnection.Fault) {
        guard let said = FromSession.decode(try line.receive(within: 250)) else { throw .garbage }
        return said
      } catch {
        guard error == .nothingYet else { throw fault(error) }
      }
      if let interruption = context.terminal.interruption() {
        throw .stopped(interruption, words.words(.nothingChanged))
      }
      if let number = context.terminal.failure { throw .output(errno: number) }
    }
  }

  private func status(_ enrollment: Secret, _ state: Secret) throws(CommandError) -> Answer {
    guard let enrollment = try? Enrollment.read(enrollment),
      let current = try? StateRecord.read(state.bytes(in: 0..<state.count))
    else { throw fault(.garbage) }
    return .status(enrollment, current.state)
  }
}

extension Context {
  /// The catalog of the language that the caller reads; nil for English, or where it or the policy
  /// cannot be read.
  fileprivate var ownCatalog: Secret? {
    guard let account = try? Accounts.find(uid: effectiveUser) else { return nil }
    let language = policy(at: nil, for: account, in: usualStore, warns: false).language
    return language == 0 ? nil : (try? usualStore.catalog(of: language))?.1
  }
}
