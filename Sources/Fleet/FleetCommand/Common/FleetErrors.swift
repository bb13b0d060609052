import FleetProtocol
import FleetTransport
import Glibc
import SallyportCLI
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

// What several verbs of a host of a fleet throw.

extension CommandError {
  static let isNoHost = CommandError(
    .noInput, "this machine is no host of a fleet",
    hints: ["sallyport-verifier invite NAME  # on a verifier", "sallyport fleet join"])

  static func key(_ fault: PrivateFile.Fault, path: String) -> CommandError {
    let text = fault == .damaged ? "damaged, or not an Ed25519 key (PEM, PKCS #8)" : fault.text
    return CommandError(
      .configuration, printable("\(path): \(text)".utf8, limit: 400),
      hints: ["sallyport fleet leave --force  # then join again, with a new invitation"])
  }

  /// Of the keys with which this host seals what it asks.
  static func seal(_ fault: PrivateFile.Fault, path: String) -> CommandError {
    CommandError(
      .configuration, printable("\(path): \(fault.text)".utf8, limit: 400),
      hints: ["sallyport fleet leave --force  # then join again, with a new invitation"])
  }

  /// `user`: nil where it is about all.
  static func move(_ fault: MoveFault, _ user: String?) -> CommandError {
    CommandError { fault.message(of: user, at: $0) }
  }

  // MARK: about one user

  /// This host may not change people of the fleet.
  static func mayNotChange(_ user: String, _ missing: MissingRight) -> CommandError {
    CommandError {
      Message(
        "\(shown(user)) is in the fleet, and this host \(missing.text) there; nothing was changed",
        .notPermitted,
        hints: [missing.hint, "sudo \($0.again(remark: "on a host that has it"))"])
    }
  }

  /// No verifier can be asked.
  static func away(_ user: String) -> CommandError {
    CommandError(
      .busy,
      "\(shown(user)) is in the fleet, and no verifier can be asked; nothing was changed",
      hints: ["sallyport fleet status"])
  }

  static let blockedInFleet = CommandError {
    Message(
      "\($0.who) is blocked in the fleet: nothing new is enrolled", .refused,
      hints: [$0.command("block", "--undo", remark: "lifts it")])
  }

  /// To enroll somebody who is enrolled there.
  static func enrolled(_ user: String) -> CommandError {
    let name = shellQuoted(user)
    return CommandError(
      .exists, "\(shown(user)) is enrolled in the fleet already",
      hints: ["sallyport add \(name)", "sallyport backup-codes \(name) --regenerate"])
  }

  /// Or not now.
  static func unreadable(_ user: String) -> CommandError {
    CommandError(
      .inputOutput,
      "the verifiers cannot tell what the fleet has of \(shown(user)); nothing was changed",
      hints: ["journalctl -u sallyport-verifier  # on the verifiers says why"])
  }

  /// The files of that host verify the codes, and no verifier does.
  static func taken(_ user: String, by host: String) -> CommandError {
    CommandError(
      .noInput,
      "\(shown(user)) is enrolled by the files of \(printable(host.utf8, limit: 253)), which has "
        + "taken him from the fleet; nothing was changed",
      hints: ["sallyport fleet push --user \(shellQuoted(user))  # there moves him back"])
  }

  /// What is enrolled is another one by now.
  static let changed = CommandError {
    Message(
      "the enrollment was changed in the same moment; nothing was changed", .busy,
      hints: [$0.again(remark: "tries once more")])
  }

  /// No answer came.
  static func unsettled(_ user: String) -> CommandError {
    CommandError(.unsettled) {
      let makesCodes = ["enroll", "add", "backup-codes"].contains($0.verb)
      let name = shellQuoted(user)
      return Message(
        "it is not known whether \(shown(user)) was changed in the fleet: no answer came", .busy,
        hints: [
          "sallyport status \(name)  # shows what is enrolled",
          makesCodes
            ? "sallyport backup-codes \(name) --regenerate  # if nobody has seen the new codes"
            : $0.again(remark: "if it was not changed"),
        ])
    }
  }
}

/// A name for a message.
func shown(_ name: String) -> String { printable(name.utf8, limit: 64) }

/// The same of several, at most the first eight.
func shown(_ names: [String]) -> String { listed(names.map(shown), 8) }
