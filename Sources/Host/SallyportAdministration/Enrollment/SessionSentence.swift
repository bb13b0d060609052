package import OneTimePassword
package import SallyportCore

/// What users read when they change their own enrollment, beside `Sentence`: in the section
/// `[session]` of a catalog. In the order of the lines of `english`.
package enum SessionSentence: Int, CaseIterable, Sendable {
  case codeToAdd, codeToRemove, codeToRename, codeToRenew, keepAllCodes
  case secondFactorFor, anotherAuthenticatorFor, enrolledAs, added, newBackupCodes, oldCodesVoid
  case selfServiceOff, disabled, mayNotEnroll, notEnrolled, enrolledAlready, noSuchAuthenticator
  case nameTaken, tooMany, lastAuthenticator, passwordRefused, codeRefused, throttled, noFirstCode
  case anotherSession, noAccount, changedMeanwhile, failed, unknownOutcome, notShownByFleet
  case scanThis, keyToType, noTerminal, noRoom, waitToLogIn, removed, renamed, codesLeft
  case nothingChanged, codeUsed, codesUnseen, noAnswer, notServed

  /// As `Sentence.english`.
  package static let english: StaticString =
    #"""
    code_to_add = Verification code to add "{name}":
    code_to_remove = Verification code to remove "{name}":
    code_to_rename = Verification code to rename "{name}" to "{new}":
    code_to_renew = Verification code to make new backup codes:
    keep_all_codes = your backup codes were replaced, but the service could not say how many of \#
    these work: keep all, in this order, from left to right; only the first ones work, as many as \#
    your former set had when it was new
    second_factor_for = Second factor for {user} on {host}
    another_authenticator_for = Another authenticator for {user} on {host}
    enrolled_as = Enrolled as {authenticator}.
    added = Added {authenticator}.
    new_backup_codes = Backup codes: each works once, when the phone is not at hand. Not shown \#
    again.
    old_codes_void = The old backup codes of {user} no longer work.
    self_service_off = nobody but root looks at or changes enrollments here: the policy has \#
    self_service = no
    disabled = the policy has state = disabled: nothing was changed
    may_not_enroll = the policy does not allow self-enrollment; ask root
    not_enrolled = you are not enrolled
    enrolled_already = you are enrolled already
    no_such_authenticator = you have no authenticator "{name}"
    name_taken = you already have an authenticator of that name, or of one that looks like it
    too_many = you have {count} authenticators, the maximum
    last_authenticator = "{name}" is your last authenticator
    password_refused = the password was not accepted: nothing was changed
    code_refused = the code was not accepted (each works once: one that was used needs a wait for \#
    the next): nothing was changed
    throttled = too many wrong codes; a backup code is accepted
    no_first_code = no correct code: nothing was changed
    another_session = another session of yours is going on
    no_account = you have no account on this machine
    changed_meanwhile = the enrollment was changed meanwhile: nothing was changed by this
    failed = the service failed: nothing was changed; the log of the system says why
    unknown_outcome = the service failed: it is not known whether anything was changed
    not_shown_by_fleet = the fleet has your enrollment, and does not show it to users of this host
    scan_this = Scan this with an authenticator app:
    key_to_type = Key to type by hand:
    no_terminal = No QR code: this is no terminal. With --qr utf8 it is drawn anyway.
    no_room = No QR code: it needs {columns} columns and {lines} lines. Type the key, or\nstart \#
    again in a larger window.
    wait_to_log_in = The code is used up: wait for the next one before you log in.
    removed = Removed "{name}". You have {names}.
    renamed = "{name}" is "{new}" now.
    codes_left = {left} of {count} backup codes left
    nothing_changed = nothing was changed
    code_used = nothing was changed, but the code is used up
    codes_unseen = the new backup codes were stored but not shown
    no_answer = the session ended without an answer; sallyport status shows what is enrolled
    not_served = you are not root, and the service for your own enrollment does not run
    """#
}

extension Sentences {
  /// The section of these sentences in a catalog.
  package static let sessionSection: StaticString = "session"

  /// Those of a session: of this catalog, or in English where it cannot be used.
  package static func session(_ catalog: Secret?) -> Sentences {
    do throws(SettingsError) {
      if let catalog { return try session(in: catalog) }
    } catch {
      // Doctor says so.
    }
    return Sentences(SessionSentence.english)
  }

  /// Those of a catalog.
  package static func session(in catalog: Secret) throws(SettingsError) -> Sentences {
    var lines = try SettingsScanner(catalog)
    while let line = try lines.next() {
      if case .section(let name) = line, catalog.holds(sessionSection, in: name) {
        return try Sentences(catalog: catalog, &lines, english: SessionSentence.english)
      }
    }
    throw SettingsError(line: max(lines.number, 1), .missing("[session]"))
  }

  /// As `text` of a `Sentence`.
  package func text(
    _ sentence: SessionSentence, _ first: [UInt8] = [], _ second: [UInt8] = []
  ) -> [UInt8] {
    text(at: sentence.rawValue, first, second)
  }

  /// The same for people.
  package func words(_ sentence: SessionSentence, _ first: String = "", _ second: String = "")
    -> String
  {
    String(decoding: text(sentence, Array(first.utf8), Array(second.utf8)), as: UTF8.self)
  }
}
