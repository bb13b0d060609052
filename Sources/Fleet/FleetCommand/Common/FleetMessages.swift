import FleetProtocol
import FleetTransport
import Glibc
import SallyportAdministration
import SallyportCLI
import SallyportCore
import SallyportSupport

/// Why something about this host's fleet was not done.
enum FleetTrouble: Error, Equatable {
  /// `join` on a host of a fleet.
  case isHost(String)
  case isNoHost
  case file(FleetFileFault)
  case key(IdentityFault, path: String)
  /// A file cannot be written or removed.
  case system(path: String, errno: Int32)
  case token(JoinToken.Flaw)
  case noToken
  case refused(JoinAnswer.Refusal)
  case line(TransportFault, JoinRequest.Purpose)
  /// The verifier answered what is no answer, or that its database is away.
  case answer(isAway: Bool)
  /// Names of which nobody said whose they are.
  case unclear([FleetName])
  /// Of `--same`: not among those.
  case notAsked([String])
  /// Nobody could log in and become root without the fleet.
  case noBreakGlass(candidates: [String])
  /// The policy cannot be read, or says that the fleet judges.
  case policy(path: String, line: Int?)
  /// Who would be refused without the fleet.
  case lockedOut([String])
  /// Whose files are on their way to the fleet that is left, or back.
  case underWay([FleetMove])
  /// To `join`: the same, of a fleet that was left.
  case underWayElsewhere([FleetMove])
  /// Of this user; nil: of all.
  case move(MoveFault, String?)
  case pushStopped(Interruption, done: Int, of: Int)
  case notAllPushed(Int, of: Int)
  /// This host may not change people of the fleet, such as this one.
  case mayNotChange(String)
  /// No verifier can be asked about this user.
  case away(String)
  /// To enroll this user, who is enrolled there.
  case enrolled(String)
  /// What the fleet has of this user cannot be read, or not now.
  case unreadable(String)
  /// This user is enrolled by the files of this host alone.
  case taken(String, by: String)
  /// What is enrolled is another one by now.
  case changed
  /// Whether this user was changed is not known.
  case unsettled(String)
}

extension CommandError {
  static func fleet(_ trouble: FleetTrouble) -> CommandError {
    var cause = Cause.other
    if case .unsettled = trouble { cause = .unsettled }
    return CommandError(cause) { Message(trouble, at: $0) }
  }
}

/// A name that may mean one person here and another one in the fleet.
struct FleetName: Equatable {
  let name: String
  let isInFleet: Bool
  let isEnrolledHere: Bool

  var text: String {
    let shown = printable(name.utf8, limit: 64)
    switch (isInFleet, isEnrolledHere) {
    case (true, true): return "\(shown)      enrolled here, and in the fleet"
    case (true, false): return "\(shown)      an account here, and in the fleet"
    case (false, _): return "\(shown)      enrolled here"
    }
  }
}

private func names(_ moves: [FleetMove]) -> String {
  moves.prefix(8).map { printable($0.name.utf8, limit: 64) }.joined(separator: ", ")
    + (moves.count > 8 ? " and \(moves.count - 8) more" : "")
}

/// Somebody whose files are marked, and judge nobody.
struct FleetMove: Equatable {
  let name: String
  /// nil where it cannot be read.
  let mark: MoveMark?

  /// What to type.
  var hint: String {
    let user = shellQuoted(name)
    switch mark {
    case .push, .merge: return "sallyport fleet push --user \(user)"
    case .take: return "sallyport fleet take --user \(user)"
    case nil: return "sallyport unenroll \(user) --force      removes the files here"
    }
  }
}

extension Message {
  init(_ trouble: FleetTrouble, at invocation: Invocation) {
    switch trouble {
    case .isHost(let name):
      self.init(
        "this machine is a host of a fleet already: \(name)", .exists,
        hints: ["sallyport fleet status", "sallyport fleet leave      before it joins another one"])
    case .isNoHost:
      self.init(
        "this machine is no host of a fleet", .noInput,
        hints: ["sallyport-verifier invite NAME      on a verifier", "sallyport fleet join"])
    case .file(let fault):
      self.init(printable(fault.text.utf8, limit: 400), .configuration)
    case .key(let fault, let path):
      self.init(
        printable(fault.text(path).utf8, limit: 400), .configuration,
        hints: ["sallyport fleet leave      then join again, with a new invitation"])
    case .system(let path, let number):
      self.init(
        "\(printable(path.utf8, limit: 255)): \(errnoText(number))", .inputOutput,
        hints: [invocation.again(remark: "goes on")])
    case .token(let flaw): self.init(flaw)
    case .noToken:
      self.init(
        "no token was typed: nothing was changed", .refused,
        hints: ["sallyport-verifier invite NAME      on a verifier prints one"])
    case .refused(let refusal): self.init(refusal)
    case .line(let fault, let purpose): self.init(fault, purpose, invocation)
    case .answer(let isAway):
      self.init(
        isAway
          ? "the verifier's database does not answer: nothing was changed"
          : "the verifier's answer is none: is it of another version?", .busy,
        hints: [invocation.again(remark: "later: the token stays good")])
    case .unclear(let names): self.init(names)
    case .notAsked(let names):
      let shown = names.map { printable($0.utf8, limit: 64) }.joined(separator: ", ")
      self.init(
        "--same is not needed for \(shown): nothing was changed", .usage,
        hints: [invocation.command("list", remark: "shows who is enrolled here")])
    case .noBreakGlass(let candidates): self.init(candidates)
    case .policy(let path, let line):
      let file = printable(path.utf8, limit: 255)
      self.init(
        line.map {
          "\(file):\($0): verification = fleet: without the fleet nobody could log in who "
            + "is judged by it"
        } ?? "\(file): cannot be read, so that nobody knows who is judged by the fleet",
        .configuration, hints: ["sallyport config edit      and delete that line"])
    case .lockedOut(let names):
      let shown = names.prefix(8).map { printable($0.utf8, limit: 64) }.joined(separator: ", ")
      self.init(
        "would be refused here, since they are enrolled in the fleet alone: \(shown)"
          + (names.count > 8 ? " and \(names.count - 8) more" : ""), .refused,
        hints: [
          "sallyport enroll NAME", invocation.again("--force", remark: "leaves all the same"),
        ]
      )
    case .underWay(let moves):
      self.init(
        "on their way to the fleet or back, and judged by no file of this machine: "
          + names(moves) + "; nothing was changed", .refused,
        hints: moves.prefix(8).map(\.hint) + [
          invocation.again("--force", remark: "leaves all the same: then nobody judges them")
        ])
    case .underWayElsewhere(let moves):
      self.init(
        "stopped on their way to a fleet that this machine has left, or back: " + names(moves)
          + "; in another fleet they would be judged by the wrong one; nothing was changed",
        .refused,
        hints: [
          invocation.again("--same-fleet", remark: "where it is the same fleet: then go on"),
          "sallyport unenroll NAME --force      removes what is here of one of them",
        ])
    case .move(let fault, let user): self.init(fault, user, invocation)
    case .pushStopped(let interruption, let done, let all):
      self.init(
        "\(interruption == .endOfInput ? "end of input" : "interrupted"): \(done) of "
          + "\(counted(all, "user")) were looked at", .refused,
        hints: [invocation.again(remark: "goes on")])
    case .notAllPushed(let count, let all):
      self.init(
        "\(count) of \(counted(all, "user")) were not moved", .refused,
        hints: [invocation.again(remark: "goes on")])
    case .mayNotChange(let user):
      self.init(
        "\(printable(user.utf8, limit: 64)) is in the fleet, and this host may not change people "
          + "of it (enrolls = no); nothing was changed", .notPermitted,
        hints: [
          "sallyport-verifier invite NAME --enrolls      on a verifier, then leave and join again",
          "sallyport \(invocation.verb)      as the user himself, on a host that enrolls",
        ])
    case .away(let user):
      self.init(
        "\(printable(user.utf8, limit: 64)) is in the fleet, and no verifier can be asked; nothing "
          + "was changed", .busy, hints: ["sallyport fleet status"])
    case .enrolled(let user):
      let name = shellQuoted(user)
      self.init(
        "\(printable(user.utf8, limit: 64)) is enrolled in the fleet already", .exists,
        hints: ["sallyport add \(name)", "sallyport backup-codes \(name) --regenerate"])
    case .unreadable(let user):
      self.init(
        "the verifiers cannot tell what the fleet has of "
          + "\(printable(user.utf8, limit: 64)); nothing was changed", .inputOutput,
        hints: ["journalctl -u sallyport-verifier      on the verifiers says why"])
    case .taken(let user, let host):
      self.init(
        "\(printable(user.utf8, limit: 64)) is enrolled by the files of "
          + "\(printable(host.utf8, limit: 253)), which has taken him from the fleet; nothing was "
          + "changed", .noInput,
        hints: ["sallyport fleet push --user \(shellQuoted(user))      there moves him back"])
    case .unsettled(let user):
      let shown = printable(user.utf8, limit: 64)
      self.init(
        "it is not known whether \(shown) was changed in the fleet: no answer came", .busy,
        hints: [
          "sallyport status \(shellQuoted(user))      shows what is enrolled",
          Message.makesCodes(invocation)
            ? "sallyport backup-codes \(shellQuoted(user)) --regenerate      where nobody has seen "
              + "the new codes"
            : invocation.again(remark: "where it was not"),
        ])
    case .changed:
      self.init(
        "the enrollment was changed in the same moment; nothing was changed", .busy,
        hints: [invocation.again(remark: "tries once more")])
    }
  }

  private static func makesCodes(_ invocation: Invocation) -> Bool {
    ["enroll", "add", "backup-codes"].contains(invocation.verb)
  }

  private init(_ flaw: JoinToken.Flaw) {
    let hints = ["sallyport-verifier invite NAME      on a verifier prints a new one"]
    switch flaw {
    case .notAToken:
      self.init("that is no token: one begins with sallyport-", .badData, hints: hints)
    case .notWhole:
      self.init("a part of the token is missing or wrong: copy it again", .badData, hints: hints)
    case .otherForm:
      self.init(
        "the token is of a later version than this command: upgrade this machine first", .badData)
    case .crypto: self.init("libcrypto failed", .inputOutput)
    }
  }

  private init(_ refusal: JoinAnswer.Refusal) {
    let hints = ["sallyport-verifier invite NAME      on a verifier makes a new one"]
    switch refusal {
    case .unknownToken:
      self.init(
        "no invitation has this token: it was revoked, or a newer one was made for the host",
        .refused, hints: hints)
    case .usedToken:
      self.init(
        "another machine has used this token: if that was not you, revoke that host", .refused,
        hints: ["sallyport-verifier hosts      on a verifier shows when"] + hints)
    case .expiredToken:
      self.init("the token has expired: one is good for 24 hours", .refused, hints: hints)
    case .otherHost:
      self.init(
        "this machine's key is that of another host of the fleet", .refused,
        hints: ["sallyport fleet leave      makes a new key possible"] + hints)
    }
  }

  private init(_ fault: TransportFault, _ purpose: JoinRequest.Purpose, _ invocation: Invocation) {
    switch fault {
    case .away:
      self.init(
        "no verifier can be reached: nothing was changed", .busy,
        hints: [
          "ss -tn      and look whether a firewall stops port \(VerifierAddress.defaultPort)",
          invocation.again(remark: "the token stays good"),
          "sallyport-verifier invite NAME --verifier ADDRESS      on a verifier, if the token has "
            + "a wrong address",
        ])
    case .unknown where purpose == .join:
      self.init(
        "the verifier did not answer: whether this machine is a host now is not known", .busy,
        hints: [invocation.again(remark: "with the same token goes on")])
    case .unknown:
      self.init(
        "the verifier did not answer: nothing was changed", .busy,
        hints: [invocation.again(remark: "the token stays good")])
    case .unpinned:
      self.init(
        "at the token's addresses is another key than the verifiers': nothing was sent", .refused,
        hints: ["sallyport-verifier invite NAME      on a verifier: is the token of this fleet?"])
    case .revoked:
      self.init(
        "the verifiers do not know this host's key: it was revoked, or never joined", .refused,
        hints: ["sallyport fleet leave      then join again, with a new invitation"])
    }
  }

  private init(_ names: [FleetName]) {
    let known = names.map(\.name).filter { !$0.utf8.contains(0x2c) && !$0.utf8.contains(0x20) }
    let same = shellQuoted(known.prefix(20).joined(separator: ","))
    self.init(
      ([
        "\(counted(names.count, "name")) may mean one person here and another one in the fleet; "
          + "nothing was changed:"
      ] + names.map { "  \($0.text)" }).joined(separator: "\n"),
      .refused,
      hints: [
        "sallyport fleet join --same \(same)      those who are the same person",
        "sallyport config edit      a rule with match_user and verification = local for the others",
      ])
  }

  private init(_ candidates: [String]) {
    let who = candidates.prefix(5).map { printable($0.utf8, limit: 64) }.joined(separator: ", ")
    self.init(
      "nobody could log in and become root here while the fleet is away; nothing was changed",
      .refused,
      hints: [
        candidates.isEmpty
          ? "sallyport enroll root      an account with a password that can become root"
          : "sallyport enroll NAME      one of: \(who)",
        "sallyport config edit      [rule break-glass] match_user = NAME, verification = local",
        "sallyport fleet join --without-break-glass      if there is another way in",
      ])
  }
}
