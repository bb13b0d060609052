import SallyportAdministration
import SallyportCore
import SallyportSupport
import SessionProtocol

extension CommandError {
  /// `sallyport-session` refused, about this name; nothing was changed.
  static func refused(
    _ refusal: ChangeRefusal, about name: String, in words: Sentences = .session(nil)
  ) -> CommandError {
    CommandError(refusal == .notHelper ? .notHelper : .other) {
      Message(refusal, name, at: $0, in: words)
    }
  }

  /// `sallyport-session` said what is no answer, or nothing.
  static func session(_ fault: SessionConnection.Fault, in words: Sentences = .session(nil))
    -> CommandError
  {
    let socket = SessionConnection.usualPath
    return switch fault {
    case .absent, .silent, .nothingYet:
      CommandError(.busy, words.words(.noAnswer))
    case .notRoot(let user):
      CommandError(.notPermitted, "\(socket) is not root's but of uid \(user)")
    case .garbage: CommandError(.busy, "the answer of the session cannot be read")
    case .failed(let number): CommandError(.inputOutput, "\(socket): \(errnoText(number))")
    }
  }
}

extension CommandError {
  static func notServed(in words: Sentences) -> CommandError {
    CommandError {
      Message(
        words.words(.notServed), .notPermitted,
        hints: [
          "sudo \($0.again())",
          "sudo systemctl enable --now sallyport-session.socket  # and self_service = yes",
        ])
    }
  }

  static let helpNotServed = CommandError {
    Message(
      "only root and helpers can run sallyport \($0.verb) for others, and the service for helpers "
        + "does not run: ask an administrator", .notPermitted,
      hints: [
        "sudo \($0.again())",
        "sudo systemctl enable --now sallyport-session.socket  # where there is a helpdesk",
      ])
  }

  static let helpForHimself = CommandError {
    Message(
      "you cannot help yourself: ask an administrator, or somebody else of the helpdesk",
      .notPermitted, hints: ["sudo \($0.again())"])
  }

  /// Root's alone, of a verb that helpers have without it.
  static func rootsOption(_ option: String, of act: HelpAct) -> CommandError {
    let kept =
      switch act {
      case .passEnroll: "--enroll"
      case .unblock: "--undo"
      case .status, .unlock, .pass, .block: ""
      }
    return CommandError {
      Message(
        "only root can use \(option) here: ask an administrator", .notPermitted,
        hints: [
          "sudo \($0.again())",
          $0.command($0.verb, kept, remark: "what helpers may type, where there is a helpdesk"),
        ])
    }
  }
}

extension Message {
  /// What `sallyport-session` refused.
  fileprivate init(
    _ refusal: ChangeRefusal, _ name: String, at invocation: Invocation, in words: Sentences
  ) {
    switch refusal {
    case .off:
      self.init(
        words.words(.selfServiceOff),
        .notPermitted,
        hints: [
          "sudo \(invocation.again())",
          "sudo sallyport config edit  # where root sets self_service = yes",
        ])
    case .disabled:
      self.init(words.words(.disabled), .notPermitted)
    case .level:
      self.init(
        words.words(.mayNotEnroll), .notPermitted,
        hints: ["sudo \(invocation.again())"])
    case .notEnrolled:
      self.init(words.words(.notEnrolled), .noInput, hints: ["sallyport enroll"])
    case .enrolled:
      self.init(
        words.words(.enrolledAlready), .exists,
        hints: ["sallyport status", "sallyport add  # adds another authenticator"])
    case .noSuchAuthenticator:
      self.init(
        words.words(.noSuchAuthenticator, name), .noInput,
        hints: ["sallyport status  # shows their names"])
    case .nameTaken:
      self.init(
        words.words(.nameTaken), .exists,
        hints: ["sallyport status"])
    case .tooMany:
      self.init(
        words.words(.tooMany, "\(Enrollment.maximumAuthenticators)"), .exists,
        hints: ["sallyport status  # shows which one to remove"])
    case .last:
      self.init(
        words.words(.lastAuthenticator, name), .refused,
        hints: ["sallyport add  # adds another one first"])
    case .password: self.init(words.words(.passwordRefused), .refused)
    case .code:
      self.init(
        words.words(.codeRefused), .refused)
    case .throttled:
      self.init(words.words(.throttled), .refused)
    case .firstCode:
      self.init(
        words.words(.noFirstCode), .refused,
        hints: [
          invocation.again(remark: "starts again, with a new secret"), Message.clockHint,
        ])
    case .busy: self.init(words.words(.anotherSession), .busy)
    case .root:
      self.init("root needs no session", .usage, hints: [invocation.command(invocation.verb)])
    case .noAccount: self.init(words.words(.noAccount), .noUser)
    case .changed:
      self.init(
        words.words(.changedMeanwhile), .busy,
        hints: ["sallyport status"])
    case .failed:
      self.init(
        words.words(.failed), .busy)
    case .unknown:
      self.init(
        words.words(.unknownOutcome), .busy,
        hints: [
          "sallyport status",
          "sallyport backup-codes --regenerate  # where nobody has seen the new codes",
        ])
    case .notHelper, .notForHelpers, .notHelped, .unclear, .helpInFleet, .helpedNotEnrolled,
      .helpedEnough, .helpedToday, .notLocked, .nothingToLend, .blockedByRoot, .blockedByHelper,
      .notBlocked:
      self.init(ofHelper: refusal, name, at: invocation)
    case .inFleet:
      self.init(
        words.words(.notShownByFleet), .notPermitted,
        hints: ["sudo \(invocation.again(remark: "on a host that enrolls"))"])
    }
  }
}

extension Message {
  /// What `sallyport-session` refused to a member of the helpdesk, about this person.
  fileprivate init(ofHelper refusal: ChangeRefusal, _ name: String, at invocation: Invocation) {
    let asRoot = "sudo \(invocation.again(remark: "ask an administrator for this"))"
    let pass = invocation.command("pass")
    switch refusal {
    case .notForHelpers:
      self.init(
        "the helpdesk may not do this: the policy's helpdesk_may does not name it", .notPermitted,
        hints: [asRoot])
    case .notHelped:
      self.init(
        "the helpdesk may not help \(name); the log of the system says why", .notPermitted,
        hints: [asRoot])
    case .unclear:
      self.init(
        "it cannot be found out whether the helpdesk may help \(name); the log of the system says "
          + "why", .notPermitted, hints: [asRoot])
    case .helpInFleet:
      self.init(
        "the fleet does not do this for a helper on this host: no verifier can be asked, or this "
          + "host may not enroll people of it; the log of the system says why", .notPermitted,
        hints: [asRoot])
    case .helpedNotEnrolled:
      self.init("\(name) is not enrolled", .noInput, hints: [])
    case .helpedEnough:
      let most =
        invocation.verb == "unlock"
        ? "one unlock in seven days: from seven days after it on they can again"
        : "two passes in seven days, and none while three are open: from seven days after the "
          + "first of the two on they can again"
      self.init(
        "helpers did this for \(name) as often as they may, \(most)", .refused, hints: [asRoot])
    case .helpedToday:
      self.init(
        "you have done ten acts for others within a day, which is the most: a day after the first "
          + "of them you can do another", .refused, hints: [asRoot])
    case .notLocked:
      self.init("\(name) is not locked: the next code is checked at once", .refused, hints: [])
    case .nothingToLend:
      self.init(
        "\(name) has typed too many wrong codes from everywhere: there is nothing to lend",
        .refused, hints: [pass])
    case .blockedByRoot:
      self.init("root has blocked \(name): ask root", .notPermitted, hints: [])
    case .blockedByHelper:
      self.init(
        "a helper has blocked \(name): nothing is done until that is lifted", .refused,
        hints: [invocation.command("block", "--undo")])
    case .notBlocked: self.init("nothing to undo: \(name) is not blocked", .noInput, hints: [])
    case .off, .disabled, .level, .notEnrolled, .enrolled, .noSuchAuthenticator, .nameTaken,
      .tooMany, .last, .password, .code, .throttled, .firstCode, .busy, .root, .noAccount, .changed,
      .failed, .unknown, .inFleet, .notHelper:
      self.init(
        "you are not in the helpdesk, or there is none", .notPermitted, hints: [asRoot])
    }
  }
}
