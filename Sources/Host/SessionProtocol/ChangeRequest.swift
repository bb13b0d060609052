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

  /// The change that the prompt for the code names; nothing if no code is asked for.
  package func purpose(_ name: Label?) -> [UInt8] {
    func named(_ verb: StaticString, _ label: Label?) -> [UInt8] {
      bytes(of: verb) + bytes(of: " \"") + (label?.bytes ?? []) + bytes(of: "\"")
    }
    switch self {
    case .status, .enroll: return []
    case .add: return named("add", name)
    case .remove(let label): return named("remove", label)
    case .rename(let label, let new):
      return named("rename", label) + bytes(of: " to \"") + new.bytes + bytes(of: "\"")
    case .renew: return bytes(of: "make new backup codes")
    }
  }
}

extension ChangeRequest {
  /// As its byte in a frame.
  enum Kind: UInt8 {
    case status = 0x11
    case enroll, add, remove, rename, renew
  }

  /// nil when out of memory.
  var frame: Frame? {
    switch self {
    case .status: Frame(Kind.status.rawValue, [])
    case .enroll(let name, let parameters, let count):
      ChangeRequest.frame(.enroll, [name?.bytes ?? [], parameters.bytes, [count]])
    case .add(let name, let parameters):
      ChangeRequest.frame(.add, [name?.bytes ?? [], parameters.bytes])
    case .remove(let name): ChangeRequest.frame(.remove, [name.bytes])
    case .rename(let name, let new): ChangeRequest.frame(.rename, [name.bytes, new.bytes])
    case .renew: Frame(Kind.renew.rawValue, [])
    }
  }

  private static func frame(_ kind: Kind, _ fields: [[UInt8]]) -> Frame? {
    let secrets = fields.compactMap { Secret($0) }
    return secrets.count == fields.count ? Frame(kind.rawValue, secrets) : nil
  }

  /// nil for any other frame.
  init?(_ frame: Frame) {
    let fields = frame.fields.map(\.plain)
    guard let kind = Kind(rawValue: frame.kind) else { return nil }
    switch (kind, fields.count) {
    case (.status, 0): self = .status
    case (.renew, 0): self = .renew
    case (.remove, 1):
      guard let name = Label(fields[0]) else { return nil }
      self = .remove(name)
    case (.rename, 2):
      guard let name = Label(fields[0]), let new = Label(fields[1]), new.isClear else {
        return nil
      }
      self = .rename(name, to: new)
    case (.enroll, 3), (.add, 2):
      let name = Label(fields[0])
      guard name?.isClear ?? fields[0].isEmpty, let parameters = CodeParameters(fields[1]) else {
        return nil
      }
      guard kind == .enroll else {
        self = .add(name: name, parameters)
        return
      }
      guard fields[2].count == 1, fields[2][0] <= BackupCodeSet.maximumCodes else { return nil }
      self = .enroll(name: name, parameters, backupCodes: fields[2][0])
    case (.status, _), (.enroll, _), (.add, _), (.remove, _), (.rename, _), (.renew, _): return nil
    }
  }
}

extension CodeParameters {
  /// Period of a TOTP or 0 (2 bytes), hash, digits.
  var bytes: [UInt8] {
    var period: UInt32 = 0
    if case .totp(let seconds) = type { period = seconds }
    return [
      UInt8(truncatingIfNeeded: period), UInt8(truncatingIfNeeded: period >> 8),
      algorithm.rawValue, digits.rawValue,
    ]
  }

  init?(_ bytes: [UInt8]) {
    guard bytes.count == 4, let algorithm = HashAlgorithm(rawValue: bytes[2]),
      let digits = Digits(rawValue: bytes[3])
    else { return nil }
    let period = UInt32(bytes[0]) | UInt32(bytes[1]) << 8
    self.init(
      type: period == 0 ? .hotp : .totp(period: period), algorithm: algorithm, digits: digits)
  }
}
