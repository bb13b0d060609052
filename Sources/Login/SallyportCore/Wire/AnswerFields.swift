import OneTimePassword

// The fields of an answer, each kind written and read side by side.

extension ServiceAnswer {
  /// The frame; nil where a value has no place in one.
  package func encoded() -> [UInt8]? {
    var frame = ByteWriter(count: Wire.mostBytesOfFields)
    frame.put(count: Int(Wire.written))
    frame.put(self)
    return frame.isWhole ? [UInt8](frame.bytes.prefix(frame.position)) : nil
  }

  /// Reads the answer to a request. Total: any bytes give an answer that the service gives to this
  /// verb, with all values in their ranges, or nil.
  package static func decode(_ frame: [UInt8], to verb: LoginQuestion.Verb) -> ServiceAnswer? {
    var fields = ByteReader(frame, 0..<frame.count)
    guard fields.takesVersion(), let answer = fields.answer(), fields.isWhole, fields.isAtEnd,
      answer.answers(verb.number)
    else { return nil }
    return answer
  }
}

extension ByteWriter {
  /// In the place of a status: enrolled, and notices follow.
  fileprivate static let told = 4

  fileprivate mutating func put(_ answer: ServiceAnswer) {
    put(count: Int(answer.number.rawValue))
    switch answer {
    case .prompt(let status, let shape):
      put(robust: Int(status.rawValue))
      put(shape)
    case .told(let shape, let notices):
      put(robust: Self.told)
      put(shape)
      put(notices, of: shape)
    case .skip, .notEnrolled, .done, .changed, .notServed: break
    case .enroll(let level), .level(let level): put(robust: Int(level.rawValue) + 1)
    case .outcome(.accepted(let proof)): put(proof)
    case .outcome(.refused(let reason)): put(reason)
    case .count(let count): put(UInt64(count), bytes: 4)
    case .flaw(let flaw): put(flaw)
    case .trouble(let mayBeTheCallers): put(isThere: mayBeTheCallers)
    }
  }
}

extension ByteReader {
  /// Valid only if the reader then reports success at the end of its input.
  fileprivate mutating func answer() -> ServiceAnswer? {
    switch ServiceAnswer.Number(rawValue: UInt8(truncatingIfNeeded: number(bytes: 1))) {
    case .prompt:
      let kind = robust(atMost: ByteWriter.told)
      let shape = shape()
      if kind == ByteWriter.told { return .told(shape, notices(of: shape)) }
      return EnrollmentStatus(rawValue: UInt8(truncatingIfNeeded: kind)).map { .prompt($0, shape) }
    case .skip: return .skip
    case .enroll: return level().map { .enroll($0) }
    case .accepted: return proof().map { .outcome(.accepted($0)) }
    case .refused: return reason().map { .outcome(.refused($0)) }
    case .notEnrolled: return .notEnrolled
    case .level: return level().map { .level($0) }
    case .count: return .count(UInt32(truncatingIfNeeded: number(bytes: 4)))
    case .done: return .done
    case .changed: return .changed
    case .flaw: return flaw().map { .flaw($0) }
    case .trouble: return .trouble(mayBeTheCallers: isThere())
    case .notServed: return .notServed
    case nil: return nil
    }
  }

  private mutating func level() -> EnrollmentLevel? {
    EnrollmentLevel(rawValue: UInt8(truncatingIfNeeded: robust(atMost: 5) - 1))
  }
}

// MARK: the shape

extension Shape {
  /// Whether somebody has it: an enrollment, the decoy, or everybody while the fleet is away.
  fileprivate var isWhole: Bool {
    enrollmentID != 0
      && (isAway
        ? self == .away(as: enrollmentID)
        : (1...Enrollment.maximumAuthenticators).contains(authenticators.count))
  }
}

extension ByteWriter {
  private mutating func put(_ shape: Shape) {
    if !shape.isWhole { fail() }
    put(shape.enrollmentID)
    put(count: shape.authenticators.count)
    for authenticator in shape.authenticators {
      put(authenticator.name)
      put(count: Int(authenticator.kind.rawValue))
      put(count: Int(authenticator.digits.rawValue))
    }
    put(isThere: shape.backupCodesLeft != nil)
    if let left = shape.backupCodesLeft {
      put(count: left, atMost: 2 * BackupCodeSet.maximumCodes)
      put(isThere: shape.hasScratchCodes)
    }
    put(isThere: shape.wait != nil)
    if let wait = shape.wait { put(wait) }
    put(robust: shape.isAway ? 3 : shape.isRemembered ? 2 : 1)
  }
}

extension ByteReader {
  private mutating func shape() -> Shape {
    let id = number64()
    var authenticators: [Shape.Authenticator] = []
    let count = count(atMost: Enrollment.maximumAuthenticators)
    for _ in 0..<count {
      guard let name = label(), let kind = kind(), let digits = digits() else {
        fail()
        break
      }
      authenticators.append(Shape.Authenticator(name: name, kind: kind, digits: digits))
    }
    let left = isThere() ? self.count(atMost: 2 * BackupCodeSet.maximumCodes) : nil
    let hasScratchCodes = left != nil && isThere()
    let wait = isThere() ? number64() : nil
    let kind = robust(atMost: 3)
    let shape = Shape(
      enrollmentID: id, authenticators: authenticators, hasScratchCodes: hasScratchCodes,
      backupCodesLeft: left, wait: wait, isRemembered: kind == 2, isAway: kind == 3)
    if !shape.isWhole { fail() }
    return shape
  }

  private mutating func kind() -> FactorKind? {
    FactorKind(rawValue: UInt8(truncatingIfNeeded: count(atMost: 1)))
  }

  private mutating func digits() -> Digits? {
    Digits(rawValue: UInt8(truncatingIfNeeded: number(bytes: 1)))
  }
}

// MARK: the outcome

extension ByteWriter {
  private mutating func put(_ proof: Proof) {
    switch proof {
    case .authenticator(let name, let drift):
      put(count: 1)
      put(name)
      put(UInt64(UInt32(bitPattern: drift)), bytes: 4)
    case .backupCode(let left):
      put(count: 2)
      put(count: left, atMost: 2 * BackupCodeSet.maximumCodes)
    case .pass(let left):
      put(count: 3)
      put(count: left)
    case .claim(let left):
      put(count: 4)
      put(count: left)
    }
  }

  private mutating func put(_ reason: Outcome.Reason) {
    switch reason {
    case .notEnrolled: put(count: 0)
    case .unknownUser: put(count: 1)
    case .blocked: put(count: 8)
    case .response(let refusal, let left):
      put(refusal)
      put(left.known)
      put(left.other)
    }
  }

  private mutating func put(_ refusal: Refusal) {
    switch refusal {
    case .malformed(let malformation):
      put(count: 2)
      put(count: Int(malformation.rawValue))
    case .wrongCode(nil): put(count: 3)
    case .wrongCode(let charge?):
      put(count: 4)
      put(charge)
    case .replayed(let until):
      put(count: 5)
      put(until)
    case .throttled: put(count: 6)
    case .clock(let until):
      put(count: 7)
      put(until)
    case .mustEnroll: put(count: 9)
    }
  }
}

extension ByteReader {
  private mutating func proof() -> Proof? {
    switch count(atMost: 4) {
    case 1:
      label().map {
        .authenticator(name: $0, drift: Int32(truncatingIfNeeded: number(bytes: 4)))
      }
    case 2: .backupCode(left: count(atMost: 2 * BackupCodeSet.maximumCodes))
    case 3: .pass(left: count(atMost: Int(Pass.usesRange.upperBound)))
    case 4: .claim(left: count(atMost: Int(Pass.usesRange.upperBound)))
    case _: nil
    }
  }

  private mutating func reason() -> Outcome.Reason? {
    let refusal: Refusal?
    switch count(atMost: 9) {
    case 1: return .unknownUser
    case 8: return .blocked
    case 2:
      let malformation = Malformation(rawValue: UInt8(truncatingIfNeeded: number(bytes: 1)))
      refusal = malformation.map { .malformed($0) }
    case 3: refusal = .wrongCode(nil)
    case 4: refusal = .wrongCode(charge())
    case 5: refusal = .replayed(until: time())
    case 6: refusal = .throttled
    case 7: refusal = .clock(until: time())
    case 9: refusal = .mustEnroll
    case _: return .notEnrolled
    }
    return refusal.map { .response($0, left: BudgetLeft(known: number64(), other: number64())) }
  }
}

// MARK: the flaw of a change

extension ByteWriter {
  private mutating func put(_ flaw: EnrollmentChange.Flaw) {
    switch flaw {
    case .enrolled: put(count: 0)
    case .noSuchAuthenticator(let name):
      put(count: 1)
      put(name)
    case .lastAuthenticator: put(count: 2)
    case .nameTaken(let name):
      put(count: 3)
      put(name)
    case .tooManyAuthenticators: put(count: 4)
    case .tooManyPasses: put(count: 5)
    case .secretTaken(let name):
      put(count: 6)
      put(name)
    }
  }
}

extension ByteReader {
  private mutating func flaw() -> EnrollmentChange.Flaw? {
    switch count(atMost: 6) {
    case 1: label().map { .noSuchAuthenticator($0) }
    case 2: .lastAuthenticator
    case 3: label().map { .nameTaken($0) }
    case 4: .tooManyAuthenticators
    case 5: .tooManyPasses
    case 6: label().map { .secretTaken($0) }
    case _: .enrolled
    }
  }
}
