import FleetProtocol
import FleetTransport
import SallyportAdministration
import SallyportCLI
import SallyportCore
import SallyportSupport
import SallyportSystem

/// Why somebody was not moved to the fleet, or back.
struct MoveFault: Error {
  /// What some callers handle.
  enum Cause {
    /// No verifier can be asked, or its database cannot: nothing was done.
    case away
    /// The verifier may have done it.
    case unknown
    /// It is as root has said: no failure.
    case wanted
    case other
  }

  let cause: Cause
  /// What became of one, in a list.
  let text: String
  private let status: Sysexit
  /// What is said after it where it ends the command.
  private var ending = ""
  /// Whether the next one would not be moved either.
  private(set) var isOfAll = false
  private var hints: @Sendable (Invocation) -> [String] = { _ in [] }

  /// Where it ends the command. `user`: nil where it is about all.
  func message(of user: String?, at invocation: Invocation) -> Message {
    let subject = user.map { "\(shown($0)): " } ?? ""
    return Message(subject + text + ending, status, hints: hints(invocation))
  }
}

extension MoveFault {
  private init(
    _ status: Sysexit, _ text: String, _ ending: String = "", cause: Cause = .other,
    hints: @escaping @Sendable (Invocation) -> [String] = { _ in [] }
  ) {
    (self.status, self.text, self.ending) = (status, text, ending)
    (self.cause, self.hints) = (cause, hints)
  }

  private var ofAll: MoveFault {
    var fault = self
    fault.isOfAll = true
    return fault
  }

  private static func again(_ text: String, _ cause: Cause = .other) -> MoveFault {
    MoveFault(.busy, text, cause: cause) { [$0.again(remark: "goes on")] }
  }

  private static let unchanged = "; nothing was changed"

  static func store(_ trouble: StoreTrouble) -> MoveFault {
    let message = Message(trouble, at: Invocation(verb: "fleet push"))
    return MoveFault(message.status, message.text) { Message(trouble, at: $0).hints }
  }

  static let notEnrolled = MoveFault(.refused, "not enrolled here")

  /// The name of what is stored is another spelling of this account's.
  static func otherSpelling(of own: String) -> MoveFault {
    MoveFault(
      .refused,
      "is another spelling of the account \(own): sallyport unenroll --uid removes what is stored")
  }

  static let noAccount = MoveFault(
    .noUser, "has no account here: only people with an account can be moved")

  // MARK: to the fleet

  /// In some login or in all.
  static let keptByPolicy = MoveFault(
    .configuration, "the policy has this machine's files verify his codes (verification = local)",
    unchanged, cause: .wanted
  ) { _ in ["sallyport config edit  # verification = fleet, in [default] or in a rule"] }

  static let lastBreakGlass = MoveFault(
    .refused, "nobody else could become root here while the fleet is away", unchanged,
    cause: .wanted
  ) { _ in
    [
      "sallyport enroll NAME  # another account that can become root",
      "sallyport config edit  # [rule break-glass] match_user = NAME, verification = local",
    ]
  }

  static let replacedByPass = MoveFault(
    .refused,
    "has a pass that enrolls, or enrolled by one within seven days: what sallyport restore brings "
      + "back cannot be moved", unchanged
  ) {
    [
      $0.command("pass --revoke", remark: "ends the pass"),
      $0.command("status", remark: "shows until when it can be restored"),
    ]
  }

  static let otherEnrollment = MoveFault(
    .refused, "the fleet has this name, enrolled with other secrets", unchanged
  ) {
    [
      "sallyport config edit  # verification = local, if it is another person",
      $0.again("--keep-fleet", remark: "if it is the same person: keeps what the fleet has"),
    ]
  }

  /// Where it went, a later push does not know.
  static let gone = MoveFault(
    .refused, "was in the fleet, and is not any more: he was removed there, or taken elsewhere"
  ) { [$0.command("unenroll --force", remark: "removes what is left here")] }

  /// Files that are under way from the fleet, not to it.
  static let beingTaken = MoveFault(
    .refused, "is being taken back from the fleet: sallyport fleet take goes on")

  /// On other hosts he would not be.
  static let blockedHere = MoveFault(
    .refused, "is blocked on this machine, and the fleet would not know of it", unchanged
  ) {
    [
      $0.command(
        "block --undo --store \(Store.usualRoot)", remark: "then push, then block on all hosts")
    ]
  }

  // MARK: from the fleet

  /// Taken back he would be refused, in some login or in all.
  static let isTheFleets = MoveFault(
    .configuration, "the policy has the fleet verify his codes (verification = fleet)",
    ", and the fleet does not know people who were taken back" + unchanged
  ) { _ in ["sallyport config edit  # verification = local, in [default] or in a rule"] }

  /// Files that are under way to the fleet, not from it.
  static let isPushed = MoveFault(
    .refused, "is on the way to the fleet: sallyport fleet push goes on")

  static let isHere = MoveFault(.exists, "enrolled here already", unchanged)

  static let notInFleet = MoveFault(.refused, "not enrolled in the fleet")

  /// Taken back he would be blocked no more.
  static let blocked = MoveFault(.refused, "is blocked in the fleet", unchanged) {
    [$0.command("block --undo", remark: "lifts it; once taken, block him here with --store")]
  }

  static func usedElsewhere(_ hosts: [String]) -> MoveFault {
    let names = hosts.map { printable($0.utf8, limit: 253) }.joined(separator: ", ")
    return MoveFault(
      .refused, "logged in within 30 days on \(names)", ": these hosts would refuse him" + unchanged
    ) { [$0.again("--force", remark: "takes all the same")] }
  }

  /// After a loss nobody is taken for a while.
  static let held = again(
    "the fleet has lost what was saved, and accepts no backup code for a quarter of an hour"
  ).ofAll

  /// Of an earlier take: the fleet has ended his enrollment since, or enrolled him again.
  static let takenOtherwise = MoveFault(
    .refused, "the fleet no longer has what was copied here",
    ": somebody removed it there, or enrolled him again, after the copy was made"
  ) { [$0.command("unenroll --force", remark: "removes the copy")] }

  // MARK: the answer

  static let changed = again("the fleet changed in the same moment")

  static func notAllowed(_ missing: MissingRight) -> MoveFault {
    MoveFault(.refused, "this host \(missing.text) in the fleet", unchanged) {
      [missing.hint, $0.again(remark: "goes on")]
    }.ofAll
  }

  static func transport(_ fault: TransportFault) -> MoveFault {
    switch fault {
    case .away: again("no verifier can be reached", .away).ofAll
    case .unknown: again("the verifier did not answer").ofAll
    case .unpinned:
      MoveFault(
        .refused, "the server at the verifiers' addresses has an unexpected key", unchanged
      ).ofAll
    case .stranger:
      MoveFault(.refused, "no verifier knows this host's key", unchanged) { _ in
        ["sallyport fleet status"]
      }.ofAll
    case .revoked: MoveFault(.refused, "this host was revoked", unchanged).ofAll
    case .unsealed:
      MoveFault(.refused, "no verifier has the keys of this host's seal", unchanged) { _ in
        ["sallyport fleet status"]
      }.ofAll
    }
  }

  static let databaseAway = again("the verifier's database does not answer", .away).ofAll

  /// A verifier that does not know what was asked, or must not write what an older one cannot read.
  static let notServed = MoveFault(
    .refused, "the verifier is of an older version, or others are: upgrade them all", unchanged
  ) { _ in
    ["sallyport-verifier migrate --finish  # on a verifier, once all are upgraded"]
  }.ofAll

  /// He is asked and refused until it is known.
  static let unknown = again(
    "it is not known whether the fleet has the enrollment: logins are refused until it is", .unknown
  ).ofAll
}

/// A question that changes nothing: where no answer came, nothing was done.
func looking<Value>(_ body: () throws(MoveFault) -> Value) throws(MoveFault) -> Value {
  try rethrow(body, as: { $0.cause == .unknown ? .transport(.unknown) : $0 })
}

/// What the store throws, as why somebody was not moved.
func keeping<Value>(_ body: () throws(StoreTrouble) -> Value) throws(MoveFault) -> Value {
  try rethrow(body, as: MoveFault.store)
}

extension Store {
  /// As `moving`; nil also where there is no store.
  func moved<Value>(_ account: Account, _ body: (MovingUser) throws(MoveFault) -> Value)
    throws(MoveFault) -> Value?
  {
    let done: Result<Value, MoveFault>?
    do throws(StoreTrouble) {
      done = try moving(account) { user in
        Result { () throws(MoveFault) in try body(user) }
      }
    } catch {
      if case .noStore = error { return nil }
      throw .store(error)
    }
    return try done?.get()
  }
}
