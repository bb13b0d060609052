import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportImport
import SallyportSupport
import SallyportSystem

/// Puts tokens of a list into the inventory: none where a line is wrong. At most `Store.batch` are
/// added at once, so that an interrupted import is repeated to add the rest.
struct TokenImporter {
  let store: Store
  let context: Context
  let recorder: Recorder
  let dryRun: Bool
  /// As it was typed.
  let file: String
  private let salt = (0..<16).map { _ in UInt8.random(in: 0...255) }

  init(store: Store, context: Context, recorder: Recorder, dryRun: Bool, file: String) {
    (self.store, self.context, self.recorder) = (store, context, recorder)
    (self.dryRun, self.file) = (dryRun, file)
  }

  /// `leftOut`: of the list, lines that are about something else.
  func run(_ listed: [ListedToken], leftOut: Int = 0) throws(CommandError) -> TokenImportReport {
    var (there, owners) = ([TokenSerial: Token](), [[UInt8]: TokenSerial]())
    let inventory = try inventory()
    for token in inventory.tokens {
      there[token.serial] = token
      owners[try mark(token.authenticator.secret)] = token.serial
    }
    let now = try context.time()
    var (new, problems): ([Token], [TokenProblem]) = ([], [])
    var inTheWay: [(serial: String, isHeld: Bool, isBroken: Bool)] = []
    for one in listed {
      let made = try token(one, at: now)
      let mark = try mark(one.secret)
      if let before = there[one.serial] {
        if !before.isSame(as: made) {
          problems.append(
            TokenProblem(line: one.line, "\(one.serial.text) is there, as another one"))
          inTheWay.append((one.serial.text, before.holder != nil, false))
        }
      } else if inventory.broken.contains(Path(one.serial.fileName).text) {
        problems.append(
          TokenProblem(line: one.line, "\(one.serial.text) is there, and cannot be read"))
        inTheWay.append((one.serial.text, false, true))
      } else if let other = owners[mark] {
        problems.append(TokenProblem(line: one.line, "the secret is that of \(other.text)"))
      } else {
        owners[mark] = one.serial
        new.append(made)
      }
    }
    if !problems.isEmpty {
      let some = inTheWay
      throw TokenListError.problems(problems).command(for: file, context) { [some] in
        $0.making(wayOf: some)
      }
    }
    if !dryRun, !new.isEmpty { try add(new) }
    return TokenImportReport(
      listed: listed, already: Set(listed.map(\.serial)).intersection(there.keys), leftOut: leftOut,
      dryRun: dryRun)
  }

  /// Those that are there, and the names of files that cannot be read, each of which is warned of:
  /// by its name it is known which serial number it has, so that others can be imported.
  private func inventory() throws(CommandError) -> (tokens: [Token], broken: Set<String>) {
    var (tokens, troubles) = ([Token](), [String: StoreTrouble]())
    try storing { () throws(StoreTrouble) in
      try store.eachToken { file, read in
        switch read {
        case .success(let token): tokens.append(token)
        case .failure(let error): troubles[file] = error
        }
      }
    }
    for (_, trouble) in troubles.sorted(by: { $0.key < $1.key }) {
      let text = "sallyport: warning: \(trouble.fact): its secret is not compared\n"
      context.terminal.write(Array(text.utf8), to: .aside)
    }
    return (tokens, Set(troubles.keys))
  }

  /// By which two secrets are known to be the same, without a copy of them.
  private func mark(_ secret: Secret) throws(CommandError) -> [UInt8] {
    try computing { () throws(CryptoError) in try hmacSHA256(key: salt, message: secret) }
  }

  private func token(_ one: ListedToken, at now: UnixTime) throws(CommandError) -> Token {
    let isTimed = one.parameters.type != .hotp
    return Token(
      one.serial,
      Authenticator(
        id: try freshIdentifier(), name: Label(one.serial.bytes) ?? Label("token"),
        parameters: one.parameters, secret: one.secret, initialLastAccepted: one.lastAccepted,
        created: now, clockOffset: isTimed ? one.clockOffset : nil))
  }

  /// Each batch is an act of its own, so that the log says what was imported.
  private func add(_ tokens: [Token]) throws(CommandError) {
    context.terminal.watchForInterruption()
    for start in stride(from: 0, to: tokens.count, by: Store.batch) {
      if let interruption = context.terminal.interruption() {
        let fate = "stopped after \(start) of \(counted(tokens.count, "token"))"
        throw .stopped(interruption, "\(fate); run the same command again to continue")
      }
      let some = tokens[start..<min(start + Store.batch, tokens.count)]
      let facts = [Act.Fact("tokens", "\(some.count)".utf8)]
      do throws(StoreTrouble) {
        try recorder.record(.import, facts) { () throws(StoreTrouble) in
          try context.prepare(store)
          try store.add(some)
        }
      } catch {
        let done = start + count(of: some, after: error)
        throw .notAdded(error, done: done, of: tokens.count)
      }
      if start + some.count < tokens.count { store.makeWay() }
    }
  }
}

extension TokenImporter {
  /// How many of a batch that failed are there all the same.
  private func count(of some: ArraySlice<Token>, after trouble: StoreTrouble) -> Int {
    if case .exists = trouble { return 0 }
    return some.count { (try? store.token($0.serial)) != nil }
  }
}

extension Invocation {
  /// What ends tokens of the inventory that are others than those of a list: one that somebody has
  /// is first taken back. Of many, some.
  fileprivate func making(wayOf tokens: [(serial: String, isHeld: Bool, isBroken: Bool)])
    -> [String]
  {
    let own = Invocation(verb: "token", store: store)
    let held = tokens.filter(\.isHeld).prefix(4).map {
      own.command("token unassign", commandWords([$0.serial]))
    }
    guard !tokens.isEmpty else { return [] }
    let some = tokens.prefix(tokens.contains(where: \.isHeld) ? 4 : 8)
    let options = some.contains(where: \.isBroken) ? ["--unchecked"] : []
    let all = commandWords(some.map(\.serial), options)
    return held + [own.command("token forget", all, remark: "what is there; then import again")]
  }
}

extension CommandError {
  /// `done`: how many are there all the same. The same command again adds the rest.
  fileprivate static func notAdded(_ trouble: StoreTrouble, done: Int, of count: Int)
    -> CommandError
  {
    let fate =
      done > 0 ? "\(done) of \(counted(count, "token")) were imported" : "nothing was imported"
    return CommandError(.store(trouble)) {
      if case .exists(let path) = trouble {
        let text = "\(path): another command imported it meanwhile: \(fate)"
        return Message(text, .busy, hints: [$0.again()])
      }
      let message = Message(trouble, at: $0)
      let rest = done > 0 ? [$0.again(remark: "imports the rest")] : []
      return Message("\(message.text): \(fate)", message.status, hints: message.hints + rest)
    }
  }
}

/// What came of importing tokens.
struct TokenImportReport {
  let listed: [ListedToken]
  /// Those that were there before.
  let already: Set<TokenSerial>
  let leftOut: Int
  let dryRun: Bool
  /// How the head, or the file of the key, was read.
  var told: String?

  private var new: Int { listed.count - already.count }

  func text(_ store: String?) -> String {
    let done = dryRun ? "would be imported" : "imported"
    var parts = ["\(counted(new, "token")) \(done)"]
    if !already.isEmpty { parts.append("\(already.count) there already") }
    if leftOut > 0 { parts.append("\(counted(leftOut, "line")) about something else") }
    if new == 0 { return parts.joined(separator: ", ") + "." }
    var lines = [parts.joined(separator: ", ") + ". Nobody has them yet."]
    lines += [kinds, assumed, told].compactMap { $0 }
    let owned = listed.count { $0.user != nil }
    if owned > 0 {
      lines.append("The file says whose \(owned) of them are; that is not stored.")
    }
    let assign = Invocation(verb: "token", store: store).command("token assign", firstPair)
    return (lines + ["Next: \(assign)"]).joined(separator: "\n")
  }

  /// `Kind: TOTP, 6 digits, 30 s.`
  private var kinds: String {
    var counts: [(kind: String, count: Int)] = []
    for one in listed {
      let kind = description(of: one.parameters)
      if let place = counts.firstIndex(where: { $0.kind == kind }) {
        counts[place].count += 1
      } else {
        counts.append((kind, 1))
      }
    }
    if counts.count == 1 { return "Kind: \(counts[0].kind)." }
    return "Kinds: \(counts.map { "\($0.count) of \($0.kind)" }.joined(separator: "; "))."
  }

  /// What the file does not say of the codes, and is as it is by the options or by default.
  private var assumed: String? {
    let names: [(column: TokenColumn, name: String)] = [
      (.type, "time or counter"), (.period, "time step"), (.digits, "digits"),
      (.algorithm, "hash function"),
    ]
    let missing = names.filter { pair in listed.contains { $0.assumed.contains(pair.column) } }
    if missing.isEmpty { return nil }
    let list = missing.map(\.name).joined(separator: ", ")
    return "Not in the file but assumed: \(list). A first code tells whether that is right."
  }

  /// The first token whose user the file names, and this user.
  private var firstPair: String {
    for one in listed where !already.contains(one.serial) {
      guard let user = one.user, shownName(user) != nil, let name = UserName(user)?.typed else {
        continue
      }
      return commandWords([one.serial.text, name])
    }
    return "SERIAL USER"
  }

  struct Facts: Encodable {
    struct One: Encodable {
      let serial, result: String
      let line: Int
      @OrNull var user: String?
      let assumed: [String]
    }
    let source: String
    let dryRun: Bool
    let imported, alreadyThere, leftOut: Int
    let tokens: [Joined<AuthenticatorFacts, One>]
  }

  func facts(source: String) -> Facts {
    Facts(
      source: source, dryRun: dryRun, imported: new, alreadyThere: already.count, leftOut: leftOut,
      tokens: listed.map { one in
        Joined(
          AuthenticatorFacts(
            one.parameters, name: Label(one.serial.bytes) ?? Label("token"), after: one.lastAccepted
          ),
          Facts.One(
            serial: one.serial.text,
            result: already.contains(one.serial) ? "already-there" : "imported", line: one.line,
            user: one.user.map { printable($0, limit: 255) },
            assumed: one.assumed.map(\.rawValue)))
      })
  }
}
