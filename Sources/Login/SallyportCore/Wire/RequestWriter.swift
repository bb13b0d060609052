package import OneTimePassword

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

  /// What was typed, or the factors of a change; empty where there is neither.
  private func secret() -> Secret? {
    switch verb {
    case .attempt(let typed, _, _): typed.count > Response.maximumLength ? Secret(count: 0) : typed
    case .amend(let change, let id): secret(of: change, to: id)
    case .prepare, .enrolled, .level, .remember, .count, .rehearse: Secret(count: 0)
    }
  }

  /// As the store keeps it.
  private func secret(of change: EnrollmentChange, to id: UInt64) -> Secret? {
    switch change {
    case .create(let enrollment):
      id == 0 && same(enrollment.user.bytes, name) ? enrollment.written() : nil
    case .add(let authenticators, let codes): part(authenticators, codes, of: id)
    case .renew(let codes): part([], codes, of: id)
    case .remove, .rename: id == 0 ? nil : Secret(count: 0)
    }
  }

  /// Factors, as an enrollment that has no others.
  private func part(_ authenticators: [Authenticator], _ codes: BackupCodeSet?, of id: UInt64)
    -> Secret?
  {
    guard id != 0, let user = UserName(name) else { return nil }
    let part = Enrollment(
      id: id, user: user, uid: nil, created: UnixTime(0), authenticators: authenticators,
      backupCodes: codes)
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
    case .attempt(let typed, let known, let turn):
      let known = known ?? (typed.count > Response.maximumLength ? .tooLong : nil)
      put(count: known.map { Int($0.rawValue) + 1 } ?? 0)
      put(turn)
    case .enrolled, .level, .count, .rehearse: break
    case .remember: if case .address = request.origin {} else { fail() }
    case .amend(let change, let id):
      put(id)
      put(change)
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
    put(isThere: policy.isRefusedByRule)
  }

  private mutating func put(_ turn: Turn) {
    switch turn {
    case .firstPass: put(count: 0)
    case .last(let charge):
      put(count: charge == nil ? 1 : 2)
      if let charge { put(charge) }
    }
  }

  private mutating func put(_ change: EnrollmentChange) {
    put(count: Int(change.number.rawValue))
    switch change {
    case .create, .add, .renew: break
    case .remove(let name): put(name)
    case .rename(let name, let new):
      put(name)
      put(new)
    }
  }
}
