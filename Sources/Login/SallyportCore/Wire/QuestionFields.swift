package import OneTimePassword

// The fields of a question, written and read.

extension LoginQuestion {
  /// The frame: version, the lengths of the fields (2 bytes, with these five) and of the secret
  /// (2), the fields, and the secret, which is no field because an array is not wiped.
  ///
  /// nil where a value has no place in a frame, or out of memory.
  package func encoded() -> Secret? {
    guard !name.isEmpty, let secret = secret() else { return nil }
    var fields = ByteWriter(count: Wire.mostBytesOfFields)
    fields.position = Wire.headSize
    fields.put(self)
    let length = fields.position
    fields.position = 0
    fields.put(count: Int(waits ? Wire.waiting : Wire.written))
    fields.put(UInt64(length), bytes: 2)
    fields.put(UInt64(secret.count), bytes: 2)
    guard fields.isWhole else { return nil }
    var frame = SecretText(capacity: length + secret.count)
    for byte in fields.bytes.prefix(length) { frame.put(byte) }
    frame.add(secret)
    return frame.finish()
  }

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

  /// What was typed, or the factors of a change; empty where there is neither.
  private func secret() -> Secret? {
    switch verb {
    case .attempt(let typed, _, _): typed.count > Response.maximumLength ? Secret(count: 0) : typed
    case .amend(let change, let id): secret(of: change, to: id)
    case .prepare, .enrolled, .level, .remember, .count, .rehearse, .notices: Secret(count: 0)
    }
  }

  /// As the store keeps it.
  private func secret(of change: EnrollmentChange, to id: UInt64) -> Secret? {
    switch change {
    case .create(let enrollment):
      id == 0 && same(enrollment.user.bytes, name) ? enrollment.written() : nil
    case .add(let authenticators, let codes), .replace(let authenticators, let codes, _):
      part(authenticators, codes, of: id)
    case .renew(let codes): part([], codes, of: id)
    case .give(let pass): part([], nil, pass, of: id)
    case .remove, .rename, .revoke: id == 0 ? nil : Secret(count: 0)
    }
  }

  /// Factors, as an enrollment that has no others.
  private func part(
    _ authenticators: [Authenticator], _ codes: BackupCodeSet?, _ pass: Pass? = nil, of id: UInt64
  ) -> Secret? {
    guard id != 0, let user = UserName(name) else { return nil }
    let part = Enrollment(
      id: id, user: user, uid: nil, created: UnixTime(0), authenticators: authenticators,
      backupCodes: codes, passes: pass.map { [$0] } ?? [])
    return part.written()
  }
}

extension ByteWriter {
  fileprivate mutating func put(_ request: LoginQuestion) {
    put(counted: request.name)
    put(counted: request.service)
    put(request.origin)
    put(request.policy)
    put(UInt64(request.millisecondsLeft), bytes: 4)
    put(isThere: request.isAway)
    put(count: Int(request.verb.number.rawValue))
    switch request.verb {
    case .prepare(let mayEnroll, let first):
      put(isThere: mayEnroll)
      put(count: Int(first.rawValue))
    case .attempt(let typed, let known, let role):
      let known = known ?? (typed.count > Response.maximumLength ? .tooLong : nil)
      put(count: known.map { Int($0.rawValue) + 1 } ?? 0)
      put(role)
    case .enrolled, .level, .count, .rehearse: break
    case .remember: if case .address = request.origin {} else { fail() }
    case .amend(let change, let id):
      put(id)
      put(change)
    case .notices(let name, let told):
      put(name)
      put(isThere: told != nil)
      if let told {
        put(UInt64(told.wrongCodes), bytes: 2)
        put(told.latest)
      }
    }
  }

  private mutating func put(_ origin: LoginQuestion.StatedOrigin) {
    switch origin {
    case .unknown: put(count: 0)
    case .local: put(count: 1)
    case .address(let address):
      put(count: 2)
      put(address.bytes)
    }
  }

  package mutating func put(_ policy: Policy) {
    for key in PolicyKey.allCases where key.isAsked {
      put(key == .guessBudget ? policy.statedBudget : policy[key])
    }
    // As it was before passes where they are on.
    put(count: (policy.isRefusedByRule ? 1 : 0) + (policy.acceptsPasses ? 0 : 2))
  }

  private mutating func put(_ role: ResponseRole) {
    switch role {
    case .firstPass: put(count: 0)
    case .last(let charge):
      put(count: charge == nil ? 1 : 2)
      if let charge { put(charge) }
    case .claim(let claim):
      put(count: 3)
      put(claim)
    }
  }

  private mutating func put(_ change: EnrollmentChange) {
    put(count: Int(change.number.rawValue))
    switch change {
    case .create, .add, .renew, .give, .revoke: break
    case .remove(let name): put(name)
    case .rename(let name, let new):
      put(name)
      put(new)
    case .replace(_, _, let claim): put(claim)
    }
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
    let bits = count(atMost: 3)
    policy.isRefusedByRule = bits & 1 == 1
    policy.acceptsPasses = bits & 2 == 0
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
      return .attempt(secret, knownAs: malformation, as: role())
    case .enrolled: return .enrolled
    case .level: return .level
    case .remember: return .remember
    case .count: return .count
    case .rehearse: return .rehearse
    case .notices:
      let name = label()
      guard isThere() else { return .notices(by: name, told: nil) }
      let wrongCodes = UInt16(truncatingIfNeeded: number(bytes: 2))
      return .notices(by: name, told: ToldNotices(wrongCodes: wrongCodes, latest: time()))
    case .amend:
      let id = number64()
      return change(secret).map { .amend($0, to: id) }
    case nil: return nil
    }
  }

  private mutating func role() -> ResponseRole {
    switch count(atMost: 3) {
    case 1: .last(givingBack: nil)
    case 2: .last(givingBack: charge())
    case 3: .claim(number64())
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
    case .give:
      guard let part = try? Enrollment.readPart(secret), let pass = part.passes.first else {
        return nil
      }
      return .give(pass)
    case .revoke: return .revoke
    case .replace:
      let claim = number64()
      guard let part = try? Enrollment.readPart(secret) else { return nil }
      return .replace(part.authenticators, backupCodes: part.backupCodes, claim: claim)
    case nil: return nil
    }
  }
}
