import OneTimePassword
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

extension MoveRequest: SecretFrame {
  package static let longest = 6 + 8192 + 0xffff

  package static func pass(_ request: Self?, _ fields: inout Fields) -> Self? {
    let kind = fields.kind(request?.kind, of: 5)
    let text = request?.moving?.enrollment.written()
    let length = text?.count ?? 0
    // The lengths stand in front of what is written. One that was read counts only where it is
    // written again.
    var behind = Fields(writing: longest)
    if let request { _ = pass(kind, request, &behind, text: text, length: length) }
    _ = fields.length(request.map { _ in (behind.written?.count ?? 0) - length }, bytes: 2)
    let told = fields.length(request.map { _ in length }, bytes: 2)
    return pass(kind, request, &fields, text: text, length: told)
  }

  private var kind: Int {
    switch self {
    case .look: 1
    case .put: 2
    case .merge: 3
    case .fetch: 4
    case .bury: 5
    }
  }

  private var moving: Moving? {
    switch self {
    case .look, .fetch, .bury: nil
    case .put(let moving, _), .merge(let moving): moving
    }
  }

  /// What stands behind the lengths; `text`: the enrollment, of this length.
  private static func pass(
    _ kind: Int, _ request: Self?, _ fields: inout Fields, text: Secret?, length: Int
  ) -> Self? {
    guard let name = fields.name(request?.name) else { return nil }
    func moving() -> Moving? {
      let state = fields.text(request?.moving?.stateBytes)
      let text = fields.secret(text, length)
      return request?.moving ?? text.flatMap { Moving($0, state, of: name) }
    }
    switch kind {
    case 1: return .look(name)
    case 2:
      let own: UInt64? = if case .put(_, let version)? = request { version } else { nil }
      let version = fields.number(own)
      return moving().map { .put($0, version: version) }
    case 3: return moving().map { .merge($0) }
    case 4:
      let own: Bool? = if case .fetch(_, let isForced)? = request { isForced } else { nil }
      return .fetch(name, isForced: fields.flag(own))
    case 5:
      let own: Tombstone? = if case .bury(_, let tombstone)? = request { tombstone } else { nil }
      return .bury(
        name,
        Tombstone(
          id: fields.id(own?.id), version: fields.number(own?.version), token: fields.id(own?.token)
        ))
    case _: return nil
    }
  }
}

extension MoveRequest.Moving {
  /// nil where the two do not belong together, or the state has no place in a frame.
  var stateBytes: [UInt8]? {
    enrollment.uid == nil && state.enrollmentID == enrollment.id ? state.written() : nil
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

extension MoveAnswer: FrameAnswer {
  package static let longest = 32

  var kind: Int {
    switch self {
    case .standing: 1
    case .done: 2
    case .notAllowed: 3
    case .trouble: 4
    }
  }

  package static func pass(_ answer: Self?, _ fields: inout Fields) -> Self? {
    pass(fields.kind(answer?.kind, of: 4), answer, &fields)
  }

  static func pass(_ kind: Int, _ answer: Self?, _ fields: inout Fields) -> Self? {
    switch kind {
    case 1:
      let standing: FleetStanding? =
        if case .standing(let standing)? = answer { standing } else { nil }
      return .standing(FleetStanding.pass(standing, &fields))
    case 2: return .done
    case 3: return .notAllowed
    case 4: return .trouble
    case _: return nil
    }
  }
}

extension FleetStanding {
  fileprivate static func pass(_ standing: Self?, _ fields: inout Fields) -> Self {
    let version = fields.number(standing?.version)
    let (own, id): (Int?, UInt64?) =
      switch standing?.person {
      case nil: (nil, nil)
      case .nobody?: (1, nil)
      case .enrolled(let id)?: (2, id)
      case .removed(let id)?: (3, id)
      }
    switch fields.kind(own, of: 3) {
    case 2: return FleetStanding(.enrolled(fields.id(id)), version: version)
    case 3: return FleetStanding(.removed(fields.id(id)), version: version)
    case _: return FleetStanding(.nobody, version: version)
    }
  }
}
