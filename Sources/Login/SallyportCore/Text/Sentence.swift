/// What users read inside a login: prompts, enrolling, refusals, notices. Not the log, and not what
/// root's command says. In the order of the lines of `english`.
package enum Sentence: Int, CaseIterable, Sendable {
  case verificationCode, backupCode, passwordAndCode, passwordAndBackupCode
  case notAccepted, tooManyWrongCodes, codeWasUsed
  case seconds, minutes, hours
  case required, offered, requiredBeside, offeredBeside, requiredByPass, installApp
  case setUpNow, setUpNowOrLater, yesOrNo, yes, no, logInAgain
  case addToApp, keyByHand, voidEntry, doesNotScan, tallDrawing
  case codeOfApp, digitsOfCode, backupCodeShowsNothing, clockBehind, clockAhead, wrongCode
  case isClockRight, tryLeft, triesLeft
  case enrolled, backupCodes, haveThem, enrolledMeanwhile, enrolledMeanwhileShown
  case notSetUp, notSetUpByFleet
  case sinceLastLogin, wrongCodeElsewhere, wrongCodesElsewhere, authenticatorAdded, passGiven
  case restored, passUsed, passUsedFrom
  case minuteAgo, minutesAgo, hourAgo, hoursAgo, dayAgo, daysAgo
  case codeLeft, codesLeft, lostPhone, lostPhoneOrAsk, newCodes, newCodesOrAsk

  /// Each as `key = sentence`, in the order of the cases, whose names the keys are. A place in
  /// braces is filled, `\n` ends a line; what is typed in answer to a prompt follows a blank. Of
  /// `yes` and `no` the first letter does as well. Each stands in all catalogs
  /// (`Sentences.init(reading:)`).
  package static let english: StaticString =
    #"""
    verification_code = Verification code{names}:
    backup_code = Backup code:
    password_and_code = Password & verification code{names}:
    password_and_backup_code = Password & backup code:
    not_accepted = Not accepted. A code works once: wait for the next one, or use a backup code.
    too_many_wrong_codes = Too many wrong codes. Next try in {time}, or a backup code:
    code_was_used = That code was used already. Wait about {seconds} s for the next.
    seconds = {count} s
    minutes = {count} min
    hours = {count} h
    required = Two-factor login is required on {host}.
    offered = Two-factor login is available on {host}.
    required_beside = Another factor is required on {host}.
    offered_beside = Another factor is available on {host}.
    required_by_pass = Two-factor login is required on {host}, in place\nof what you had. If you \#
    set it up, your phones and backup codes end for now.\nn or Enter ends the login, which is one \#
    of three tries.
    install_app = Time is short: first install\nan authenticator app, such as Aegis, FreeOTP or \#
    Google Authenticator.
    set_up_now = Set it up now? [y/n]:
    set_up_now_or_later = Set it up now? [y/n, Enter = later]:
    yes_or_no = Type y for yes or n for no.
    yes = yes
    no = no
    log_in_again = {host} requires a second factor. Log in again with your phone at hand.
    add_to_app = Add this to an authenticator app:
    key_by_hand = Key to type by hand:
    void_entry = An entry of an earlier try is void: delete it. This one ends in {ending}.
    does_not_scan = Does not scan? Type i to invert it. Boxes or {octal}? Type a. Or enter the key.
    tall_drawing = The code has {count} lines: make the window as high, or take the key.
    code_of_app = Code shown by the app:
    digits_of_code = A code has {count} digits.
    backup_code_shows_nothing = A backup code does not show that the app works.
    clock_behind = The phone's clock is {time} behind. Set it, then type the next code.
    clock_ahead = The phone's clock is {time} ahead. Set it, then type the next code.
    wrong_code = Wrong code.
    is_clock_right = Is the phone's clock set automatically?
    try_left = {count} try left.
    tries_left = {count} tries left.
    enrolled = Enrolled. The code is used up: wait for the next one before you log in again.
    backup_codes = Backup codes: each works once. Write them down.
    have_them = Press Enter when you have them:
    enrolled_meanwhile = {user} was enrolled by somebody else meanwhile. Log in again.
    enrolled_meanwhile_shown = {user} was enrolled by somebody else meanwhile; the QR code above \#
    is void. Log in again.
    not_set_up = Not set up: internal error; see the system log.
    not_set_up_by_fleet = Not set up: this machine may not enroll users of its fleet.
    since_last_login = Since your last login: {events}.
    wrong_code_elsewhere = {count} wrong code from elsewhere
    wrong_codes_elsewhere = {count} wrong codes from elsewhere
    authenticator_added = "{name}" was added to your enrollment {ago}
    pass_given = a pass was given {ago}
    restored = what a pass had replaced was restored {ago}
    pass_used = a pass was used {ago}
    pass_used_from = a pass was used {ago} from {address}
    minute_ago = {count} minute ago
    minutes_ago = {count} minutes ago
    hour_ago = {count} hour ago
    hours_ago = {count} hours ago
    day_ago = {count} day ago
    days_ago = {count} days ago
    code_left = {count} backup code left.
    codes_left = {count} backup codes left.
    lost_phone = Lost your phone? {command}
    lost_phone_or_ask = Lost your phone? {command}, or ask the administrator of {host}
    new_codes = New ones: {command}
    new_codes_or_ask = New ones: {command}, or ask the administrator of {host}
    """#
}
