import ArgumentParser
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportSupport
import SallyportSystem

/// `sallyport token`
struct TokenVerbs: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "token",
    abstract: "Hardware tokens: list them, give them to people, take them back.",
    subcommands: [TokenListing.self, TokenAssign.self, TokenUnassign.self, TokenForget.self])
}

/// `sallyport token list`
struct TokenListing: Verb {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List all tokens, and who has them.")

  @OptionGroup var shared: StoreOptions

  func invocation(in context: Context) -> Invocation {
    Invocation(verb: "token list", store: shared.store)
  }

  private struct Row: Encodable {
    let serial: String
    @OrNull var assigned: String?
    /// When the first code is shown that counts; null: now, or a counter.
    @OrNull var firstUse: String?
  }

  private struct Answer: Encodable {
    let tokens: [Joined<AuthenticatorFacts, Row>]
    let unreadable: Int
  }

  func run(in context: Context) throws(CommandError) {
    let store = try context.store(shared)
    var (tokens, troubles) = ([Token](), [StoreTrouble]())
    try storing { () throws(StoreTrouble) in
      try store.eachToken { _, read in
        switch read {
        case .success(let token): tokens.append(token)
        case .failure(let trouble): troubles.append(trouble)
        }
      }
    }
    for trouble in troubles {
      let message = Message(trouble, at: invocation(in: context))
      context.terminal.write(Array(message.written.utf8), to: .aside)
    }
    let now = try context.time()
    let facts = tokens.map { token in
      Joined(
        AuthenticatorFacts(token.authenticator),
        Row(
          serial: token.serial.text, assigned: token.holder?.user.text,
          firstUse: token.holder == nil
            ? token.authenticator.firstUse(after: now).flatMap { fact($0) } : nil))
    }
    context.output(shared).answer(
      Answer(tokens: facts, unreadable: troubles.count),
      text(tokens, unread: troubles.count, at: now))
    if !troubles.isEmpty { throw CommandError(.badData, "the list is incomplete") }
  }

  private func text(_ tokens: [Token], unread: Int, at now: UnixTime) -> String {
    let rows = tokens.map { token in
      [
        token.serial.text, description(of: token.authenticator.parameters),
        token.holder?.user.text ?? nobody(token, at: now),
      ]
    }
    let lines = rows.isEmpty ? [] : table([["SERIAL", "KIND", "ASSIGNED TO"]] + rows)
    let free = tokens.count { $0.holder == nil }
    let rest = unread > 0 ? ", \(unread) cannot be read" : ""
    let count = "\(counted(tokens.count, "token")), \(free) of them nobody's\(rest)"
    return (lines + [count]).joined(separator: "\n")
  }

  private func nobody(_ token: Token, at now: UnixTime) -> String {
    ["nobody", token.authenticator.waitText(at: now)].compactMap { $0 }.joined(separator: "; ")
  }
}

/// `sallyport token forget`
struct TokenForget: Verb {
  static let configuration = CommandConfiguration(
    commandName: "forget", abstract: "Remove tokens that nobody has, such as of a wrong list.")

  @Argument(
    help: ArgumentHelp("The serial numbers.", valueName: "serial"),
    completion: .custom(Completions.tokens))
  var serials: [String] = []

  @Flag(help: "All that nobody has.")
  var unassigned = false

  @Flag(help: "Also those whose broken files do not tell who has them.")
  var unchecked = false

  @Flag(help: "Do not ask.")
  var yes = false

  @OptionGroup var shared: StoreOptions

  func validate() throws {
    if serials.isEmpty != unassigned {
      throw ValidationError("either serial numbers or --unassigned")
    }
    if unassigned, unchecked { throw ValidationError("--unchecked needs serial numbers") }
  }

  func invocation(in context: Context) -> Invocation {
    Invocation(verb: "token forget", store: shared.store)
  }

  private struct Answer: Encodable {
    let forgotten: [String]
  }

  func run(in context: Context) throws(CommandError) {
    let store = try context.store(shared)
    let output = context.output(shared)
    let tokens = unassigned ? try free(in: store, output) : try named(in: store)
    if !yes, !tokens.isEmpty {
      try output.insist(
        "Remove \(counted(tokens.count, "token")) with the secrets?", or: .nothingChanged)
    }
    let names = tokens.map(\.text)
    // Of a whole list its number says enough.
    let facts =
      names.count > 8
      ? [Act.Fact("tokens", "\(names.count)".utf8)] : names.map { Act.Fact("token", $0.utf8) }
    if !tokens.isEmpty {
      let isDone = { (held: Token?) in held == nil }
      let recorder = try context.recorder(shared)
      let held = try recorder.record(.tokenForget, facts, isDone: isDone) {
        () throws(CommandError) in
        try storing { () throws(StoreTrouble) in try store.forget(tokens, unchecked: unchecked) }
      }
      if let held { throw .tokenHeld(held) }
    }
    output.answer(Answer(forgotten: names), "Forgot \(counted(tokens.count, "token")).")
  }

  private func named(in store: Store) throws(CommandError) -> [TokenSerial] {
    var found: [TokenSerial] = []
    for word in serials {
      guard let serial = TokenSerial(word.utf8) else { throw .noToken(word) }
      found.append(serial)
      let token: Token?
      do throws(StoreTrouble) {
        token = try store.token(serial)
      } catch {
        guard case .malformed = error else { throw .store(error) }
        guard unchecked else { throw .brokenToken(serial, error) }
        continue
      }
      guard let token else { throw .noToken(word) }
      if token.holder != nil { throw .tokenHeld(token) }
    }
    return found
  }

  private func free(in store: Store, _ output: Output) throws(CommandError) -> [TokenSerial] {
    var found: [TokenSerial] = []
    try storing { () throws(StoreTrouble) in
      try store.eachToken { _, read in
        switch read {
        case .success(let token): if token.holder == nil { found.append(token.serial) }
        case .failure(let trouble): output.warn("\(trouble.fact): left as it is")
        }
      }
    }
    return found
  }
}

extension CommandError {
  /// Somebody has it.
  static func tokenHeld(_ token: Token) -> CommandError {
    let user = token.holder?.user.text ?? "nobody"
    return CommandError {
      let back = Invocation(verb: $0.verb, store: $0.store)
        .command("token unassign", shellQuoted(token.serial.text), remark: "takes it back")
      return Message("\(token.serial.text) is assigned to \(user)", .exists, hints: [back])
    }
  }
}

extension Authenticator {
  /// `codes count in 3 min`, of a token of which those up to then may have been used.
  func waitText(at now: UnixTime) -> String? {
    firstUse(after: now).map { "codes count in \(durationText($0.elapsed(since: now)))" }
  }
}

extension AuthenticatorFacts {
  init(_ authenticator: Authenticator) {
    self.init(
      authenticator.parameters, name: authenticator.name, after: authenticator.initialLastAccepted)
  }
}
