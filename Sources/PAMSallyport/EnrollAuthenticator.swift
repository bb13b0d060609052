import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

// One authenticator of an enrollment inside the login: the secret, and a code that proves that the
// app has it.

private let tries = 5

extension EnrollmentConversation {
  /// nil if no code was correct.
  func setUp(_ kind: FactorKind, beside made: [Authenticator])
    throws(HostFailure) -> Authenticator?
  {
    let draft: Draft
    do throws(StoreTrouble) {
      draft = try self.draft(kind, beside: made)
    } catch {
      _ = try unavailable(error)
      return nil
    }
    try showSecret(of: draft)
    for left in (0..<tries).reversed() {
      let typed = try host.ask(bytes(of: "Code shown by the app: "), echo: true)
      do throws(StoreTrouble) {
        let now = try login.verifier.store.now()
        if case .right(let state) = try draft.judge(firstCode: typed, at: now, under: policy) {
          return draft.authenticator.confirmed(by: state)
        }
      } catch {
        _ = try unavailable(error)
        return nil
      }
      var text = LogLine("Wrong code.")
      if kind == .totp { text.add(" Is the phone's clock set automatically?") }
      text.add(" ", left)
      text.add(left == 1 ? " try left." : " tries left.")
      try login.show(text)
    }
    return nil
  }

  private func draft(_ kind: FactorKind, beside made: [Authenticator])
    throws(StoreTrouble) -> Draft
  {
    let usual = CodeParameters.standard
    let counted = CodeParameters(type: .hotp, algorithm: usual.algorithm, digits: usual.digits)
    let parameters = kind == .hotp ? counted ?? usual : usual
    let others = (record?.enrollment.authenticators ?? []) + made
    return try Draft(
      for: account.name, named: freeName(for: parameters.type, beside: others.map { $0.name }),
      parameters, secret: try Random.secret(count: parameters.algorithm.secretLength),
      issuer: HostName.label, at: try login.verifier.store.now())
  }

  /// Text first, because the ssh client puts its own words before the first line; the code last,
  /// because it is what stays on the screen.
  private func showSecret(of draft: Draft) throws(HostFailure) {
    let uri = draft.uri
    let matrix = uri.text(omittingDefaults: true).flatMap { QREncoder.encode($0) }
    guard let key = Base32.encode(draft.authenticator.secret), let complete = uri.text() else {
      throw .memory
    }
    var text = SecretText(capacity: 1024)
    text.add("Add this to an authenticator app:\n")
    text.add(complete)
    text.add("\nKey to type by hand:")
    for index in 0..<key.count {
      if index % 4 == 0 { text.put(UInt8(ascii: " ")) }
      text.put(key[index])
    }
    guard let shown = text.finish() else { throw .memory }
    try host.show(shown)
    let drawing = matrix?.halfBlocks(quietZone: QRMatrix.usualQuietZone)
    if let drawing { try host.show(drawing) }
  }
}
