import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportImport
import SallyportSupport
import SallyportSystem

/// Puts tokens of a list into the inventory: all of them, or none.
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
    for token in try inventory() {
      there[token.serial] = token
      owners[try mark(token.authenticator.secret)] = token.serial
    }
    let now = try context.time()
    var (new, problems): ([Token], [TokenProblem]) = ([], [])
    for one in listed {
      let made = try token(one, at: now)
      let mark = try mark(one.secret)
      if let before = there[one.serial] {
        if !before.isSame(as: made) {
          problems.append(
            TokenProblem(line: one.line, "\(one.serial.text) is there, as another one"))
        }
      } else if let other = owners[mark] {
        problems.append(TokenProblem(line: one.line, "the secret is that of \(other.text)"))
      } else {
        owners[mark] = one.serial
        new.append(made)
      }
    }
    if !problems.isEmpty { throw TokenListError.problems(problems).command(for: file, context) }
    if !dryRun, !new.isEmpty { try add(new) }
    return TokenImportReport(
      listed: listed, already: Set(listed.map(\.serial)).intersection(there.keys), leftOut: leftOut,
      dryRun: dryRun)
  }

  /// Those that are there. Throws where one cannot be read.
  private func inventory() throws(CommandError) -> [Token] {
    var (tokens, trouble) = ([Token](), StoreTrouble?.none)
    try storing { () throws(StoreTrouble) in
      try store.eachToken { _, read in
        switch read {
        case .success(let token): tokens.append(token)
        case .failure(let error): trouble = trouble ?? error
        }
      }
    }
    if let trouble { throw .store(trouble) }
    return tokens
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

  private func add(_ tokens: [Token]) throws(CommandError) {
    let facts = [Act.Fact("tokens", "\(tokens.count)".utf8)]
    context.terminal.watchForInterruption()
    try recorder.record(.import, facts) { () throws(CommandError) in
      try storing { () throws(StoreTrouble) in try context.prepare(store) }
      for start in stride(from: 0, to: tokens.count, by: Store.batch) {
        if let interruption = context.terminal.interruption() {
          let fate = "stopped after \(start) of \(counted(tokens.count, "token"))"
          throw .stopped(interruption, "\(fate); run the same command again to continue")
        }
        let some = tokens[start..<min(start + Store.batch, tokens.count)]
        try storing { () throws(StoreTrouble) in try store.add(some) }
        if start + some.count < tokens.count { store.makeWay() }
      }
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

  private var new: Int { listed.count - already.count }

  func text(_ store: String?) -> String {
    let done = dryRun ? "would be imported" : "imported"
    var parts = ["\(counted(new, "token")) \(done)"]
    if !already.isEmpty { parts.append("\(already.count) there already") }
    if leftOut > 0 { parts.append("\(counted(leftOut, "line")) about something else") }
    if new == 0 { return parts.joined(separator: ", ") + "." }
    var lines = [parts.joined(separator: ", ") + ". Nobody has them yet."]
    let owned = listed.count { $0.user != nil }
    if owned > 0 {
      lines.append("The file says whose \(owned) of them are; that is not stored.")
    }
    let assign = Invocation(verb: "token", store: store).command("token assign", "SERIAL USER")
    return (lines + ["Next: \(assign)"]).joined(separator: "\n")
  }

  struct Facts: Encodable {
    struct One: Encodable {
      let serial, result: String
      let line: Int
      @OrNull var user: String?
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
            user: one.user.map { printable($0, limit: 255) }))
      })
  }
}
