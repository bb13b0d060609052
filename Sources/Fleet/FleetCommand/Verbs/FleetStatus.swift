import ArgumentParser
import FleetProtocol
import FleetTransport
import OneTimePassword
import SallyportCLI
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

/// `sallyport fleet status`
struct FleetStatus: Verb {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "Ask each verifier whether it answers this host.")

  @OptionGroup var shared: StoreOptions

  private static let patience: UInt64 = 3000

  func invocation(in context: Context) -> Invocation {
    Invocation(verb: "fleet status", store: shared.store)
  }

  func run(in context: Context) throws(CommandError) {
    _ = try status(in: context)
  }

  /// 0 where a verifier can verify codes for this host.
  func status(in context: Context) throws(CommandError) -> Int32 {
    let place = try context.placeForRoot()
    let (file, identity) = try place.host()
    var report = FleetStatus.report(file, identity, of: place, try context.time())
    if report.canVerify { report.rights = place.rights() }
    context.output(shared).answer(report.facts, report.text)
    return report.canVerify ? Sysexit.done.rawValue : Sysexit.busy.rawValue
  }

  /// Asks each of them.
  static func report(
    _ file: FleetFile, _ identity: Identity, of place: FleetEnvironment, _ now: UnixTime
  ) -> FleetReport {
    let answers = file.verifiers.map { address in
      var one = file
      one.verifiers = [address]
      return VerifierState(address, ask(place.verifiers(one, identity)))
    }
    let known = answers.compactMap(\.status)
    return FleetReport(file: file, states: answers, peers: known.first?.peers ?? [], now: now)
  }

  private static func ask(_ verifiers: any FleetVerifiers) -> Result<
    FleetStatusAnswer, VerifierFault
  > {
    guard let body = Secret(count: 0) else { return .failure(.strange) }
    do throws(TransportFault) {
      let answer = try verifiers.ask(.status, body, within: patience)
      if answer == .databaseAway { return .failure(.database) }
      guard answer.answers(.status), let status = FleetStatusAnswer.decode(answer.body) else {
        return .failure(.strange)
      }
      return .success(status)
    } catch {
      return .failure(.transport(error))
    }
  }
}

/// Why a verifier does not say how it is.
enum VerifierFault: Error, Equatable {
  case transport(TransportFault)
  case database
  case strange

  var word: String {
    switch self {
    case .transport(.away): "away"
    case .transport(.unknown): "silent"
    case .transport(.unpinned): "wrong-key"
    case .transport(.stranger): "unknown"
    case .transport(.revoked): "revoked"
    case .transport(.unsealed): "other-seal"
    case .database: "database-away"
    case .strange: "other-version"
    }
  }

  /// What it means.
  var text: String {
    switch self {
    case .transport(.away): "cannot be reached"
    case .transport(.unknown): "accepts questions and does not answer: see its log"
    case .transport(.unpinned): "has an unexpected key: nothing is sent to it"
    case .transport(.stranger):
      "does not know this host's key: is its database the fleet's? (on that verifier: "
        + "sallyport-verifier hosts)"
    case .transport(.revoked): "this host was revoked: leave, then join again"
    case .transport(.unsealed):
      "does not have the keys of \(HostSeal.path): \(HostSeal.mended)"
    case .database: "answers, but its database does not: it refuses all logins"
    case .strange: "unrecognized answer: upgrade the older side"
    }
  }
}

/// One verifier, and what it said.
struct VerifierState {
  let address: VerifierAddress
  let answer: Result<FleetStatusAnswer, VerifierFault>

  init(_ address: VerifierAddress, _ answer: Result<FleetStatusAnswer, VerifierFault>) {
    (self.address, self.answer) = (address, answer)
  }

  var status: FleetStatusAnswer? { try? answer.get() }
  var verifies: Bool { status?.awaySince == nil && status != nil }

  /// As doctor has it.
  var outcome: FleetFacts.Answer {
    switch answer {
    case .success: verifies ? .verifies : .away
    case .failure(.transport(.unpinned)), .failure(.transport(.unsealed)): .foreign
    case .failure(.transport(.stranger)): .stranger
    case .failure(.transport(.revoked)): .revoked
    case .failure: .away
    }
  }
}

/// What `fleet status` tells.
struct FleetReport {
  let file: FleetFile
  let states: [VerifierState]
  /// What the fleet's database knows of its verifiers.
  let peers: [FleetStatusAnswer.Peer]
  let now: UnixTime
  /// What this host may do; nil where no verifier has said it.
  var rights: ToldRights?

  /// Seconds: what a code may be off without being refused, and less.
  private static let clockLimit: Int64 = 5

  /// Whether one of them can verify codes.
  var canVerify: Bool { states.contains { $0.verifies } }

  /// Whether the verifiers give it no right, and its file says that it has some.
  private var rests: Bool {
    let known = states.compactMap(\.status)
    return file.enrolls && !known.isEmpty && known.allSatisfy { !$0.enrolls }
  }

  // MARK: for people

  var text: String {
    let right = rests ? ", without the rights it joined with (sallyport-verifier hosts)" : ""
    let rows = states.map { state in
      [
        state.address.text, state.status?.verifier.text ?? name(of: state.address) ?? "",
        say(state),
      ]
    }
    var lines = ["Host \(file.host)\(right)"] + (rights.map { ["Rights:"] + $0.lines } ?? [])
    lines += table([["VERIFIER", "NAME", "STATE"]] + rows)
    if let rights, rights.isClosed { lines.append("Closed: " + rights.closing) }
    return (lines + [verdict]).joined(separator: "\n")
  }

  private var verdict: String {
    let able = states.count { $0.verifies }
    if able == states.count { return "All of them verify codes." }
    if able > 0 {
      return "\(able) of \(states.count) verify codes: logins work, without a spare for the "
        + "others."
    }
    return "None of them verifies codes: only backup codes work here, of users who logged in "
      + "before (sallyport-fleet(1), AWAY)."
  }

  func say(_ state: VerifierState) -> String {
    switch state.answer {
    case .success(let status):
      let since = "since \(shown(status.started))"
      let off = status.now.seconds - now.seconds
      let clock =
        abs(off) > FleetReport.clockLimit
        ? "; this host's clock is \(abs(off)) s \(off > 0 ? "behind" : "ahead")" : ""
      if status.awaySince != nil {
        return "up \(since), but it refuses all logins: its database is away, or has another time "
          + "(see its log)\(clock)"
      }
      return "verifies codes, up \(since)\(clock)"
    case .failure(let fault):
      let seen = peer(state.address)?.seen.map { "; last seen \(shown($0))" } ?? ""
      return fault.text + seen
    }
  }

  private func peer(_ address: VerifierAddress) -> FleetStatusAnswer.Peer? {
    peers.first { $0.address == Array(address.text.utf8) }
  }

  private func name(of address: VerifierAddress) -> String? { peer(address)?.name.text }

  private func shown(_ time: UnixTime) -> String { fact(time) ?? "\(time.seconds)" }

  // MARK: for programs

  struct Facts: Encodable {
    let host: String
    let enrolls: Bool
    /// By right, how often in a day; null where no verifier has said it.
    @OrNull var rights: [String: UInt32]?
    /// Whether codes are accepted only from known places; null where no verifier has said it.
    @OrNull var closed: Bool?
    /// Whether a verifier can verify codes for this host.
    let canVerify: Bool
    let verifiers: [Verifier]
  }

  struct Verifier: Encodable {
    let address: String
    @OrNull var name: String?
    let verifies: Bool
    /// null: none.
    @OrNull var problem: String?
    @OrNull var started: String?
    @OrNull var databaseAwaySince: String?
    @OrNull var lastAtWork: String?
    /// How far its clock is ahead of this host's.
    @OrNull var clockOffset: Int64?
  }

  var facts: Facts {
    Facts(
      host: file.host, enrolls: file.enrolls && !rests, rights: rights?.daily,
      closed: rights?.isClosed, canVerify: canVerify,
      verifiers: states.map { state in
        let status = state.status
        var problem: String?
        if case .failure(let fault) = state.answer { problem = fault.word }
        if status?.awaySince != nil { problem = VerifierFault.database.word }
        return Verifier(
          address: state.address.text, name: status?.verifier.text ?? name(of: state.address),
          verifies: state.verifies, problem: problem, started: status.flatMap { fact($0.started) },
          databaseAwaySince: status?.awaySince.flatMap { fact($0) },
          lastAtWork: peer(state.address)?.seen.flatMap { fact($0) },
          clockOffset: status.map { $0.now.seconds - now.seconds })
      })
  }
}
