import ArgumentParser
import OneTimePassword
import PAMStack
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

/// `sallyport enroll`
struct Enroll: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Enroll a user: secret, QR code, a first code, backup codes.",
    discussion: """
      Shows the new secret as URI, key and QR code, asks for a code that the app shows, and prints \
      the backup codes, once. Nothing is stored until that code is correct.
      """)

  @OptionGroup var shared: SubjectOptions<CallerConfirmed>

  @OptionGroup var authenticator: AuthenticatorOptions

  @Option(help: ArgumentHelp("Number of backup codes, 0 to 32.", valueName: "n"))
  var backupCodes = BackupCodeSet.usualCodes

  @Option(
    help: ArgumentHelp(
      "Write a sheet with secret, QR code and backup codes to a new file: .svg to print, or .txt.",
      valueName: "file"))
  var handout: String?

  @Flag(help: "Do not ask for a first code, nor before replacing.")
  var noConfirm = false

  @Flag(help: "Replace an enrollment, after asking.")
  var force = false

  @OptionGroup var policy: PolicyOptions

  func validate() throws {
    guard (0...BackupCodeSet.maximumCodes).contains(backupCodes) else {
      throw ValidationError("--backup-codes takes 0 to \(BackupCodeSet.maximumCodes)")
    }
    if let handout, !Handout.endings.contains(where: handout.lowercased().hasSuffix) {
      throw ValidationError("--handout takes a file that ends in .svg, a page to print, or .txt")
    }
  }

  func run(in context: Context) throws(CommandError) {
    if let names = try shared.own(
      in: context, naming: [(authenticator.argument.word, authenticator.argument.option)],
      roots: [
        "--force": force, "--no-confirm": noConfirm, "--handout": handout != nil,
        "--conf": policy.conf != nil, "--secret-from": authenticator.secretFrom != nil,
        "--device": authenticator.isToken, "--json": shared.storeOptions.json,
      ])
    {
      let session = OwnSession(context, shared.storeOptions)
      let name = authenticator.argument.meant(names[0], after: shared.argument, session.output)
      return try session.enroll(name, authenticator, codes: backupCodes, context)
    }
    let argument = authenticator.argument
    let (subject, typed) = try shared.open(in: context, naming: argument, for: .onAccount)
    let name = argument.meant(typed, after: shared.argument, subject.output)
    let account = try subject.account()
    guard account.uid != nil || subject.users.allowMissing else { throw .noSuchUser }
    let output = subject.output
    if let name { try argument.insist(on: name, of: subject, asks: !noConfirm, or: .notEnrolled) }
    let handout = try self.handout.map { path throws(CommandError) in try Handout(path) }
    let person = try subject.person(policy)
    let existing = try person.existing(force: force)
    context.terminal.watchForInterruption()
    if let question = existing.question(subject.user), !noConfirm {
      try output.insist(question, or: .notEnrolled, unless: ["--no-confirm"])
    }
    try person.rehearse()
    let draft = try authenticator.draft(
      named: name?.clear() ?? authenticator.freeName(beside: []),
      for: account, after: existing.newest, confirming: !noConfirm, output, context,
      or: .notEnrolled)
    let codes = try FreshBackupCodes(count: backupCodes)
    let sheet = Sheet(draft: draft, codes: codes, qr: authenticator.qr)
    if !(noConfirm && (output.isJSON || handout != nil)) {
      draft.show(sheet.heading, qr: authenticator.qr, output, context)
    }
    let confirmation =
      noConfirm
      ? nil
      : try draft.confirmation(
        under: person.policy, output, context, or: .notEnrolled)
    try context.stopIfInterrupted(.notEnrolled)
    try handout?.write(sheet)
    do throws(CommandError) {
      let made = try enrollment(draft, codes, confirmation, of: account)
      // The user may have enrolled at a login meanwhile; --force --no-confirm replaces that as
      // well.
      try person.enroll(
        made, replacing: existing.isThere || force && noConfirm, isCodeShown: !noConfirm)
    } catch {
      if !error.isUnsettled { handout?.remove() }
      throw error
    }
    try tell(sheet, by: confirmation, in: handout, output, context)
  }

  private struct More: Encodable {
    let backupCodes: [String]
    let handout: String?
  }

  private func enrollment(
    _ draft: Draft, _ codes: FreshBackupCodes, _ confirmation: AuthenticatorState?,
    of account: Account
  ) throws(CommandError) -> Enrollment {
    Enrollment(
      id: try freshIdentifier(), user: account.name, uid: account.uid,
      created: draft.authenticator.created,
      authenticators: [draft.authenticator.confirmed(by: confirmation)],
      backupCodes: codes.set)
  }

  /// Throws `backupCodesUnseen` if standard output failed and the backup codes are nowhere else.
  private func tell(
    _ sheet: Sheet, by confirmation: AuthenticatorState?, in handout: Handout?, _ output: Output,
    _ context: Context
  ) throws(CommandError) {
    let facts = sheet.draft.facts(confirmation)
    output.answer(
      Joined(facts, More(backupCodes: sheet.codes.shown, handout: handout?.path)),
      text(sheet, by: confirmation, in: handout, context.stacks))
    if handout == nil, let number = context.terminal.failure {
      throw .backupCodesUnseen(errno: number)
    }
  }

  private func text(
    _ sheet: Sheet, by confirmation: AuthenticatorState?, in handout: Handout?,
    _ stacks: StackDirectory
  ) -> String {
    let codes = sheet.codes
    var lines = ["Enrolled as \(sheet.draft.text(confirmation)).", ""]
    if let handout {
      let file = printable(handout.path.utf8, limit: 255)
      lines += ["Secret and \(counted(codes.shown.count, "backup code")) are in \(file).", ""]
    } else if !codes.shown.isEmpty {
      lines.append(codes.text)
    }
    if !noConfirm {
      let next =
        stacks.services().contains { stacks.analysis(of: $0).line(.auth) != nil }
        ? "keep this shell open and log in from another terminal."
        : "sudo sallyport pam enable sshd"
      lines += ["Next: \(next)", "\(codeIsUsedUp)."]
    }
    return lines.joined(separator: "\n")
  }
}
