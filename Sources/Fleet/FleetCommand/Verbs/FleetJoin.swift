import ArgumentParser
import FleetProtocol
import FleetTransport
import OneTimePassword
import SallyportAdministration
import SallyportCLI
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

/// `sallyport fleet join`
struct FleetJoin: Verb {
  static let configuration = CommandConfiguration(
    commandName: "join", abstract: "Make this machine a host of a fleet.",
    discussion: """
      The token is what `sallyport-verifier invite` prints on a verifier. It is read from the \
      terminal, or from standard input.
      """)

  @OptionGroup var shared: StoreOptions

  @Option(
    help: ArgumentHelp(
      "These names, or all, mean the same person here and in the fleet.", valueName: "a,b|all"))
  var same: String?

  @Flag(help: "Join although nobody could become root here while the fleet is away.")
  var withoutBreakGlass = false

  @Flag(help: "It is the fleet that this machine has left: continue unfinished moves.")
  var sameFleet = false

  @OptionGroup var policy: PolicyOptions

  private static let patience: UInt64 = 8000

  private struct Answer: Encodable {
    let host: String
    let enrolls: Bool
    let verifiers: [String]
    /// Who can become root here while the fleet is away.
    let breakGlass: [String]
  }

  func invocation(in context: Context) -> Invocation {
    Invocation(verb: "fleet join", store: shared.store)
  }

  func run(in context: Context) throws(CommandError) {
    let place = try context.placeForRoot()
    if let file = try place.membership() {
      throw CommandError(
        .exists, "this machine is a host of a fleet already: \(file.host)",
        hints: [
          "sallyport fleet status", "sallyport fleet leave  # before it joins another one",
        ])
    }
    let people = HostAccounts(
      store: try context.store(shared), conf: policy.conf, context: context)
    if !sameFleet {
      let moves = try people.underWay()
      if !moves.isEmpty { throw .underWayElsewhere(moves.map(\.name)) }
    }
    let breakGlass = try breakGlass(people, context)
    let output = context.output(shared)
    let token = try token(output, context.terminal)
    let (identity, pem) = try self.identity(place)
    let verifiers = place.asking(try file(of: token), identity, nil)
    try settle(people, by: verifiers, token)
    let file = try context.recorder(shared).record(.fleetJoin) { () throws(CommandError) in
      if let pem { try place.writeKey(pem) }
      // By what was left of another join nothing else would be believed.
      try place.removeSeal()
      let welcome = try ask(JoinRequest(.join, token.secret), verifiers)
      let file = try membership(welcome, token)
      // Where they cannot be had, or written, the service does both.
      if let keys = verifiers.fetchKeys() { _ = place.write(keys, of: identity.pin) }
      try place.write(file)
      return file
    }
    let left = place.tellService(context.machine)
    output.answer(
      Answer(
        host: file.host, enrolls: file.enrolls, verifiers: file.verifiers.map(\.text),
        breakGlass: breakGlass),
      text(file, left, breakGlass))
  }

  private func text(_ file: FleetFile, _ left: String?, _ breakGlass: [String]) -> String {
    let right = file.enrolls ? ", and has rights beside asking: sallyport fleet status" : ""
    let steps =
      [left.map { "  \($0)" }].compactMap { $0 } + [
        "  sallyport fleet status",
        "  sallyport config edit  # verification = fleet, in "
          + "[default] or in a rule", "  sallyport doctor",
      ]
    let away = breakGlass.map { printable($0.utf8, limit: 64) }.joined(separator: ", ")
    let places = file.verifiers.map(\.text).joined(separator: ", ")
    return
      (["This machine is the host \(file.host) of the fleet\(right).", "Verifiers: \(places)."]
      + (away.isEmpty ? [] : ["While the fleet is away, these can become root: \(away)."])
      + ["The fleet verifies nobody's codes yet. Next:"] + steps).joined(separator: "\n")
  }

  // MARK: before

  /// Those who can log in and become root without the fleet. Throws where there is nobody.
  private func breakGlass(_ people: HostAccounts, _ context: Context) throws(CommandError)
    -> [String]
  {
    let candidates = BreakGlass.candidates(on: context.machine)
    let found = try people.breakGlass(among: candidates)
    guard found.isEmpty, !withoutBreakGlass else { return found }
    throw .noBreakGlass(candidates)
  }

  private func token(_ output: Output, _ terminal: any Terminal) throws(CommandError) -> JoinToken {
    let typed: Secret
    do throws(Interruption) {
      typed = try output.ask("Token: ", echo: false)
    } catch {
      guard error == .endOfInput else { throw .stopped(error, .nothingChanged) }
      throw .noToken
    }
    if typed.count == 0 { throw .noToken }
    return try rethrow(
      { () throws(JoinToken.Flaw) in try JoinToken.read(typed) }, as: CommandError.token)
  }

  /// The key, and its text where it is a new one. One that is there is of a join that was
  /// interrupted, by which the token may have been used.
  private func identity(_ place: FleetEnvironment) throws(CommandError) -> (Identity, Secret?) {
    if let identity = try place.identity() { return (identity, nil) }
    return try rethrow(
      { () throws(PrivateFile.Fault) in
        let pem = try Identity.newKey()
        return (try Identity(pem: pem), pem)
      }, as: { CommandError.key($0, path: place.key) })
  }

  /// Where the token says.
  private func file(of token: JoinToken) throws(CommandError) -> FleetFile {
    let addresses = token.verifiers.map { String(decoding: $0, as: UTF8.self) }
    let verifiers = addresses.compactMap { VerifierAddress($0) }
    guard verifiers.count == addresses.count, let pin = Pin(token.pin) else {
      throw .token(.notWhole)
    }
    return FleetFile(host: "unknown", enrolls: false, verifiers: verifiers, pins: [pin])
  }

  /// What the verifiers say where they are, or where the token does.
  private func membership(_ welcome: JoinAnswer.Welcome, _ token: JoinToken) throws(CommandError)
    -> FleetFile
  {
    let told = welcome.verifiers.compactMap { VerifierAddress(String(decoding: $0, as: UTF8.self)) }
    let pins = welcome.pins.compactMap { Pin($0) }
    var unique: [VerifierAddress] = []
    for address in told.isEmpty ? try file(of: token).verifiers : told
    where !unique.contains(address) { unique.append(address) }
    guard !pins.isEmpty, Set(pins).count == pins.count else {
      throw .answer(isAway: false)
    }
    return FleetFile(
      host: welcome.host.text, enrolls: welcome.enrolls, verifiers: unique, pins: pins)
  }

  // MARK: asking

  private func ask(_ request: JoinRequest, _ verifiers: any FleetVerifiers) throws(CommandError)
    -> JoinAnswer.Welcome
  {
    guard let body = request.encoded() else { throw .store(.outOfMemory) }
    let answer = try rethrow(
      { () throws(TransportFault) in
        try verifiers.ask(.join, body, within: FleetJoin.patience)
      }, as: { CommandError.verifiers($0, request.purpose) })
    guard answer.answers(.join), let told = JoinAnswer.decode(answer.body) else {
      throw .answer(isAway: answer == .databaseAway)
    }
    switch told {
    case .welcome(let welcome): return welcome
    case .refused(let refusal): throw .refused(refusal)
    case .trouble: throw .answer(isAway: true)
    }
  }

  /// Throws where a name may mean two people, and nobody said that they are one.
  private func settle(_ people: HostAccounts, by verifiers: any FleetVerifiers, _ token: JoinToken)
    throws(CommandError)
  {
    let (names, mayLackPeople) = try accountNames(on: people.context.machine)
    if mayLackPeople {
      people.context.output(shared).warn(
        "not compared with the fleet: people \(AccountBook.unlisted)")
    }
    var known: [UserName] = []
    var rest = names[...]
    repeat {
      let some = Array(rest.prefix(JoinRequest.mostNames))
      rest = rest.dropFirst(some.count)
      known += try ask(JoinRequest(.look, token.secret, names: some), verifiers).known
    } while !rest.isEmpty
    let unclear = try people.unclear(known)
    if same == "all" {
      let names = unclear.map { shown($0.name) }.joined(separator: ", ")
      if !names.isEmpty { people.context.output(shared).say("The same here and there: \(names).") }
      return
    }
    let typed = same?.split(whereSeparator: { $0 == "," || $0 == " " }).map(String.init) ?? []
    // As bytes: names that are equal to Unicode need not be one account.
    let strange = typed.filter { name in
      !unclear.contains { $0.name.utf8.elementsEqual(name.utf8) }
    }
    if !strange.isEmpty {
      let names = strange.map { shown($0) }.joined(separator: ", ")
      throw CommandError {
        Message(
          "--same is not needed for \(names): nothing was changed", .usage,
          hints: [$0.command("list", remark: "shows who is enrolled here")])
      }
    }
    let left = unclear.filter { one in
      !typed.contains { $0.utf8.elementsEqual(one.name.utf8) }
    }
    if !left.isEmpty { throw .unclear(left) }
  }
}
