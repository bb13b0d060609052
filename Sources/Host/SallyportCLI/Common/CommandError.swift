import Glibc
import OneTimePassword
package import PAMStack
import SallyportAdministration
import SallyportCore
import SallyportDoctor
package import SallyportSupport
package import SallyportSystem

/// Why a verb failed: what is said, made where it is thrown, and what a caller may go on by.
package struct CommandError: Error {
  /// What some callers handle.
  package enum Cause {
    case store(StoreTrouble)
    case stack(StackRefusal.Cause)
    /// The code was checked and refused.
    case code(CodeRefused)
    case notRoot, noSuchUser, notEnrolled
    /// Of a helpdesk that is not there, or not his.
    case notHelper
    /// The signal that ended it.
    case signal(Int32)
    /// It may have been done all the same, so that a handout may be all that anybody has of what is
    /// enrolled.
    case unsettled
    /// Whether somebody still has a token cannot be known.
    case holderUnknown
    case other
  }

  package let cause: Cause
  /// For the command that was typed.
  package let message: @Sendable (Invocation) -> Message

  package init(
    _ cause: Cause = .other, _ message: @escaping @Sendable (Invocation) -> Message
  ) {
    (self.cause, self.message) = (cause, message)
  }

  package init(_ status: Sysexit, _ text: String, hints: [String] = []) {
    self.init { _ in Message(text, status, hints: hints) }
  }

  var isHolderUnknown: Bool { if case .holderUnknown = cause { true } else { false } }
  var isUnsettled: Bool { if case .unsettled = cause { true } else { false } }

  /// Nothing is enrolled for the user, or there is none.
  var isAbsence: Bool { isNotEnrolled || isNoSuchUser }
  var isNotEnrolled: Bool { if case .notEnrolled = cause { true } else { false } }
  var isNoSuchUser: Bool { if case .noSuchUser = cause { true } else { false } }
}

// MARK: - What several verbs throw

extension CommandError {
  /// Only root may use this store.
  package static let notRoot = CommandError(.notRoot) {
    Message("only root can run sallyport \($0.verb)", .notPermitted, hints: ["sudo \($0.again())"])
  }

  package static func store(_ trouble: StoreTrouble) -> CommandError {
    CommandError(.store(trouble)) { Message(trouble, at: $0) }
  }

  /// Of a note (`UserNote`): damage to one is fixed differently from damage to an enrollment.
  init(note trouble: StoreTrouble) {
    guard trouble.isBrokenEnrollment else {
      self = .store(trouble)
      return
    }
    self.init {
      let fix = "rm \(shellQuoted(trouble.path))  # then run sallyport require or exempt again"
      return Message(Message(trouble, at: $0).text, .badData, hints: [fix])
    }
  }

  /// A service's PAM stacks were not changed.
  static func stack(_ refusal: StackRefusal) -> CommandError {
    CommandError(.stack(refusal.cause)) { _ in refusal.message }
  }

  package static let noSuchUser = CommandError(.noSuchUser) {
    Message("there is no user \($0.who)", .noUser, hints: ["getent passwd"])
  }

  /// `list`: what names those who have it, where there is no account to ask about.
  static func nothingToUndo(
    of account: Account, _ what: String, list: String, _ remark: String
  ) -> CommandError {
    CommandError {
      let hint =
        account.uid == nil
        ? Invocation(verb: $0.verb, user: nil, store: $0.store).command(list, remark: remark)
        : $0.command("status", remark: "shows it")
      return Message("nothing to undo: \($0.who) \(what)", .noInput, hints: [hint])
    }
  }

  package static let notEnrolled = CommandError(.notEnrolled) {
    Message("\($0.who) is not enrolled", .noInput, hints: [$0.command("enroll")])
  }

  static let blocked = CommandError {
    Message(
      "\($0.who) is blocked: no code is accepted", .refused,
      hints: [$0.command("block", "--undo", remark: "lifts it")])
  }

  static func enrolledAlready(authenticators count: Int) -> CommandError {
    CommandError {
      Message(
        "\($0.who) is already enrolled (\(counted(count, "authenticator")))", .exists,
        hints: [
          $0.command("status", remark: "shows it"), $0.command("add", remark: "adds another one"),
          $0.again("--force", remark: "replaces everything"),
        ])
    }
  }

  /// Somebody else enrolled the user since the verb began. `isCodeShown`: of an authenticator that
  /// is not stored.
  package static func enrolledMeanwhile(isCodeShown: Bool) -> CommandError {
    CommandError {
      Message(
        "\($0.who) was enrolled by somebody else meanwhile"
          + (isCodeShown ? "; the QR code above is void" : ""), .exists,
        hints: [
          $0.command("status", remark: "shows it"),
          $0.again("--force", remark: "replaces everything"),
        ])
    }
  }

  static let noAuthenticatorNamed = CommandError {
    Message(
      "no authenticator given", .usage, hints: [$0.command("status", remark: "shows their names")])
  }

  static let noNewName = CommandError {
    Message("no new name given", .usage, hints: [$0.command($0.verb, "NAME NEWNAME")])
  }

  static func noSuchAuthenticator(_ name: String) -> CommandError {
    CommandError {
      Message(
        "\($0.who) has no authenticator \"\(name)\"", .noInput,
        hints: [$0.command("status", remark: "shows their names")])
    }
  }

  static func nameTaken(_ name: String) -> CommandError {
    CommandError {
      Message(
        "\($0.who) already has an authenticator \"\(name)\"; the new name is the same or looks "
          + "like it", .exists, hints: [$0.command("status", remark: "shows all names")])
    }
  }

  static func secretTaken(_ name: String) -> CommandError {
    CommandError {
      Message(
        "\($0.who) has this secret already, as \"\(name)\": each code would be accepted twice",
        .exists, hints: [$0.command("status", remark: "shows all authenticators")])
    }
  }

  static let tooManyAuthenticators = CommandError {
    Message(
      "\($0.who) has \(Enrollment.maximumAuthenticators) authenticators, the maximum", .exists,
      hints: [$0.command("status", remark: "shows which one to remove")])
  }

  static let tooManyPasses = CommandError {
    Message(
      "\($0.who) has \(Pass.maximumOpen) open passes, the maximum", .exists,
      hints: [
        $0.command("status", remark: "shows when they end"),
        $0.command("pass", "--revoke", remark: "ends them all"),
      ])
  }

  static let lastAuthenticator = CommandError {
    Message(
      "cannot remove the last authenticator of \($0.who)", .refused,
      hints: [
        $0.command("enroll", "--force", remark: "replaces everything: the phone is lost"),
        $0.command("add", remark: "adds another one first"),
        $0.command("unenroll", remark: "removes all, backup codes too"),
      ])
  }

  /// The same of a token that is taken back.
  static let lastIsToken = CommandError {
    Message(
      "cannot take the last authenticator of \($0.who)", .refused,
      hints: [
        $0.command("unenroll", remark: "removes all, backup codes too; then this command again"),
        $0.command("add", remark: "adds another one first"),
      ])
  }

  /// No code for a new authenticator was correct.
  static func noRightCode(_ consequence: Consequence) -> CommandError {
    CommandError {
      Message(
        "no correct code: \(consequence.text)", .refused,
        hints: [$0.again(remark: "starts again, with a new secret"), Message.clockHint])
    }
  }

  /// The user answered no.
  static func declined(_ consequence: Consequence) -> CommandError {
    CommandError(.refused, consequence.text)
  }

  /// No answer came, as there is no terminal. `options`: with them nothing is asked;
  /// empty: that cannot be told without a terminal.
  static func nobodyToAsk(_ consequence: Consequence, _ options: [String]) -> CommandError {
    CommandError {
      Message(
        "there is no terminal to ask on: \(consequence.text)", .refused,
        hints: [$0.again(options, remark: options.isEmpty ? "on a terminal" : "does not ask")])
    }
  }

  package static func stopped(_ interruption: Interruption, _ consequence: Consequence)
    -> CommandError
  {
    stopped(interruption, consequence.text)
  }

  /// `text`: how far it came.
  package static func stopped(_ interruption: Interruption, _ text: String) -> CommandError {
    switch interruption {
    case .endOfInput: CommandError(.refused, text)
    case .signal(let number): CommandError(.signal(number)) { _ in Message(text, .refused) }
    case .failure(let number):
      CommandError(.inputOutput, "standard input: \(errnoText(number)): \(text)")
    }
  }

  /// Writing to standard output failed.
  static func output(errno number: Int32) -> CommandError {
    CommandError(.inputOutput, "standard output: \(errnoText(number))")
  }

  /// Writing to standard output failed after new backup codes were stored.
  static func backupCodesUnseen(errno number: Int32, in words: Sentences = .session(nil))
    -> CommandError
  {
    CommandError {
      Message(
        "standard output: \(errnoText(number)); \(words.words(.codesUnseen))",
        .inputOutput, hints: [$0.command("backup-codes", "--regenerate")])
    }
  }

  /// The fleet verifies the codes, and this command is built without it.
  package static let noFleet = CommandError {
    let who = $0.user == nil ? "" : "the fleet verifies the codes of \($0.who), and "
    return Message(
      "\(who)this sallyport is built without the fleet; nothing was changed", .configuration,
      hints: ["sallyport config edit  # verification = local, in [default] or in a rule"])
  }

  /// A source of accounts may not have listed all; `what` is missing therefore.
  static func peopleUnseen(_ what: String) -> CommandError {
    CommandError(.busy, "\(what) \(AccountBook.unlisted)")
  }

  /// `group`: empty for accounts of people.
  static func nobodyInGroup(_ group: String) -> CommandError {
    let shown = printable(group.utf8, limit: 64)
    return group.isEmpty
      ? CommandError(.noInput, "no account of a person is found", hints: ["getent passwd"])
      : CommandError(
        .noInput, "no account is found in group \(shown)", hints: [lookup(of: group, in: "group")])
  }
}

extension Message {
  static let clockHint = "date  # compare it with the clock of the phone"
}

/// What was not done because of an error.
package enum Consequence: Equatable {
  case notEnrolled
  case nothingChanged
  /// But for a code that was accepted before.
  case codeUsed
  case backupCodeUsed

  fileprivate var text: String {
    switch self {
    case .notEnrolled: "not enrolled, nothing was changed"
    case .nothingChanged: "nothing was changed"
    case .codeUsed: "nothing was changed, but the code is used up"
    case .backupCodeUsed: "nothing was changed, but the backup code is used up"
    }
  }
}

/// Runs `step` and rethrows its error as a `CommandError`.
package func storing<Value>(
  _ step: () throws(StoreTrouble) -> Value
) throws(CommandError) -> Value {
  try rethrow(step) { CommandError.store($0) }
}

/// As `storing`, for steps that only libcrypto can fail.
func computing<Value>(_ step: () throws(CryptoError) -> Value) throws(CommandError) -> Value {
  try rethrow(step) { CommandError.store(.crypto($0)) }
}

extension StoreTrouble {
  /// What is wrong with a file of the inventory, without a command for a user's enrollment.
  var fact: String { Message(self, at: Invocation(verb: "token list", store: nil)).text }
}
