import FleetProtocol
import FleetTransport
import SallyportCLI
import SallyportSupport

// Why `sallyport fleet join` did not make this machine a host.

extension CommandError {
  private static let invite = "sallyport-verifier invite NAME  # on a verifier"

  static let noToken = CommandError(
    .refused, "no token was typed: nothing was changed", hints: ["\(invite) prints one"])

  static func token(_ flaw: JoinToken.Flaw) -> CommandError {
    let hints = ["\(invite) prints a new one"]
    return switch flaw {
    case .notAToken: CommandError(.badData, "not a token (expected sallyport-...)", hints: hints)
    case .notWhole:
      CommandError(
        .badData, "a part of the token is missing or wrong: copy it again", hints: hints)
    case .otherForm:
      CommandError(
        .badData, "the token is of a later version than this command: upgrade this machine first")
    case .crypto: CommandError(.inputOutput, "libcrypto failed")
    }
  }

  static func refused(_ refusal: JoinAnswer.Refusal) -> CommandError {
    let hints = ["\(invite) makes a new one"]
    return switch refusal {
    case .unknownToken:
      CommandError(
        .refused,
        "no invitation has this token: it was revoked, or a newer one was made for the host",
        hints: hints)
    case .usedToken:
      CommandError(
        .refused, "another machine has used this token: if that was not you, revoke that host",
        hints: ["sallyport-verifier hosts  # on a verifier shows when"] + hints)
    case .expiredToken:
      CommandError(.refused, "the token has expired: one is good for 24 hours", hints: hints)
    case .otherHost:
      CommandError(
        .refused, "this machine's key is that of another host of the fleet",
        hints: ["sallyport fleet leave  # makes a new key possible"] + hints)
    }
  }

  static func verifiers(_ fault: TransportFault, _ purpose: JoinRequest.Purpose) -> CommandError {
    switch fault {
    case .away:
      CommandError {
        Message(
          "no verifier can be reached: nothing was changed", .busy,
          hints: [
            "ss -tn  # and look whether a firewall stops port \(VerifierAddress.defaultPort)",
            $0.again(remark: "the token stays good"),
            "sallyport-verifier invite NAME --verifier ADDRESS  # on a verifier, if the token "
              + "has a wrong address",
          ])
      }
    case .unknown:
      CommandError {
        let isJoin = purpose == .join
        return Message(
          "the verifier did not answer: "
            + (isJoin
              ? "whether this machine is a host now is not known" : "nothing was changed"),
          .busy,
          hints: [$0.again(remark: isJoin ? "with the same token goes on" : "the token stays good")]
        )
      }
    case .unpinned:
      CommandError(
        .refused,
        "the server at the token's address has an unexpected key: nothing was sent",
        hints: ["\(invite): is the token of this fleet?"])
    case .stranger, .unsealed:
      CommandError(
        .refused, "no verifier knows this host's key: nothing was changed",
        hints: [
          "sallyport-verifier hosts  # on each verifier: do they ask the same database?",
          "sallyport fleet leave --force  # then join again, with a new invitation",
        ])
    case .revoked:
      CommandError(
        .refused, "this host's key was revoked: nothing was changed",
        hints: [
          "sallyport fleet leave --force  # then join again, with a new key and a new invitation"
        ])
    }
  }

  /// The verifier answered what is no answer, or that its database is away.
  static func answer(isAway: Bool) -> CommandError {
    CommandError {
      Message(
        isAway
          ? "the verifier's database does not answer: nothing was changed"
          : "unrecognized answer from the verifier; check its version", .busy,
        hints: [$0.again(remark: "later: the token stays good")])
    }
  }

  /// Whose files are on their way to a fleet that was left, or back.
  static func underWayElsewhere(_ names: [String]) -> CommandError {
    CommandError {
      Message(
        "a move to or from a fleet that this machine has left is not finished: \(shown(names)); "
          + "another fleet might take them for somebody else; nothing was changed", .refused,
        hints: [
          $0.again("--same-fleet", remark: "if it is the same fleet; then go on"),
          "sallyport unenroll NAME --force  # for each of them: removes what is left here",
        ])
    }
  }

  /// Names of which nobody said whose they are.
  static func unclear(_ names: [FleetName]) -> CommandError {
    let known = names.map(\.name).filter { !$0.utf8.contains(0x2c) && !$0.utf8.contains(0x20) }
    let same = shellQuoted(known.prefix(20).joined(separator: ","))
    let head =
      "\(counted(names.count, "name")) may mean one person here and another one in the fleet; "
      + "nothing was changed:"
    return CommandError(
      .refused, ([head] + names.map { "  \($0.text)" }).joined(separator: "\n"),
      hints: [
        names.count > 1
          ? "sallyport fleet join --same all  # or --same \(same): those who are the same person"
          : "sallyport fleet join --same \(same)  # the same person",
        "sallyport config edit  # a rule with match_user and verification = local for the others",
      ])
  }

  /// Nobody could log in and become root without the fleet; `candidates` could once enrolled.
  static func noBreakGlass(_ candidates: [String]) -> CommandError {
    let who = candidates.prefix(5).map { shown($0) }.joined(separator: ", ")
    return CommandError(
      .refused,
      "nobody could log in and become root here while the fleet is away; nothing was changed",
      hints: [
        candidates.isEmpty
          ? "sallyport enroll root  # an account with a password that can become root"
          : "sallyport enroll NAME  # one of: \(who)",
        "sallyport config edit  # [rule break-glass] match_user = NAME, verification = local",
        "sallyport fleet join --without-break-glass  # if there is another way in",
      ])
  }
}
