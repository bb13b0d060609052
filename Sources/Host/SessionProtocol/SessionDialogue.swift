package import OneTimePassword
package import SallyportCore

/// What the user's command says to a session: first the change request, then an answer to each
/// prompt.
package enum FromUser: Sendable {
  case change(ChangeRequest)
  case answer(Secret)

  private static let answerKind: UInt8 = 0x21

  /// nil when out of memory, or where it is too long.
  package func encoded() -> Secret? {
    switch self {
    case .change(let change): change.frame?.encoded()
    case .answer(let typed): Frame(FromUser.answerKind, [typed]).encoded()
    }
  }

  /// Total: nil for anything else.
  package static func decode(_ packet: Secret) -> FromUser? {
    guard let frame = Frame.decode(packet) else { return nil }
    guard frame.kind == answerKind else { return ChangeRequest(frame).map { .change($0) } }
    return frame.fields.count == 1 ? .answer(frame.fields[0]) : nil
  }
}

/// What a session says. `refused` and `done` are its last words.
package enum FromSession: Sendable {
  /// To be shown, and answered.
  case prompt([UInt8], echo: Bool)
  /// To be shown.
  case text([UInt8])
  /// A new authenticator, which is stored only after a first code: whose it is, under which name,
  /// and its secret.
  case secret(of: UserName, name: Label, Secret)
  /// The change is on disk. `backupCodes`: new ones, shown once. `names`: the authenticators that
  /// there are now.
  case done(of: UserName, backupCodes: [Secret], names: [Label])
  /// What is enrolled, as it is stored but without secrets and digests: the enrollment's text, and
  /// the file of its state.
  case status(enrollment: Secret, state: Secret)
  /// Nothing was changed. With the subject of the refusal, if it has one.
  case refused(ChangeRefusal, [UInt8])

  fileprivate enum Kind: UInt8 {
    case prompt = 0x31
    case text, secret, done, status, refused
  }

  /// nil when out of memory, or where it is too long.
  package func encoded() -> Secret? {
    switch self {
    case .prompt(let text, let echo): FromSession.encoded(.prompt, [text, [echo ? 1 : 0]])
    case .text(let text): FromSession.encoded(.text, [text])
    case .secret(let user, let name, let secret):
      FromSession.encoded(.secret, [user.bytes, name.bytes], [secret])
    case .done(let user, let codes, let names):
      FromSession.encoded(
        .done, [user.bytes, [UInt8(truncatingIfNeeded: names.count)]] + names.map(\.bytes), codes)
    case .status(let enrollment, let state): FromSession.encoded(.status, [], [enrollment, state])
    case .refused(let refusal, let about):
      FromSession.encoded(.refused, [[refusal.rawValue], about])
    }
  }

  private static func encoded(_ kind: Kind, _ plain: [[UInt8]], _ secrets: [Secret] = [])
    -> Secret?
  {
    let fields = plain.compactMap { Secret($0) }
    return fields.count == plain.count ? Frame(kind.rawValue, fields + secrets).encoded() : nil
  }

  /// Total: nil for anything else.
  package static func decode(_ packet: Secret) -> FromSession? {
    guard let frame = Frame.decode(packet), let kind = Kind(rawValue: frame.kind) else {
      return nil
    }
    let fields = frame.fields
    if kind == .done { return done(fields) }
    guard fields.count == kind.fields else { return nil }
    switch kind {
    case .prompt:
      return fields[1].number.flatMap { $0 > 1 ? nil : .prompt(fields[0].plain, echo: $0 == 1) }
    case .text: return .text(fields[0].plain)
    case .secret:
      guard let user = UserName(fields[0].plain), let name = Label(fields[1].plain) else {
        return nil
      }
      return .secret(of: user, name: name, fields[2])
    case .done: return nil
    case .status: return .status(enrollment: fields[0], state: fields[1])
    case .refused:
      return fields[0].number.flatMap(ChangeRefusal.init).map { .refused($0, fields[1].plain) }
    }
  }

  private static func done(_ fields: [Secret]) -> FromSession? {
    guard fields.count >= 2, let user = UserName(fields[0].plain),
      let count = fields[1].number.map({ Int($0) }), fields.count >= 2 + count
    else { return nil }
    let names = fields[2..<2 + count].compactMap { Label($0.plain) }
    guard names.count == count else { return nil }
    return .done(of: user, backupCodes: Array(fields[(2 + count)...]), names: names)
  }
}

extension FromSession.Kind {
  /// How many fields it has; those of `done` are counted in it.
  fileprivate var fields: Int {
    switch self {
    case .text: 1
    case .prompt, .status, .refused: 2
    case .secret: 3
    case .done: 0
    }
  }
}
