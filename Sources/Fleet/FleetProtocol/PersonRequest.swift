package import OneTimePassword
package import SallyportAdministration
package import SallyportCore

/// What root's verbs ask about one person of a fleet, on a host that may enroll people of it
/// (docs/fleet-format.md).
///
/// As bytes: version (1 byte), 6, which no `MoveRequest` has (1), what (1), the name after its
/// length, and fields.
package struct PersonRequest: Equatable, Sendable {
  /// `id`: of the enrollment that the verb has seen; of another one nothing is changed.
  package enum Verb: Equatable, Sendable {
    /// What does the fleet have of him? Nothing is changed.
    case tell
    /// Forget his wrong codes.
    case unlock(id: UInt64)
    /// He is enrolled no more.
    case end(id: UInt64)
    /// Whether he must enroll, or is exempt, while he is not enrolled; nil: as the policy says.
    case level(UserNote.Level?)
    /// Resynchronize the authenticator of this name, or the one that the codes match.
    case resynchronize(CodePair, named: Label?, under: Policy, id: UInt64)
  }

  package let name: UserName
  package let verb: Verb

  package init(_ verb: Verb, of name: UserName) { (self.verb, self.name) = (verb, name) }
}

/// A person's record, without anything from which somebody could make a code or a backup code.
package struct PersonFacts: Sendable {
  /// Whether he is enrolled, and where.
  package enum EnrollmentPlace: Sendable {
    case enrolled(MoveRequest.Moving)
    case notEnrolled
    /// By the files of this host, which has taken him, and nowhere else.
    case taken(by: FleetHost)
  }

  package let standing: EnrollmentPlace
  package let note: UserNote
  /// Logins counted without an enrollment.
  package let logins: UInt32

  package init(_ standing: EnrollmentPlace, _ note: UserNote, logins: UInt32) {
    (self.standing, self.note, self.logins) = (standing, note, logins)
  }
}

/// The answer to a `PersonRequest`.
///
/// As bytes: version (1 byte), kind (1), fields. The other kinds are those of `MoveAnswer`.
package enum PersonAnswer: Sendable {
  case told(PersonFacts)
  /// He is not enrolled, or by another enrollment than the one that was seen. Nothing was done.
  case changed
  case resynchronized(Resync)
  case other(MoveAnswer)
}

extension PersonRequest {
  /// nil where a value has no place in it, or out of memory.
  package func encoded() -> Secret? {
    var frame = ByteWriter(count: 1024)
    frame.putVersion()
    frame.put(robust: 6)
    switch verb {
    case .tell: frame.put(robust: 1)
    case .unlock: frame.put(robust: 2)
    case .end: frame.put(robust: 3)
    case .level: frame.put(robust: 4)
    case .resynchronize: frame.put(robust: 5)
    }
    frame.put(counted: name.bytes)
    switch verb {
    case .tell: break
    case .unlock(let id), .end(let id): frame.put(id)
    case .level(let level): frame.put(level)
    case .resynchronize(let codes, let name, let policy, let id):
      frame.put(id)
      frame.put(count: Int(codes.digits.rawValue))
      frame.put(UInt64(codes.first), bytes: 4)
      frame.put(UInt64(codes.second), bytes: 4)
      frame.put(name)
      frame.put(policy)
    }
    return frame.isWhole ? Secret([UInt8](frame.bytes.prefix(frame.position))) : nil
  }

  /// Total: any bytes give a request that `encoded` gives, or nil.
  package static func decode(_ frame: Secret) -> PersonRequest? {
    var fields = ByteReader(frame.bytes(in: 0..<frame.count), 0..<frame.count)
    guard fields.takesVersion(), fields.robust(atMost: 6) == 6 else { return nil }
    let kind = fields.robust(atMost: 5)
    guard let name = UserName(fields.counted()), let verb = fields.personVerb(kind),
      fields.isWhole, fields.isAtEnd
    else { return nil }
    let request = PersonRequest(verb, of: name)
    // Other encodings are not valid requests.
    guard let again = request.encoded() else { return nil }
    again.set(0, to: frame[0])
    return constantTimeEquals(again, frame) ? request : nil
  }
}

extension PersonAnswer {
  /// nil where a value has no place in a frame.
  package func encoded() -> [UInt8]? {
    var fields = ByteWriter(count: 65_536)
    fields.putVersion()
    switch self {
    case .told(let facts):
      fields.put(robust: 5)
      fields.put(facts)
    case .changed: fields.put(robust: 6)
    case .resynchronized(let result):
      fields.put(robust: 7)
      fields.put(result)
    case .other(let answer): return answer.encoded()
    }
    return fields.isWhole ? [UInt8](fields.bytes.prefix(fields.position)) : nil
  }

  /// Total: any bytes give an answer that `encoded` gives, or nil.
  package static func decode(_ frame: [UInt8]) -> PersonAnswer? {
    var fields = ByteReader(frame, 0..<frame.count)
    guard fields.takesVersion() else { return nil }
    let answer: PersonAnswer?
    switch fields.robust(atMost: 7) {
    case 5: answer = fields.personFacts().map { .told($0) }
    case 6: answer = .changed
    case 7: answer = fields.resync().map { .resynchronized($0) }
    case _: return MoveAnswer.decode(frame).map { .other($0) }
    }
    guard let answer, fields.isWhole, fields.isAtEnd,
      // Other encodings are not valid answers.
      let again = answer.encoded(), again.dropFirst() == frame.dropFirst()
    else { return nil }
    return answer
  }
}

// MARK: fields

extension ByteWriter {
  fileprivate mutating func put(_ level: UserNote.Level?) {
    switch level {
    case nil: put(count: 0)
    case .required(nil): put(count: 1)
    case .required(let from?):
      put(count: 2)
      if from.seconds < 0 { fail() }
      put(from)
    case .exempt: put(count: 3)
    }
  }

  fileprivate mutating func put(_ facts: PersonFacts) {
    put(facts.note.level)
    put(UInt64(facts.logins), bytes: 4)
    switch facts.standing {
    case .enrolled(let moving):
      put(robust: 1)
      put(moving)
    case .notEnrolled: put(robust: 2)
    case .taken(let host):
      put(robust: 3)
      put(counted: host.bytes)
    }
  }

  private mutating func put(drift: Int32) { put(UInt64(UInt32(bitPattern: drift)), bytes: 4) }

  fileprivate mutating func put(_ result: Resync) {
    switch result {
    case .done(let name, let drift, let reopened):
      put(robust: 1)
      put(name)
      put(drift: drift)
      put(isThere: reopened != nil)
      if let reopened { put(reopened) }
    case .refused(.clockOff(let name, let drift, let period, let accepted)):
      put(robust: 2)
      put(name)
      put(drift: drift)
      put(UInt64(period), bytes: 4)
      put(count: Int(accepted))
    case .refused(.replayed(let name)):
      put(robust: 3)
      put(name)
    case .refused(.notFound): put(robust: 4)
    }
  }
}

// Each counts only where the reader is whole afterwards.
extension ByteReader {
  fileprivate mutating func personVerb(_ kind: Int) -> PersonRequest.Verb? {
    switch kind {
    case 1: return .tell
    case 2: return .unlock(id: number64())
    case 3: return .end(id: number64())
    case 4: return .level(level())
    case 5:
      let id = number64()
      let digits = Digits(rawValue: UInt8(count(atMost: 255)))
      let (first, second) = (code(), code())
      guard let digits, max(first, second) < digits.modulus,
        let codes = CodePair(.code(first, digits), .code(second, digits))
      else { return nil }
      return .resynchronize(codes, named: label(), under: policy(), id: id)
    case _: return nil
    }
  }

  private mutating func code() -> UInt32 { UInt32(truncatingIfNeeded: number(bytes: 4)) }

  private mutating func level() -> UserNote.Level? {
    switch count(atMost: 3) {
    case 1: return .required(from: nil)
    case 2: return .required(from: time())
    case 3: return .exempt
    case _: return nil
    }
  }

  fileprivate mutating func personFacts() -> PersonFacts? {
    let note = UserNote(level: level())
    let logins = UInt32(truncatingIfNeeded: number(bytes: 4))
    let standing: PersonFacts.EnrollmentPlace?
    switch robust(atMost: 3) {
    case 1: standing = moving().map { .enrolled($0) }
    case 2: standing = .notEnrolled
    case _: standing = FleetHost(counted()).map { .taken(by: $0) }
    }
    return standing.map { PersonFacts($0, note, logins: logins) }
  }

  private mutating func drift() -> Int32 { Int32(truncatingIfNeeded: number(bytes: 4)) }

  fileprivate mutating func resync() -> Resync? {
    let kind = robust(atMost: 4)
    if kind == 4 { return .refused(.notFound) }
    guard let name = label() else { return nil }
    switch kind {
    case 1: return .done(name: name, drift: drift(), reopened: isThere() ? time() : nil)
    case 2:
      return .refused(
        .clockOff(
          name: name, drift: drift(), period: UInt32(truncatingIfNeeded: number(bytes: 4)),
          accepted: UInt8(count(atMost: 255))))
    case _: return .refused(.replayed(name: name))
    }
  }
}
