package import OneTimePassword
package import SallyportCore

/// What a host that may enroll people of its fleet asks to move an enrollment there, or back
/// (docs/fleet-format.md).
///
/// As bytes: version (1 byte), what (1), the lengths of fields and secret (2 each), the name after
/// its length, the fields, and the secret: the enrollment, as its file has it.
package enum MoveRequest: Sendable {
  /// What does the fleet have under this name?
  case look(UserName)
  /// Enroll him by this. `version`: of what the fleet had under the name, which must be the same
  /// still; of an enrollment that the fleet has, nothing is changed.
  case put(Moving, version: UInt64)
  /// He is enrolled by another one, which stays: take over what was used.
  case merge(Moving)
  /// What is he enrolled by, and what was used of it? Nothing is changed. `isForced`: although he
  /// was used on other hosts.
  case fetch(UserName, isForced: Bool)
  /// He is enrolled nowhere in the fleet any more, if the row is still the one that was fetched.
  case bury(UserName, Tombstone)

  /// Ends an enrollment in the fleet that was copied from it.
  package struct Tombstone: Equatable, Sendable {
    /// Of the enrollment; not 0.
    package let id: UInt64
    /// Of the row when it was copied.
    package let version: UInt64
    /// Identifies this taking when the host repeats the question; not 0.
    package let token: UInt64

    package init(id: UInt64, version: UInt64, token: UInt64) {
      (self.id, self.version, self.token) = (id, version, token)
    }
  }

  /// An enrollment without a uid, and the state that belongs to it.
  package struct Moving: Sendable {
    package let enrollment: Enrollment
    package let state: LoginState

    package init(_ enrollment: Enrollment, _ state: LoginState) {
      (self.enrollment, self.state) = (enrollment, state)
    }
  }

  package var name: UserName {
    switch self {
    case .look(let name), .fetch(let name, _), .bury(let name, _): name
    case .put(let moving, _), .merge(let moving): moving.enrollment.user
    }
  }
}

/// What the fleet has for a name.
package struct FleetStanding: Equatable, Sendable {
  /// Whether somebody is enrolled.
  package enum Person: Equatable, Sendable {
    case nobody
    /// By the enrollment of this id.
    case enrolled(UInt64)
    /// He was, by that one.
    case removed(UInt64)
  }

  package let person: Person
  /// Of the row; 0 where there is none.
  package let version: UInt64

  package init(_ person: Person, version: UInt64) {
    (self.person, self.version) = (person, version)
  }
}

/// The answer to a `MoveRequest`.
///
/// As bytes: version (1 byte), kind (1), fields.
package enum MoveAnswer: Equatable, Sendable {
  /// To `look`; to the others, where nothing was done: the fleet has this by now.
  case standing(FleetStanding)
  /// It is saved.
  case done
  /// This host may not enroll people of the fleet. Nothing was done.
  case notAllowed
  /// Unknown whether it was saved. The verifier has logged why.
  case trouble
}

extension MoveRequest {
  private static let headSize = 6

  /// nil where a value has no place in it, or out of memory.
  package func encoded() -> Secret? {
    var fields = ByteWriter(count: 8192)
    var text = Secret(count: 0)
    fields.put(counted: name.bytes)
    switch self {
    case .look: break
    case .put(let moving, let version):
      fields.put(version)
      text = moving.put(to: &fields)
    case .merge(let moving): text = moving.put(to: &fields)
    case .fetch(_, let isForced): fields.put(robust: isForced ? 2 : 1)
    case .bury(_, let burial): fields.put(burial)
    }
    guard fields.isWhole, let text else { return nil }
    var head = ByteWriter(count: MoveRequest.headSize)
    head.putVersion()
    head.put(robust: number)
    head.put(UInt64(fields.position), bytes: 2)
    if text.count > 0xffff { head.fail() }
    head.put(UInt64(text.count), bytes: 2)
    guard head.isWhole else { return nil }
    var frame = SecretText(capacity: MoveRequest.headSize + fields.position + text.count)
    for byte in head.bytes + fields.bytes.prefix(fields.position) { frame.put(byte) }
    frame.add(text)
    return frame.finish()
  }

  private var number: Int {
    switch self {
    case .look: 1
    case .put: 2
    case .merge: 3
    case .fetch: 4
    case .bury: 5
    }
  }

  /// Total: any bytes give a request that `encoded` gives, or nil.
  package static func decode(_ frame: Secret) -> MoveRequest? {
    var head = ByteReader(frame.bytes(in: 0..<headSize), 0..<headSize)
    guard head.takesVersion() else { return nil }
    let kind = head.robust(atMost: 5)
    let (count, length) = (Int(head.number(bytes: 2)), Int(head.number(bytes: 2)))
    guard head.isWhole, frame.count == headSize + count + length,
      let text = frame.slice(headSize + count..<frame.count)
    else { return nil }
    var fields = ByteReader(frame.bytes(in: headSize..<headSize + count), 0..<count)
    guard let request = fields.moveRequest(kind, text), fields.isWhole, fields.isAtEnd,
      // Other encodings are not valid requests.
      let again = request.encoded()
    else { return nil }
    again.set(0, to: frame[0])
    return constantTimeEquals(again, frame) ? request : nil
  }
}

extension MoveRequest.Moving {
  /// The state; gives the secret. nil where the two do not belong together, or out of memory.
  func put(to fields: inout ByteWriter) -> Secret? {
    guard enrollment.uid == nil, state.enrollmentID == enrollment.id, let state = state.written()
    else { return nil }
    fields.put(UInt64(state.count), bytes: 2)
    fields.put(state)
    return enrollment.written()
  }

  /// `name`: nil for whosever it is.
  init?(_ text: Secret, _ state: [UInt8], of name: UserName?) {
    guard let enrollment = try? Enrollment.read(text),
      enrollment.user == name ?? enrollment.user, enrollment.uid == nil,
      let state = LoginState.read(state),
      state.enrollmentID == enrollment.id
    else { return nil }
    self.init(enrollment, state)
  }
}

extension ByteReader {
  /// Valid only if the reader then reports success at the end of its input.
  fileprivate mutating func moveRequest(_ kind: Int, _ text: Secret) -> MoveRequest? {
    guard let name = UserName(counted()) else { return nil }
    switch kind {
    case 1: return .look(name)
    case 2:
      let version = number64()
      return MoveRequest.Moving(text, movingState(), of: name).map { .put($0, version: version) }
    case 3: return MoveRequest.Moving(text, movingState(), of: name).map { .merge($0) }
    case 4: return .fetch(name, isForced: robust(atMost: 2) == 2)
    case 5: return .bury(name, burial())
    case _: return nil
    }
  }

  private mutating func burial() -> MoveRequest.Tombstone {
    let burial = MoveRequest.Tombstone(id: number64(), version: number64(), token: number64())
    if burial.id == 0 || burial.token == 0 { fail() }
    return burial
  }

  mutating func movingState() -> [UInt8] { take(Int(number(bytes: 2))) }
}

extension MoveAnswer {
  /// nil where a value has no place in a frame.
  package func encoded() -> [UInt8]? {
    var frame = ByteWriter(count: 32)
    frame.putVersion()
    switch self {
    case .standing(let standing):
      frame.put(robust: 1)
      frame.put(standing.version)
      switch standing.person {
      case .nobody: frame.put(robust: 1)
      case .enrolled(let id): frame.put(person: 2, id)
      case .removed(let id): frame.put(person: 3, id)
      }
    case .done: frame.put(robust: 2)
    case .notAllowed: frame.put(robust: 3)
    case .trouble: frame.put(robust: 4)
    }
    return frame.isWhole ? [UInt8](frame.bytes.prefix(frame.position)) : nil
  }

  /// Total: any bytes give an answer that `encoded` gives, or nil.
  package static func decode(_ frame: [UInt8]) -> MoveAnswer? {
    var fields = ByteReader(frame, 0..<frame.count)
    guard fields.takesVersion() else { return nil }
    let answer: MoveAnswer
    switch fields.robust(atMost: 4) {
    case 1: answer = .standing(fields.standing())
    case 2: answer = .done
    case 3: answer = .notAllowed
    case _: answer = .trouble
    }
    return fields.isWhole && fields.isAtEnd ? answer : nil
  }
}

extension ByteWriter {
  fileprivate mutating func put(_ burial: MoveRequest.Tombstone) {
    if burial.id == 0 || burial.token == 0 { fail() }
    put(burial.id)
    put(burial.version)
    put(burial.token)
  }

  fileprivate mutating func put(person kind: Int, _ id: UInt64) {
    if id == 0 { fail() }
    put(robust: kind)
    put(id)
  }
}

extension ByteReader {
  /// Counts only where the reader is whole afterwards.
  fileprivate mutating func standing() -> FleetStanding {
    let version = number64()
    let kind = robust(atMost: 3)
    if kind <= 1 { return FleetStanding(.nobody, version: version) }
    let id = number64()
    if id == 0 { fail() }
    return FleetStanding(kind == 2 ? .enrolled(id) : .removed(id), version: version)
  }
}
