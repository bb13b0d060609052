import ArgumentParser
import OneTimePassword
import SallyportCore
import SallyportSystem

/// `sallyport enroll`
struct Enroll: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Enroll a user: secret, QR code, a first code, backup codes.",
    discussion: """
      Shows the new secret as URI, key and QR code, asks for a code that the app shows, and prints \
      the backup codes, once. Nothing is stored before the code was right.
      """)

  @Option(help: ArgumentHelp("The user to enroll.", valueName: "name"))
  var user: String

  @OptionGroup var authenticator: AuthenticatorOptions

  @Option(help: ArgumentHelp("How many backup codes, 0 to 32.", valueName: "n"))
  var backupCodes = BackupCodeSet.usualCodes

  @Option(help: "How to draw the QR code.")
  var qr = QRChoice.auto

  @Flag(help: "Ask nothing: neither for a first code nor before replacing.")
  var noConfirm = false

  @Flag(help: "Replace an enrollment, after asking.")
  var force = false

  @OptionGroup var users: UserOptions
  @OptionGroup var store: StoreOptions

  func user(in context: Context) -> String? { user }

  func validate() throws {
    guard (0...BackupCodeSet.maximumCodes).contains(backupCodes) else {
      throw ValidationError("--backup-codes takes 0 to \(BackupCodeSet.maximumCodes)")
    }
  }

  func run(in context: Context) throws(Complaint) {
    let place = try context.store(store)
    let account = try context.account(user)
    guard account.uid != nil || users.allowMissing else { throw .noSuchUser }
    let voice = context.voice(store)
    let presence = try Presence(of: account, in: place, force: force)
    context.terminal.watchForInterruption()
    if let question = presence.question(user), !noConfirm {
      try voice.insist(question, or: .notEnrolled)
    }
    let draft = try draft(for: account, voice, context)
    if !(store.json && noConfirm) { show(draft, voice, context) }
    let confirmation =
      noConfirm ? nil : try Confirmation.ask(for: draft, voice, context)
    try context.stopIfInterrupted(.notEnrolled)
    try save(draft, confirmation, over: presence, in: place)
    voice.answer(json(draft, confirmation), text(draft, confirmation))
    if let number = context.terminal.failure { throw .backupCodesUnseen(errno: number) }
  }

  private func draft(for account: Account, _ voice: Voice, _ context: Context)
    throws(Complaint) -> Draft
  {
    let parameters = authenticator.parameters
    return try Draft(
      account: account, parameters: parameters,
      secret: try authenticator.source(confirming: !noConfirm)
        .secret(for: parameters.algorithm, voice),
      name: authenticator.name, issuer: authenticator.issuer(on: context.hostName),
      label: authenticator.account(of: account.name), backupCodes: backupCodes,
      created: try context.time())
  }

  private func save(
    _ draft: Draft, _ confirmation: Confirmation?, over presence: Presence, in place: Store
  ) throws(Complaint) {
    let enrollment = draft.enrollment(lastAccepted: confirmation?.lastAccepted)
    var state = LoginState(initialFor: enrollment)
    if let confirmation, !state.authenticators.isEmpty {
      state.authenticators[0].drift = confirmation.drift
    }
    try complaining { () throws(StoreTrouble) in
      try place.prepare()
      switch presence {
      case .none: try place.create(enrollment, state)
      case .enrolled, .broken: try place.replace(enrollment, state)
      }
    }
  }
}

// MARK: what people and programs see

extension Enroll {
  private func show(_ draft: Draft, _ voice: Voice, _ context: Context) {
    voice.say("Second factor for \(draft.account.name.text) on \(draft.issuer.text)\n")
    voice.say(plainText(inMemory(draft.uri.text())))
    for line in grouped(inMemory(Base32.encode(draft.secret)), after: "Key to type by hand:") {
      voice.say(line)
    }
    voice.say("")
    let screen = context.terminal.screen(of: voice.stream)
    let drawing = QRDrawing(qr, on: screen) {
      QREncoder.encode(inMemory(draft.uri.text(omittingDefaults: true)))
    }
    switch drawing {
    case .nothing: break
    case .code(let text):
      voice.say("Scan this with an authenticator app:\n")
      voice.write(text)
    case .noLibrary:
      voice.say("No QR code: libqrencode.so.4 is not there. Type the key, or use the URI.")
    case .tooSmall(let columns, let lines):
      voice.say("No QR code: it needs \(columns) columns and \(lines) lines. Type the key, or")
      voice.say("start again in a larger window.")
    }
  }

  private func text(_ draft: Draft, _ confirmation: Confirmation?) -> String {
    let clock = confirmation.flatMap { driftText($0.drift) }.map { "; its clock is \($0)" } ?? ""
    let parameters = description(of: draft.parameters, every: "every ")
    var lines = ["Enrolled as \"\(draft.name.text)\" (\(parameters)\(clock)).", ""]
    if !draft.backupCodes.shown.isEmpty { lines.append(draft.backupCodes.text) }
    lines.append("Next: keep this shell open and log in from another terminal.")
    return lines.joined(separator: "\n")
  }

  private func json(_ draft: Draft, _ confirmation: Confirmation?) -> JSON {
    let next = confirmation.map { $0.lastAccepted &+ 1 } ?? 0
    return .object([
      ("user", .text(draft.account.name.text)),
      ("authenticator", .object(facts(of: draft.parameters, name: draft.name, counter: next))),
      ("secret", .text(plainText(inMemory(Base32.encode(draft.secret))))),
      ("uri", .text(plainText(inMemory(draft.uri.text())))),
      ("backupCodes", draft.backupCodes.json),
    ])
  }
}
