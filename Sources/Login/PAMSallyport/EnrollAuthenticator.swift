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
      draw: { look throws(PAMFailure) in try showDrawing(of: draft, look) })
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

  /// Text first, because the ssh client puts its own words before the first line. `isFirst`:
  /// nothing else of this user is valid.
  ///
  /// A login may end before the first code, as sshd's LoginGraceTime does it. The entry that is
  /// then left in the app has another ending than this one.
  private func showSecret(of draft: Draft, isFirst: Bool) throws(PAMFailure) {
    guard let complete = draft.uri.text() else { throw .memory }
    let sentences = login.telling
    var text = SecretText(capacity: 4096)
    text.add(sentences.prompt(.addToApp, end: 0x0a))
    text.add(complete)
    if isFirst {
      text.put(0x0a)
      text.add(sentences.text(.voidEntry, [UInt8](draft.account.bytes.suffix(5))))
    }
    guard let shown = text.finish() else { throw .memory }
    try host.show(shown)
    try showDrawing(of: draft, QRLook())
  }

  /// The QR code, drawn again each time: nothing of it stays in memory between two prompts. Below
  /// it is the key, which stays on the screen when the code is higher than that; or the key alone.
  /// With the key and the prompt the usual one has 24 lines.
  private func showDrawing(of draft: Draft, _ look: QRLook) throws(PAMFailure) {
    let sentences = login.telling
    guard let key = Base32.encode(draft.authenticator.secret) else { throw .memory }
    var matrix = draft.uri.text(omittingDefaults: true).flatMap { QREncoder.encode($0) }
    if look.isASCII || matrix?.size ?? 0 > 37 {
      matrix = draft.narrowURI.text(omittingDefaults: true).flatMap { QREncoder.encode($0) }
    }
    var drawing: Secret?
    if look.isASCII, let matrix {
      // In 80 columns.
      let zone = matrix.size > 36 ? 1 : QRMatrix.usualQuietZone
      try login.show(sentences.text(.tallDrawing, decimalText(UInt64(matrix.size + 2 * zone))))
      drawing = matrix.ascii(quietZone: zone, darkInk: look.hasDarkInk)
    } else {
      drawing = matrix?.halfBlocks(
        quietZone: QRMatrix.usualQuietZone, darkInk: look.hasDarkInk)
    }
    var text = SecretText(capacity: (drawing?.count ?? 0) + 4096)
    if let drawing { text.add(drawing) }
    text.add(sentences.text(.keyByHand))
    for index in 0..<key.count {
      if index % 4 == 0 { text.put(UInt8(ascii: " ")) }
      text.put(key[index])
    }
    text.put(0x0a)
    text.add(sentences.text(.doesNotScan, bytes(of: "\\342")))
    guard let shown = text.finish() else { throw .memory }
    try host.show(shown)
  }
}
