package import OneTimePassword
package import SallyportCore

// The wire between `sallyport`, run by somebody who is not root, and `sallyport-session`. A frame
// is one packet of a SOCK_SEQPACKET socket: version, kind, number of fields (1 byte each), then
// each field after its length (2 bytes, the lower first). Nothing may follow.

/// What the frames of both sides have in common.
enum SessionFrame {
  /// The longest packet, either way.
  static let longest = 16_384
  static let mostFields = 80
}

/// What the user's command says to a session: first the change request, then an answer to each
/// prompt.
package enum FromUser: Sendable {
  case change(ChangeRequest)
  case answer(Secret)
}

extension FromUser: SecretFrame {
  package static let longest = SessionFrame.longest
  private static let answerKind: UInt8 = 0x21

  package static func pass(_ message: Self?, _ fields: inout Fields) -> Self? {
    let (kind, change, typed): (UInt8?, ChangeRequest?, Secret?) =
      switch message {
      case nil: (nil, nil, nil)
      case .change(let change)?: (change.kind.rawValue, change, nil)
      case .answer(let typed)?: (answerKind, nil, typed)
      }
    let read = fields.byte(kind)
    guard read == answerKind else {
      return ChangeRequest.Kind(rawValue: read)
        .flatMap { ChangeRequest.pass($0, change, &fields) }.map { .change($0) }
    }
    fields.constant(1)
    return fields.secret(typed).map { .answer($0) }
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
  /// A helper gave somebody this pass, which is shown once and ends at that time.
  case passed(to: UserName, Secret, until: UnixTime)
  /// A helper lent somebody that many tries.
  case lent(to: UserName, tries: UInt8)
  /// Nothing was changed. With the subject of the refusal, if it has one.
  case refused(ChangeRefusal, [UInt8])
}

extension FromSession: SecretFrame {
  package static let longest = SessionFrame.longest

  package static func pass(_ message: Self?, _ fields: inout Fields) -> Self? {
    switch fields.byte(message?.kind) {
    case 0x31:
      var own: (text: [UInt8], echo: UInt8)?
      if case .prompt(let text, let echo)? = message { own = (text, echo ? 1 : 0) }
      fields.constant(2)
      let (text, echo) = (fields.text(own?.text), fields.single(own?.echo))
      return echo > 1 ? nil : .prompt(text, echo: echo == 1)
    case 0x32:
      let own: [UInt8]? = if case .text(let text)? = message { text } else { nil }
      fields.constant(1)
      return .text(fields.text(own))
    case 0x33:
      var own: (user: UserName, name: Label, secret: Secret)?
      if case .secret(let user, let name, let secret)? = message { own = (user, name, secret) }
      fields.constant(3)
      guard let user = fields.longName(own?.user), let name = fields.longLabel(own?.name),
        let secret = fields.secret(own?.secret)
      else { return nil }
      return .secret(of: user, name: name, secret)
    case 0x34: return done(message, &fields)
    case 0x35:
      var own: (enrollment: Secret, state: Secret)?
      if case .status(let enrollment, let state)? = message { own = (enrollment, state) }
      fields.constant(2)
      guard let enrollment = fields.secret(own?.enrollment), let state = fields.secret(own?.state)
      else { return nil }
      return .status(enrollment: enrollment, state: state)
    case 0x37:
      var own: (user: UserName, code: Secret, time: UInt64)?
      if case .passed(let user, let code, let end)? = message {
        own = (user, code, UInt64(max(end.seconds, 0)))
      }
      fields.constant(3)
      let (user, code) = (fields.longName(own?.user), fields.secret(own?.code))
      fields.constant(8)
      fields.constant(0)
      let time = fields.number(own?.time)
      guard let user, let code, time <= UInt64(Int64.max) else { return nil }
      return .passed(to: user, code, until: UnixTime(Int64(clamping: time)))
    case 0x38:
      var own: (user: UserName, tries: UInt8)?
      if case .lent(let user, let tries)? = message { own = (user, tries) }
      fields.constant(2)
      let (user, tries) = (fields.longName(own?.user), fields.single(own?.tries))
      return user.map { .lent(to: $0, tries: tries) }
    case 0x36:
      var own: (refusal: ChangeRefusal, about: [UInt8])?
      if case .refused(let refusal, let about)? = message { own = (refusal, about) }
      fields.constant(2)
      let (number, about) = (fields.single(own?.refusal.rawValue), fields.text(own?.about))
      return ChangeRefusal(rawValue: number).map { .refused($0, about) }
    case _: return nil
    }
  }

  private var kind: UInt8 {
    switch self {
    case .prompt: 0x31
    case .text: 0x32
    case .secret: 0x33
    case .done: 0x34
    case .status: 0x35
    case .refused: 0x36
    case .passed: 0x37
    case .lent: 0x38
    }
  }

  /// User, how many names, these, and the codes.
  private static func done(_ message: Self?, _ fields: inout Fields) -> Self? {
    var own: (user: UserName, codes: [Secret], names: [Label])?
    if case .done(let user, let codes, let names)? = message { own = (user, codes, names) }
    let count = fields.length(own.map { 2 + $0.names.count + $0.codes.count }, bytes: 1)
    let user = fields.longName(own?.user)
    let names = Int(fields.single(own.map { UInt8(truncatingIfNeeded: $0.names.count) }))
    guard let user, count <= SessionFrame.mostFields, 2 + names <= count else { return nil }
    let labels = fields.several(own?.names, names) { $0.longLabel($1) }
    let codes = fields.several(own?.codes, count - 2 - names) { $0.secret($1) }
    return .done(of: user, backupCodes: codes, names: labels)
  }
}

extension Fields {
  /// A number, as a field of one byte.
  mutating func single(_ value: UInt8?) -> UInt8 {
    constant(1)
    constant(0)
    return byte(value)
  }

  mutating func longName(_ value: UserName?) -> UserName? { valid(UserName(text(value?.bytes))) }
  mutating func longLabel(_ value: Label?) -> Label? { valid(Label(text(value?.bytes))) }
}
