import OneTimePassword

// What a member of the helpdesk does for somebody whom a fleet verifies: his session asks the
// service of its machine on the root socket, and that asks a verifier. The module has none of it.

/// What is done, by which helper.
package struct HelpOrder: Equatable, Sendable {
  /// `id`: of the enrollment that was seen; of another one nothing is changed.
  package enum Verb: Equatable, Sendable {
    /// What is there? Nothing is changed.
    case show
    /// Lend him tries.
    case lend(under: Policy, id: UInt64)
    case give(Pass, id: UInt64)
    /// Up to this time, or without an end.
    case block(until: UnixTime?)
    /// Lift what a helper has blocked.
    case unblock
  }

  package let verb: Verb
  package let helper: UserName

  package init(_ verb: Verb, by helper: UserName) { (self.verb, self.helper) = (verb, helper) }
}

/// The same for somebody, as the service of a machine is asked.
///
/// As bytes: version (1 byte), 0xffff (2), which is the length of no `LoginQuestion`, the name
/// after its length, and the order.
package struct HelpRequest: Equatable, Sendable {
  package let name: UserName
  package let order: HelpOrder

  package init(_ order: HelpOrder, for name: UserName) { (self.order, self.name) = (order, name) }
}

/// Who has blocked somebody: what another may change of that.
package enum BlockSetter: UInt8, Sendable {
  case nobody = 1
  case helper
  /// Or it is not known who.
  case root
}

/// What a fleet has of somebody, as a helper's session is told: without secrets and places.
package struct HelpedPerson: Sendable {
  /// nil: he is not enrolled.
  package let enrolled: (enrollment: Enrollment, state: LoginState)?
  /// Of what blocks him now.
  package let block: BlockSetter
  /// Whether helpers have done for him in a week what they may.
  package let hasEnough: (passes: Bool, tries: Bool)

  package init(
    _ enrolled: (enrollment: Enrollment, state: LoginState)?, block: BlockSetter,
    hasEnough: (passes: Bool, tries: Bool)
  ) {
    (self.enrolled, self.block, self.hasEnough) = (enrolled, block, hasEnough)
  }
}

/// The answer to a `HelpRequest`.
///
/// As bytes: version (1 byte), kind (1), fields. Kinds 3 and 4 are those of all answers to what
/// commands of a host ask.
package enum HelpAnswer: Sendable {
  /// It is saved.
  case done
  /// By this fleet, or for this host, it is not done. Nothing was.
  case notServed
  /// Unknown whether it was saved. Who could not do it has logged why.
  case trouble
  case told(HelpedPerson)
  case refused(Refusal)
  /// That many tries.
  case lent(UInt8)

  /// Why nothing was done.
  package enum Refusal: UInt8, CaseIterable, Sendable {
    /// Not enrolled, or by another enrollment, or not by the fleet.
    case changed = 1
    /// He may type a code everywhere.
    case notLocked
    /// There is nothing to lend.
    case spent
    /// Helpers have done that for him in a week as often as they may, or he has three passes.
    case enough
    case blockedByRoot
    case blockedByHelper
    case notBlocked
  }
}

extension HelpRequest: SecretFrame {
  package static let longest = 1024

  package static func pass(_ request: Self?, _ fields: inout Fields) -> Self? {
    fields.constant(0xff)
    fields.constant(0xff)
    guard let name = fields.name(request?.name),
      let order = HelpOrder.pass(request?.order, &fields)
    else { return nil }
    return HelpRequest(order, for: name)
  }
}

extension HelpOrder {
  private var kind: Int {
    switch verb {
    case .show: 1
    case .lend: 2
    case .give: 3
    case .block: 4
    case .unblock: 5
    }
  }

  private var id: UInt64? {
    switch verb {
    case .show, .block, .unblock: nil
    case .lend(_, let id), .give(_, let id): id
    }
  }

  /// Within a frame: what (1 byte), the helper's name after its length, and fields.
  package static func pass(_ order: Self?, _ fields: inout Fields) -> Self? {
    let kind = fields.kind(order?.kind, of: 5)
    guard let helper = fields.name(order?.helper), let verb = pass(kind, order, &fields) else {
      return nil
    }
    return HelpOrder(verb, by: helper)
  }

  private static func pass(_ kind: Int, _ order: Self?, _ fields: inout Fields) -> Verb? {
    switch kind {
    case 1: return .show
    case 2:
      let own: Policy? = if case .lend(let policy, _)? = order?.verb { policy } else { nil }
      let id = fields.id(order?.id)
      return .lend(under: fields.policy(own), id: id)
    case 3:
      let own: Pass? = if case .give(let pass, _)? = order?.verb { pass } else { nil }
      let id = fields.id(order?.id)
      return .give(fields.pass(own), id: id)
    case 4:
      let own: UnixTime? = if case .block(let until)? = order?.verb { until } else { nil }
      return .block(until: fields.optional(own) { $0.laterThan1970($1) })
    case 5: return .unblock
    case _: return nil
    }
  }
}

extension HelpAnswer: FrameBody {
  package static let longest = 65_536

  /// nil where a value has no place in a frame, or out of memory.
  package func encoded() -> [UInt8]? { frame.map { $0.bytes(in: 0..<$0.count) } }

  /// Total: any bytes give an answer that `encoded` gives, or nil.
  package static func decode(_ frame: [UInt8]) -> HelpAnswer? {
    Secret(frame).flatMap { read($0) }
  }

  private var kind: Int {
    switch self {
    case .done: 2
    case .notServed: 3
    case .trouble: 4
    case .told: 5
    case .refused: 6
    case .lent: 7
    }
  }

  package static func pass(_ answer: Self?, _ fields: inout Fields) -> Self? {
    switch fields.kind(answer?.kind, of: 7) {
    case 2: return .done
    case 3: return .notServed
    case 4: return .trouble
    case 5:
      let own: HelpedPerson? = if case .told(let person)? = answer { person } else { nil }
      return HelpedPerson.pass(own, &fields).map { .told($0) }
    case 6:
      let own: Refusal? = if case .refused(let refusal)? = answer { refusal } else { nil }
      return fields.valid(Refusal(rawValue: fields.byte(own?.rawValue))).map { .refused($0) }
    case 7:
      let own: UInt8? = if case .lent(let tries)? = answer { tries } else { nil }
      return .lent(fields.byte(own))
    case _: return nil
    }
  }
}

extension HelpedPerson {
  /// The state and the enrollment each after its length; both empty where he is not enrolled.
  fileprivate static func pass(_ person: Self?, _ fields: inout Fields) -> Self? {
    let block = fields.valid(BlockSetter(rawValue: fields.byte(person?.block.rawValue)))
    let passes = fields.bit(person?.hasEnough.passes)
    let tries = fields.bit(person?.hasEnough.tries)
    let own = person.map { $0.enrolled }
    let isEnrolled = fields.bit(own.map { $0 != nil })
    guard let block else { return nil }
    if !isEnrolled { return HelpedPerson(nil, block: block, hasEnough: (passes, tries)) }
    let state = fields.text(own??.state.written())
    guard let text = fields.secret(own??.enrollment.written()) else { return nil }
    if let person { return person }
    guard let enrollment = try? Enrollment.read(text), let state = LoginState.read(state),
      state.enrollmentID == enrollment.id
    else { return nil }
    return HelpedPerson((enrollment, state), block: block, hasEnough: (passes, tries))
  }
}

extension Fields {
  /// As in the frame of a login.
  package mutating func policy(_ policy: Policy?) -> Policy {
    let size = 8 * PolicyKey.allCases.filter { $0.isAsked }.count + 1
    var writer = ByteWriter(count: size)
    if let policy { writer.put(policy) }
    var reader = ByteReader(bytes(policy == nil ? nil : writer.bytes, size), 0..<size)
    let policy = reader.policy()
    if !reader.isWhole { fail() }
    return policy
  }

  fileprivate mutating func pass(_ pass: Pass?) -> Pass {
    let (id, digest) = (self.id(pass?.id), bytes(pass?.digest, 32))
    let (created, expires) = (laterThan1970(pass?.created), laterThan1970(pass?.expires))
    let (uses, enrolls) = (byte(pass?.uses), flag(pass?.enrolls))
    if !Pass.usesRange.contains(UInt64(uses)) || expires <= created { fail() }
    return Pass(
      id: id, digest: digest, created: created, expires: expires, uses: uses, enrolls: enrolls)
  }

  fileprivate mutating func laterThan1970(_ value: UnixTime?) -> UnixTime {
    let time = time(value)
    if time.seconds < 0 { fail() }
    return time
  }
}
