import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

// One authenticator of an enrollment inside the login: the secret, and a code that proves that the
// app has it.

extension EnrollmentConversation {
  /// nil if no code was correct.
  func setUp(_ kind: FactorKind, beside made: [Authenticator])
    throws(PAMFailure) -> Authenticator?
  {
    let draft: Draft
    do throws(StoreTrouble) {
      draft = try self.draft(kind, beside: made)
    } catch {
      _ = try unavailable(error)
      return nil
    }
    try showSecret(of: draft, isFirst: isNew && made.isEmpty)
    let first = try draft.firstCode(
      under: policy, in: login.telling, now: { () throws(StoreTrouble) in try login.store.now() },
      ask: { question throws(PAMFailure) in try host.ask(question, echo: true) },
      show: { text throws(PAMFailure) in try login.show(text.bytes) },
      invert: { () throws(PAMFailure) in try showDrawing(of: draft, darkInk: true) })
    switch first {
    case .success(let state): return state.map { draft.authenticator.confirmed(by: $0) }
    case .failure(let trouble):
      _ = try unavailable(trouble)
      return nil
    }
  }

  private func draft(_ kind: FactorKind, beside made: [Authenticator])
    throws(StoreTrouble) -> Draft
  {
    // What cannot be stored is not shown.
    try login.authority.rehearse(for: account, in: context)
    let usual = CodeParameters.standard
    let counted = CodeParameters(type: .hotp, algorithm: usual.algorithm, digits: usual.digits)
    let parameters = kind == .hotp ? counted ?? usual : usual
    let present = isNew ? [] : enrolled?.shape.authenticators ?? []
    let taken = present.map { $0.name } + made.map { $0.name }
    return try Draft(
      for: account.name, named: freeName(for: parameters.type, beside: taken),
      parameters, secret: try Random.secret(count: parameters.algorithm.secretLength),
      issuer: HostName.label,
      ending: [UInt8(ascii: "-")] + hexadecimal(try Random.identifier()).prefix(4),
      at: try login.store.now())
  }

  /// Text first, because the ssh client puts its own words before the first line; the code last,
  /// because it is what stays on the screen. `isFirst`: nothing else of this user is valid.
  ///
  /// A login may end before the first code, as sshd's LoginGraceTime does it. The entry that is
  /// then left in the app has another ending than this one.
  private func showSecret(of draft: Draft, isFirst: Bool) throws(PAMFailure) {
    let uri = draft.uri
    guard let key = Base32.encode(draft.authenticator.secret), let complete = uri.text() else {
      throw .memory
    }
    let sentences = login.telling
    var text = SecretText(capacity: 4096)
    text.add(sentences.prompt(.addToApp, end: 0x0a))
    text.add(complete)
    text.put(0x0a)
    text.add(sentences.text(.keyByHand))
    for index in 0..<key.count {
      if index % 4 == 0 { text.put(UInt8(ascii: " ")) }
      text.put(key[index])
    }
    if isFirst {
      text.put(0x0a)
      text.add(sentences.text(.voidEntry, [UInt8](draft.account.bytes.suffix(5))))
    }
    text.put(0x0a)
    text.add(sentences.text(.doesNotScan))
    guard let shown = text.finish() else { throw .memory }
    try host.show(shown)
    try showDrawing(of: draft, darkInk: false)
  }

  /// The QR code, drawn again each time: nothing of it stays in memory between two prompts.
  private func showDrawing(of draft: Draft, darkInk: Bool) throws(PAMFailure) {
    let matrix = draft.uri.text(omittingDefaults: true).flatMap { QREncoder.encode($0) }
    let drawing = matrix?.halfBlocks(quietZone: QRMatrix.usualQuietZone, darkInk: darkInk)
    if let drawing { try host.show(drawing) }
  }
}
