package import OneTimePassword

extension LoginQuestion {
  /// Reads a frame. Total: any bytes give a request whose values are all in their ranges, or nil.
  package static func decode(_ frame: Secret) -> LoginQuestion? {
    let length = Int(frame[1]) | Int(frame[2]) << 8
    guard length <= frame.count, let secret = frame.slice(length..<frame.count) else { return nil }
    var fields = ByteReader(frame.bytes(in: 0..<length), 0..<length)
    let waits = frame[0] == Wire.waiting
    guard fields.takesVersion() || waits, fields.number(bytes: 2) == length,
      fields.number(bytes: 2) == secret.count, let request = fields.request(secret, waits: waits),
      fields.isWhole, fields.isAtEnd
    else { return nil }
    // What would be written otherwise is no frame of ours.
    guard let again = request.encoded() else { return nil }
    return constantTimeEquals(again, frame) ? request : nil
  }
}

extension ByteReader {
  /// Valid only if the reader then reports success at the end of its input.
  fileprivate mutating func request(_ secret: Secret, waits: Bool) -> LoginQuestion? {
    let name = counted()
    let (service, origin, policy) = (counted(), origin(), policy())
    let milliseconds = UInt32(truncatingIfNeeded: number(bytes: 4))
    let isAway = isThere()
    guard let verb = verb(of: name, secret) else { return nil }
    return LoginQuestion(
      name: name, service: service, origin: origin, policy: policy, millisecondsLeft: milliseconds,
      verb: verb, isAway: isAway, waits: waits)
  }

  private mutating func origin() -> LoginQuestion.StatedOrigin {
    switch count(atMost: 2) {
    case 1: .local
    case 2: NumericAddress(take(16)).map { .address($0) } ?? .unknown
    case _: .unknown
    }
  }

  package mutating func policy() -> Policy {
    var policy = Policy()
    for key in PolicyKey.allCases where key.isAsked {
      let value = number64()
      if !key.bounds.contains(value) { fail() }
      policy[key] = value
    }
    policy.isRefusedByRule = isThere()
    return policy
  }

  private mutating func byte() -> UInt8 { UInt8(truncatingIfNeeded: number(bytes: 1)) }

  private mutating func verb(of name: [UInt8], _ secret: Secret) -> LoginQuestion.Verb? {
    switch LoginQuestion.Verb.Number(rawValue: byte()) {
    case .prepare:
      let mayEnroll = isThere()
      return FirstFactor(rawValue: byte()).map { .prepare(mayEnroll: mayEnroll, after: $0) }
    case .attempt:
      let known = count(atMost: Malformation.allCases.count)
      let malformation = Malformation(rawValue: UInt8(truncatingIfNeeded: known - 1))
      return .attempt(secret, knownAs: malformation, as: turn())
    case .enrolled: return .enrolled
    case .level: return .level
    case .remember: return .remember
    case .count: return .count
    case .rehearse: return .rehearse
    case .amend:
      let id = number64()
      return change(secret).map { .amend($0, to: id) }
    case nil: return nil
    }
  }

  private mutating func turn() -> Turn {
    switch count(atMost: 2) {
    case 1: .last(givingBack: nil)
    case 2: .last(givingBack: charge())
    case _: .firstPass
    }
  }

  private mutating func change(_ secret: Secret) -> EnrollmentChange? {
    switch EnrollmentChange.Number(rawValue: byte()) {
    case .create:
      guard let enrollment = try? Enrollment.read(secret) else { return nil }
      return .create(enrollment)
    case .add:
      guard let part = try? Enrollment.readPart(secret) else { return nil }
      return .add(part.authenticators, backupCodes: part.backupCodes)
    case .renew:
      guard let part = try? Enrollment.readPart(secret), let codes = part.backupCodes else {
        return nil
      }
      return .renew(codes)
    case .remove: return label().map { .remove($0) }
    case .rename:
      guard let name = label(), let new = label() else { return nil }
      return .rename(name, to: new)
    case nil: return nil
    }
  }
}
