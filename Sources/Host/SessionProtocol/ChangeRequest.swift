package import OneTimePassword
package import SallyportCore

/// A user's change request to a session, sent before the session asks anything.
package enum ChangeRequest: Equatable, Sendable {
  /// To see what is enrolled.
  case status
  /// `name`: nil for a free one. `backupCodes`: 0 to 32.
  case enroll(name: Label?, CodeParameters, backupCodes: UInt8)
  case add(name: Label?, CodeParameters)
  case remove(Label)
  case rename(Label, to: Label)
  /// New backup codes in the place of those that are there.
  case renew
  /// For somebody else, by a member of the helpdesk.
  case help(HelpAct, UserName)
}

/// What a member of the helpdesk wants to do for somebody.
package enum HelpAct: Equatable, Sendable {
  case status, unlock, pass, passEnroll
  /// nil: until it is lifted.
  case block(until: UnixTime?)
  case unblock

  /// By what the policy lets him.
  package var verb: HelpVerb {
    switch self {
    case .status: .status
    case .unlock: .unlock
    case .pass: .pass
    case .passEnroll: .passEnroll
    case .block, .unblock: .block
    }
  }
}

extension ChangeRequest {
  /// As its byte in a frame.
  enum Kind: UInt8 {
    case status = 0x11
    case enroll, add, remove, rename, renew, help
  }

  var kind: Kind {
    switch self {
    case .status: .status
    case .enroll: .enroll
    case .add: .add
    case .remove: .remove
    case .rename: .rename
    case .renew: .renew
    case .help: .help
    }
  }

  /// How many fields a request of this kind has, and each after its length.
  static func pass(_ kind: Kind, _ request: Self?, _ fields: inout Fields) -> Self? {
    switch kind {
    case .status, .renew:
      fields.constant(0)
      return kind == .status ? .status : .renew
    case .enroll:
      var own: (name: Label?, parameters: CodeParameters, codes: UInt8)?
      if case .enroll(let name, let parameters, let codes)? = request {
        own = (name, parameters, codes)
      }
      fields.constant(3)
      let name = fields.newName(own.map { $0.name })
      let parameters = fields.parameters(own?.parameters)
      let codes = fields.single(own?.codes)
      if codes > BackupCodeSet.maximumCodes { fields.fail() }
      return parameters.map { .enroll(name: name, $0, backupCodes: codes) }
    case .add:
      var own: (name: Label?, parameters: CodeParameters)?
      if case .add(let name, let parameters)? = request { own = (name, parameters) }
      fields.constant(2)
      let name = fields.newName(own.map { $0.name })
      return fields.parameters(own?.parameters).map { .add(name: name, $0) }
    case .remove:
      let own: Label? = if case .remove(let name)? = request { name } else { nil }
      fields.constant(1)
      return fields.longLabel(own).map { .remove($0) }
    case .rename:
      var own: (name: Label, new: Label)?
      if case .rename(let name, let new)? = request { own = (name, new) }
      fields.constant(2)
      guard let name = fields.longLabel(own?.name), let new = fields.newName(own.map { $0.new })
      else { return nil }
      return .rename(name, to: new)
    case .help:
      var own: (act: HelpAct, user: UserName)?
      if case .help(let act, let user)? = request { own = (act, user) }
      fields.constant(3)
      let number = fields.single(own?.act.number)
      let user = fields.longName(own?.user)
      fields.constant(8)
      fields.constant(0)
      let end = fields.number(own.map { UInt64(max($0.act.end?.seconds ?? 0, 0)) })
      guard let user, let act = HelpAct(number, until: end) else { return nil }
      return .help(act, user)
    }
  }
}

extension HelpAct {
  /// What the prompt for the helper's code names.
  package func purpose(for user: UserName) -> [UInt8] {
    let name = escaped(user.bytes, limit: 255)
    switch self {
    case .status: return bytes(of: "see the status of ") + name
    case .unlock: return bytes(of: "lend tries to ") + name
    case .pass: return bytes(of: "give a pass to ") + name
    case .passEnroll: return bytes(of: "give a pass that enrolls to ") + name
    case .block: return bytes(of: "block ") + name
    case .unblock: return bytes(of: "lift the block of ") + name
    }
  }

  /// In a frame.
  fileprivate var number: UInt8 {
    switch self {
    case .status: 1
    case .unlock: 2
    case .pass: 3
    case .passEnroll: 4
    case .block: 5
    case .unblock: 6
    }
  }

  fileprivate var end: UnixTime? { if case .block(let until) = self { until } else { nil } }

  /// nil for what is no act. `end`: 0 for none, which is what all but a block have.
  fileprivate init?(_ number: UInt8, until end: UInt64) {
    guard let seconds = Int64(exactly: end), seconds == 0 || number == 5 else { return nil }
    switch number {
    case 1: self = .status
    case 2: self = .unlock
    case 3: self = .pass
    case 4: self = .passEnroll
    case 5: self = .block(until: seconds == 0 ? nil : UnixTime(seconds))
    case 6: self = .unblock
    case _: return nil
    }
  }
}

extension Fields {
  /// A name that nothing has yet; nil: a free one.
  fileprivate mutating func newName(_ value: Label??) -> Label? {
    let text = text(value.map { $0?.bytes ?? [] })
    let name = Label(text)
    if !(name?.isClear ?? text.isEmpty) { fail() }
    return name
  }

  /// Period of a TOTP or 0 (2 bytes), hash, digits.
  fileprivate mutating func parameters(_ value: CodeParameters?) -> CodeParameters? {
    constant(4)
    constant(0)
    let own: Int? = value.map { if case .totp(let seconds) = $0.type { Int(seconds) } else { 0 } }
    let period = length(own, bytes: 2)
    let algorithm = HashAlgorithm(rawValue: byte(value?.algorithm.rawValue))
    let digits = Digits(rawValue: byte(value?.digits.rawValue))
    guard let algorithm, let digits else { return nil }
    return CodeParameters(
      type: period == 0 ? .hotp : .totp(period: UInt32(period)), algorithm: algorithm,
      digits: digits)
  }
}
