import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem
import SessionProtocol

// enroll, add and backup-codes of a user who is not root, for himself.

extension OwnSession {
  func enroll(_ name: Label?, _ options: AuthenticatorOptions, codes: Int, _ context: Context)
    throws(CommandError)
  {
    let change = ChangeRequest.enroll(
      name: name, options.parameters, backupCodes: UInt8(clamping: codes))
    try make(change, options, context, heading: .secondFactorFor, isFirst: true)
  }

  func add(_ name: Label?, _ options: AuthenticatorOptions, _ context: Context)
    throws(CommandError)
  {
    try make(
      .add(name: name, options.parameters), options, context,
      heading: .anotherAuthenticatorFor, isFirst: false)
  }

  private func make(
    _ change: ChangeRequest, _ options: AuthenticatorOptions, _ context: Context,
    heading: SessionSentence,
    isFirst: Bool
  ) throws(CommandError) {
    var made: Draft?
    let answer = try ask(
      for: change,
      show: { (user: UserName, name: Label, secret: Secret) throws(CommandError) in
        let draft = try draft(
          for: user, named: name, secret: secret, options, context, isFirst: isFirst)
        draft.show(
          words.words(heading, user.text, draft.issuer.text), qr: options.qr, output, context,
          in: words)
        made = draft
      }, redraw: { made?.draw($0, output) })
    guard case .done(_, let codes, _) = answer, let draft = made else {
      throw fault(.garbage)
    }
    output.say(words.words(isFirst ? .enrolledAs : .added, draft.text(nil)))
    try show(codes)
    output.say(words.words(.waitToLogIn))
  }

  /// In an app it stands apart from an earlier one by its name.
  private func draft(
    for user: UserName, named name: Label, secret: Secret, _ options: AuthenticatorOptions,
    _ context: Context, isFirst: Bool
  ) throws(CommandError) -> Draft {
    let account =
      options.account ?? (isFirst ? nil : Label(user.bytes + [0x20] + name.bytes))
    return try storing { () throws(StoreTrouble) in
      try Draft(
        for: user, named: name, options.parameters, secret: secret,
        issuer: options.issuer(on: context.hostName), account: account, at: try context.now())
    }
  }

  func renewBackupCodes() throws(CommandError) {
    guard case .done(let user, let codes, _) = try ask(for: .renew) else {
      throw fault(.garbage)
    }
    try show(codes)
    output.say(words.words(.oldCodesVoid, user.text))
  }

  private func show(_ codes: [Secret]) throws(CommandError) {
    if codes.isEmpty { return }
    output.say(FreshBackupCodes((codes, nil)).text(under: words.words(.newBackupCodes)))
    if let number = output.terminal.failure { throw .backupCodesUnseen(errno: number, in: words) }
  }
}
