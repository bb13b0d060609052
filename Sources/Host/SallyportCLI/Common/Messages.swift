import Glibc
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

extension Message {
  init(_ error: CommandError, at invocation: Invocation) {
    switch error {
    case .store(let trouble): self.init(trouble, at: invocation)
    case .notRoot:
      self.init(
        "only root can run sallyport \(invocation.verb)", .notPermitted,
        hints: ["sudo \(invocation.again())"])
    case .rootsOption(let option):
      self.init(
        "only root can use \(option) here", .notPermitted, hints: ["sudo \(invocation.again())"])
    case .noSessions:
      self.init(
        "you are not root, and the service for your own enrollment does not run", .notPermitted,
        hints: [
          "sudo \(invocation.again())",
          "sudo systemctl enable --now sallyport-session.socket      and self_service = yes",
        ])
    case .denied(let denial, let name): self.init(denial, name, at: invocation)
    case .session(let fault): self.init(fault)
    case .nobodyNamed:
      self.init("no user given", .usage, hints: [invocation.again(for: "NAME")])
    case .unexpectedWord(let word):
      self.init(
        "unexpected argument '\(printable(word.utf8, limit: 64))'", .usage,
        hints: ["sallyport \(invocation.verb) --help"])
    case .notAName(let word):
      let shown = printable(word.utf8, limit: 64)
      self.init(
        "\"\(shown)\" is not a valid name: 1 to 64 bytes of characters that can be seen", .usage,
        hints: [invocation.command(invocation.verb, "phone")])
    case .noAuthenticatorNamed:
      self.init(
        "no authenticator given", .usage,
        hints: [invocation.command("status", remark: "shows their names")])
    case .noNewName:
      self.init(
        "no new name given", .usage, hints: [invocation.command(invocation.verb, "NAME NEWNAME")])
    case .nobodyInGroup(let group):
      let name = printable(group.utf8, limit: 64)
      self.init(
        group.isEmpty ? "no account of a person is found" : "no account is found in group \(name)",
        .noInput, hints: [group.isEmpty ? "getent passwd" : lookup(of: group, in: "group")])
    case .otherSpelling(let own, let isStored):
      let named = Invocation(verb: invocation.verb, user: own.typed, store: invocation.store)
      let more = isStored ? ", and something is stored as \(invocation.who) too" : ""
      self.init(
        "\(invocation.who) is the account \(own.text)\(more): nothing was changed", .usage,
        hints: [
          isStored
            ? invocation.again(remark: "on a terminal asks about what is stored")
            : named.user == nil
              ? "getent passwd"
              : named.command(invocation.verb, remark: "with the same options, if that is meant")
        ])
    case .notAUserName:
      self.init("\"\(invocation.who)\" is not a valid user name", .noUser, hints: ["getent passwd"])
    case .noSuchUser:
      self.init("there is no user \(invocation.who)", .noUser, hints: ["getent passwd"])
    case .unseenUser(isBroken: false):
      self.init(
        "\(invocation.who) was enrolled with another uid than the one given; where there is no "
          + "account, a directory may be away: nothing was changed without its --uid", .noUser,
        hints: [invocation.lookup])
    case .unseenUser(isBroken: true):
      self.init(
        "\(invocation.who) is not found, and the uid in the enrollment cannot be read: "
          + "nothing was changed", .noUser, hints: [invocation.lookup])
    case .notEnrolled:
      self.init(
        "\(invocation.who) is not enrolled", .noInput, hints: [invocation.command("enroll")])
    case .note(let trouble):
      self.init(
        Message(trouble, at: invocation).text, .badData,
        hints: [
          "rm \(shellQuoted(trouble.path))      then run sallyport require or exempt again"
        ])
    case .noLevel:
      self.init(
        "nothing to undo: \(invocation.who) has no such level", .noInput,
        hints: [invocation.command("status", remark: "shows it")])
    case .enrolledAlready(let count):
      self.init(
        "\(invocation.who) is already enrolled (\(counted(count, "authenticator")))", .exists,
        hints: [
          invocation.command("status", remark: "shows it"),
          invocation.command("add", remark: "adds another one"),
          invocation.again("--force", remark: "replaces everything"),
        ])
    case .enrolledMeanwhile(let isCodeShown):
      self.init(
        "\(invocation.who) was enrolled by somebody else meanwhile"
          + (isCodeShown ? "; the QR code above is void" : ""), .exists,
        hints: [
          invocation.command("status", remark: "shows it"),
          invocation.again("--force", remark: "replaces everything"),
        ])
    case .noSuchAuthenticator(let name):
      self.init(
        "\(invocation.who) has no authenticator \"\(name)\"", .noInput,
        hints: [invocation.command("status", remark: "shows their names")])
    case .nameTaken(let name):
      self.init(
        "\(invocation.who) already has an authenticator \"\(name)\"; the new name is the same or "
          + "looks like it", .exists,
        hints: [invocation.command("status", remark: "shows all names")])
    case .tooManyAuthenticators:
      self.init(
        "\(invocation.who) has \(Enrollment.maximumAuthenticators) authenticators, the maximum",
        .exists, hints: [invocation.command("status", remark: "shows which one to remove")])
    case .lastAuthenticator:
      self.init(
        "cannot remove the last authenticator of \(invocation.who)", .refused,
        hints: [
          invocation.command("enroll", "--force", remark: "replaces everything: the phone is lost"),
          invocation.command("add", remark: "adds another one first"),
          invocation.command("unenroll", remark: "removes all, backup codes too"),
        ])
    case .secret(let problem): self.init(problem, at: invocation)
    case .handout(let path, let number): self.init(handout: path, number)
    case .policyFile(let path, let number): self.init(policyFile: path, number)
    case .policyBroken(let path, let count):
      self.init(
        "\(printable(path.utf8, limit: 255)) cannot be used: \(counted(count, "error"))",
        .configuration)
    case .editedElsewhere(let path):
      self.init("\(printable(path.utf8, limit: 255)) is being edited by somebody else", .busy)
    case .editor(let status):
      self.init("the editor exited with status \(status): nothing was changed", .refused)
    case .code(let rejection): self.init(rejection, at: invocation)
    case .resync(let refusal): self.init(refusal, at: invocation)
    case .noRightCode(let consequence):
      self.init(
        "no correct code: \(consequence.text)", .refused,
        hints: [
          invocation.again(remark: "starts again, with a new secret"), Message.clockHint,
        ])
    case .importFile(let path, let problem): self.init(problem, at: path)
    case .notOathLines(let path, let lines):
      let file = path == "-" ? "standard input" : shownPath(path)
      self.init(
        "\(file): not a users file of pam_oath: no line has the form TYPE USER PASSWORD KEY (line "
          + "\(listed(lines.map { "\($0)" })))", .badData,
        hints: ["sallyport import --help      names the kinds of files"])
    case .notAllImported(let count, let all):
      self.init("\(count) of \(counted(all, "user")) not imported", .badData)
    case .importStopped(_, let done, let all):
      self.init(
        "stopped after \(done) of \(counted(all, "user")); run the same command again to continue",
        .refused)
    case .declined(let consequence): self.init(consequence.text, .refused)
    case .stopped(let interruption, let consequence): self.init(interruption, consequence)
    case .output(let number):
      self.init("standard output: \(errnoText(number))", .inputOutput)
    case .backupCodesUnseen(let number):
      self.init(
        "standard output: \(errnoText(number)); the new backup codes were stored but not shown",
        .inputOutput, hints: [invocation.command("backup-codes", "--regenerate")])
    case .stack(let refusal): self.init(refusal, at: invocation)
    case .userNotService(let name):
      let status = sallyportCommand("status", on: [name])
      self.init(
        "there is no service \(printable(name.utf8)), but a user. Did you mean: "
          + printable(status.utf8, limit: 300), .noInput)
    case .serviceFailed(let service, let error, let others):
      let message = Message(error, at: invocation)
      let fates = others.map { other in
        other.problem.map { "  \(printable(other.service.utf8)) was changed, and is still: \($0)" }
          ?? "  \(printable(other.service.utf8)) is as it was before"
      }
      self.init(
        (["\(printable(service.utf8)): \(message.text)"] + fates).joined(separator: "\n"),
        message.status, hints: message.hints)
    case .relativeRefused(let service, let typed, let error):
      let message = Message(error, at: invocation)
      let only = sallyportCommand("pam enable", on: [typed], ["--only"])
      self.init(
        message.text, message.status,
        hints: message.hints + ["\(only)      leaves \(printable(service.utf8)) without a code"])
    case .revertPending(let names):
      self.init(
        "the change of \(printable(listed(names).utf8, limit: 300)) waits to be confirmed", .exists,
        hints: [
          "sallyport pam confirm      to keep it", "sallyport pam revert      to take it back",
        ])
    case .nothingPending:
      self.init(
        "no change waits to be confirmed: what is not confirmed in time is taken back", .noInput,
        hints: ["sallyport pam status", "journalctl -t sallyport      says when"])
    case .sameLogin:
      self.init(
        "this is the login that made the change: only a new one shows that it works",
        .notPermitted, hints: ["ssh NAME@HOST", "sallyport pam confirm --force"])
    case .revertUnreadable(let reason):
      self.init(
        printable(reason.utf8, limit: 300), .configuration,
        hints: ["sallyport pam status", "rm \(PendingRevert.path)"])
    case .revertFile(let number):
      self.init("\(PendingRevert.path): \(errnoText(number)); nothing was changed", .inputOutput)
    case .revertUnfinished(let path):
      self.init("\(path) was not taken back", .configuration, hints: ["sallyport pam revert"])
    case .ssh(let trouble): self.init(trouble)
    case .noFleet:
      let who = invocation.user.map { _ in "the fleet verifies the codes of \(invocation.who), and "
      }
      self.init(
        "\(who ?? "")this sallyport is built without the fleet; nothing was changed",
        .configuration,
        hints: ["sallyport config edit      verification = local, in [default] or in a rule"])
    case .explained(let error): self = error.message(at: invocation)
    case .peopleUnseen(let what):
      self.init("\(what) \(AccountBook.unlisted)", .busy)
    case .listIncomplete(let status):
      self.init("the list is incomplete", status)
    }
  }

  static let clockHint = "date      compare it with the clock of the phone"

  private init(_ interruption: Interruption, _ consequence: Consequence) {
    switch interruption {
    case .endOfInput, .signal: self.init(consequence.text, .refused)
    case .failure(let number):
      self.init("standard input: \(errnoText(number)): \(consequence.text)", .inputOutput)
    }
  }

  private init(_ problem: SecretProblem, at invocation: Invocation) {
    let hints = [invocation.command(invocation.verb, remark: "makes a fresh secret")]
    switch problem {
    case .base32(let error):
      self.init("the secret is not base32: \(error.text)", .badData, hints: hints)
    case .length(let count):
      let wanted = "expected \(Secret.shortestKey) to \(Secret.longestKey)"
      self.init("the secret is \(counted(count, "byte")) long, \(wanted)", .badData, hints: hints)
    case .notRegular(let path):
      self.init("\(shownPath(path)): is not a regular file", .badData, hints: lookingAt(path))
    case .tooLong:
      self.init("the secret is longer than \(Limits.file / 1024) KiB", .badData, hints: hints)
    case .cannotRead(let path, let number):
      let status: Sysexit =
        switch number {
        case ENOENT, ENOTDIR: .noInput
        case EACCES, EPERM: .notPermitted
        case _: .inputOutput
        }
      let file = shownPath(path)
      self.init(
        number == ELOOP ? "\(file): is a symbolic link" : "\(file): \(errnoText(number))",
        number == ELOOP ? .badData : status, hints: lookingAt(path))
    }
  }

  private init(handout path: String, _ number: Int32) {
    let status: Sysexit =
      switch number {
      case EEXIST: .exists
      case ENOENT, ENOTDIR: .noInput
      case EACCES, EPERM: .notPermitted
      case _: .inputOutput
      }
    let file = printable(path.utf8, limit: 255)
    self.init(
      "\(file): \(errnoText(number)): not enrolled, nothing was changed", status,
      hints: number == EEXIST ? ["ls -l \(shellQuoted(path))"] : [])
  }

  private init(policyFile path: String, _ number: Int32) {
    let file = shownPath(path)
    switch number {
    case SystemError.notRegular.number, ELOOP:
      self.init("\(file): is not a regular file", .configuration)
    case SystemError.tooLong.number: self.init("\(file): longer than 64 KiB", .configuration)
    case ENOENT, ENOTDIR: self.init("\(file): \(errnoText(number))", .noInput)
    case EACCES, EPERM: self.init("\(file): \(errnoText(number))", .notPermitted)
    case _: self.init("\(file): \(errnoText(number))", .inputOutput)
    }
  }

  private init(_ rejection: CodeRefused, at invocation: Invocation) {
    switch rejection.refusal {
    case .malformed(let malformation):
      self.init(malformation.text, .refused)
    case .wrongCode:
      guard let offset = rejection.clockOffset else {
        self.init("wrong code", .refused)
        return
      }
      let off = offsetText(offset.magnitude)
      self.init(
        "wrong code; a clock that is \(off) \(offset < 0 ? "behind" : "ahead") shows it now: "
          + "set the phone's", .refused)
    case .replayed:
      self.init("that code has already been used: wait for the next one", .refused)
    case .throttled:
      let next = rejection.wait.map { "try again in \(durationText($0))" }
      self.init(
        "too many wrong codes; \(next ?? "no more are accepted")", .refused,
        hints: [invocation.command("unlock", remark: "allows the next try now")])
    case .clock(let until):
      let time = CalendarDate(until, inUTC: true)?.internetText ?? "\(until.seconds)"
      self.init(
        "the last accepted code is ahead of the clock; "
          + "codes are refused until \(time), backup codes work", .refused,
        hints: [
          "date      the clock of this machine",
          invocation.command("resync", remark: "if the clock is now correct"),
        ])
    }
  }

  private init(_ refusal: ResyncRefusal, at invocation: Invocation) {
    switch refusal {
    case .clockOff(let name, let drift, let period, let accepted):
      let off = driftText(drift, .totp(period: period)) ?? "right"
      let most = offsetText(UInt64(accepted) * UInt64(period))
      self.init(
        "the clock of \"\(name.text)\" is \(off), "
          + "at most \(most) is accepted: set that clock",
        .refused, hints: [Message.clockHint])
    case .replayed(let name):
      self.init(
        "those codes of \"\(name.text)\" have already been used", .refused,
        hints: [invocation.again(remark: "with the next two codes")])
    case .notFound:
      self.init(
        "not two consecutive codes within a day or 1,000 counters", .refused,
        hints: [invocation.command("status", remark: "shows the authenticators")])
    }
  }
}

extension Consequence {
  fileprivate var text: String {
    switch self {
    case .notEnrolled: "not enrolled, nothing was changed"
    case .nothingChanged: "nothing was changed"
    case .codeUsed: "nothing was changed, but the code is used up"
    case .backupCodeUsed: "nothing was changed, but the backup code is used up"
    }
  }
}

extension Base32.Error {
  /// Positions count from 1.
  fileprivate var text: String {
    switch kind {
    case .character: "character \(offset + 1) is not a letter or one of 2 to 7"
    case .padding: "the padding at character \(offset + 1) is wrong"
    case .length: "characters are missing"
    case .trailingBits: "the last character has bits that must be zero"
    case .outOfMemory: "out of memory"
    }
  }
}

extension Malformation {
  /// The text for the user who typed it.
  var text: String {
    switch self {
    case .empty: "no code given"
    case .tooLong: "too long for a code"
    case .length: "wrong number of digits"
    case .characters, .sshdDummy, .again: "neither a code nor a backup code"
    }
  }
}
