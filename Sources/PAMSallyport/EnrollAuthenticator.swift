import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

// One authenticator of an enrollment inside the login: the secret, and a code that shows that the
// app has it.

private let tries = 5

extension EnrollmentConversation {
  /// nil where no code was right.
  func setUp(_ kind: FactorKind, beside made: [Authenticator])
    throws(HostFailure) -> Authenticator?
  {
    let draft: Authenticator
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
        if let confirmed = try confirmed(draft, by: typed) { return confirmed }
      } catch {
        _ = try unavailable(error)
        return nil
      }
      var text = LogLine("Not the right code.")
      if kind == .totp { text.add(" Is the phone's clock set automatically?") }
      text.add(" ", left)
      text.add(left == 1 ? " try left." : " tries left.")
      try login.show(text)
    }
    return nil
  }

  private func draft(_ kind: FactorKind, beside made: [Authenticator])
    throws(StoreTrouble) -> Authenticator
  {
    let usual = CodeParameters.standard
    let counted = CodeParameters(type: .hotp, algorithm: usual.algorithm, digits: usual.digits)
    let parameters = kind == .hotp ? counted ?? usual : usual
    return Authenticator(
      id: try Random.identifier(), name: name(kind, beside: made), parameters: parameters,
      secret: try Random.secret(count: parameters.algorithm.secretLength),
      initialLastAccepted: nil, created: try login.verifier.store.now())
  }

  /// A name that no other authenticator of the user has.
  private func name(_ kind: FactorKind, beside made: [Authenticator]) -> Label {
    let others = (record?.enrollment.authenticators ?? []) + made
    let usual = kind == .hotp ? Label("counter") : Label("phone")
    var (name, number) = (usual, UInt64(2))
    while others.contains(where: { $0.name == name }), number < 100 {
      name = Label(usual.bytes + [UInt8(ascii: "-")] + decimalText(number)) ?? usual
      number += 1
    }
    return name
  }

  /// The authenticator with its first code used up; nil for a wrong one.
  private func confirmed(_ draft: Authenticator, by typed: Secret)
    throws(StoreTrouble) -> Authenticator?
  {
    let now = try login.verifier.store.now()
    do throws(CryptoError) {
      guard
        case .right(let state) = try judge(
          firstCode: typed, of: draft, for: account.name, at: now, under: policy)
      else { return nil }
      return Authenticator(
        id: draft.id, name: draft.name, parameters: draft.parameters, secret: draft.secret,
        initialLastAccepted: state.lastAccepted, created: draft.created)
    } catch {
      throw .crypto(error)
    }
  }

  /// Text first, because the ssh client puts its own words before the first line; the code last,
  /// because it is what stays on the screen.
  private func showSecret(of draft: Authenticator) throws(HostFailure) {
    let uri = OtpauthURI(
      issuer: HostName.label.bytes, account: accountName, secret: draft.secret,
      parameters: draft.parameters)
    let matrix = uri.text(omittingDefaults: true).flatMap { QREncoder.encode($0) }
    guard let key = Base32.encode(draft.secret), let complete = uri.text() else { throw .memory }
    var text = SecretText(capacity: 1024)
    text.add("Add this to an authenticator app:\n")
    for index in 0..<complete.count { text.put(complete[index]) }
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

  private var accountName: [UInt8] {
    let name = account.name.bytes
    return [UInt8](name.prefix(Label.maximumLength))
  }
}
