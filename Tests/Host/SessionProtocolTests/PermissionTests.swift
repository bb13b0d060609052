import OneTimePassword
import SallyportCore
import SessionProtocol
import Testing

@Suite struct `What a user may change himself` {
  private static let two: [Label] = [Label("phone"), Label("laptop")]
  private static let requests: [ChangeRequest] = [
    .status, .enroll(name: nil, .standard, backupCodes: 10), .add(name: nil, .standard),
    .remove(Label("phone")), .rename(Label("phone"), to: Label("new")), .renew,
  ]

  /// A helper who may help somebody.
  private func facts(_ change: (inout HelpFacts) -> Void = { _ in }) -> HelpFacts {
    var facts = HelpFacts()
    (facts.may, facts.isHelper, facts.helperID) = (HelpVerb.allCases, .yes, 5)
    (facts.uid, facts.isHimself, facts.isHelped) = (1002, false, .yes)
    (facts.isNever, facts.isAnotherHelper) = (.no, .no)
    change(&facts)
    return facts
  }

  // decisive
  // shows: climb-root
  @Test func `is to help others where all that lets him is certain`() {
    let may = HelpPermission.afterCode(helper: 5, uid: 1002)
    for verb in HelpVerb.allCases { #expect(permission(toHelp: verb, facts()) == may) }
    let table: [(ChangeRefusal, (inout HelpFacts) -> Void)] = [
      (.notHelper, { $0 = HelpFacts() }), (.notHelper, { $0.may = nil }),
      (.notHelper, { $0.isHelper = .no }), (.notHelper, { $0.isHelper = .unknown }),
      (.notForHelpers, { $0.may = [.status] }), (.notForHelpers, { $0.may = [] }),
      (.notEnrolled, { $0.helperID = nil }), (.notHelped, { $0.uid = nil }),
      (.notHelped, { $0.uid = 0 }), (.notHelped, { $0.isHimself = true }),
      (.notHelped, { $0.isHelped = .no }), (.unclear, { $0.isHelped = .unknown }),
      (.notHelped, { $0.isNever = .yes }), (.unclear, { $0.isNever = .unknown }),
      (.notHelped, { $0.isAnotherHelper = .yes }), (.unclear, { $0.isAnotherHelper = .unknown }),
      (.notHelped, { ($0.isAnotherHelper, $0.isNever) = (.unknown, .yes) }),
    ]
    for (refusal, change) in table {
      #expect(permission(toHelp: .pass, facts(change)) == .refused(refusal))
    }
    // What a change request of his own is decided by lets him help nobody.
    guard let bob = UserName("bob".utf8) else { return }
    for enrollment in [OwnEnrollment.enrolled(id: 7, names: Self.two), .notEnrolled(.offer)] {
      let found = permission(for: .help(.pass, bob), enrollment, under: policy())
      #expect(found == .refused(.notHelper))
    }
  }

  // decisive
  @Test func `is done for others where what root alone sees allows it`() {
    let acts: [HelpAct] = [
      .status, .unlock, .pass, .passEnroll, .block(until: nil), .unblock,
    ]
    let table: [(Tristate, BlockSetter, id: UInt64?, [ChangeRefusal?])] = [
      (.no, .nobody, 7, [nil, nil, nil, nil, nil, .notBlocked]),
      (
        .no, .nobody, nil,
        [ChangeRefusal?](repeating: .helpedNotEnrolled, count: 4) + [nil, .notBlocked]
      ),
      (.no, .helper, 7, [ChangeRefusal?](repeating: .blockedByHelper, count: 4) + [nil, nil]),
      (.no, .root, 7, [ChangeRefusal?](repeating: .blockedByRoot, count: 6)),
      (.yes, .nobody, 7, [ChangeRefusal?](repeating: .notHelped, count: 6)),
      (.unknown, .helper, 7, [ChangeRefusal?](repeating: .unclear, count: 6)),
    ]
    for (power, setter, id, refusals) in table {
      var facts = HelpedFacts()
      (facts.canBecomeRoot, facts.block, facts.enrollmentID) = (power, setter, id)
      #expect(acts.map { refusal(toHelp: $0, facts) } == refusals)
    }
    #expect(acts.allSatisfy { refusal(toHelp: $0, HelpedFacts()) == .unclear })
  }

  private func policy(_ change: (inout Policy) -> Void = { _ in }) -> Policy {
    var policy = Policy()
    policy.isSelfService = true
    change(&policy)
    return policy
  }

  // shows: self-code
  @Test func `is nothing unless the policy says so`() {
    #expect(!Policy().isSelfService && !Policy.strict.isSelfService)
    for request in Self.requests {
      for enrollment in [
        OwnEnrollment.enrolled(id: 7, names: Self.two), .notEnrolled(.required),
        .notEnrolled(.offer),
      ] {
        #expect(permission(for: request, enrollment, under: Policy()) == .refused(.off))
        #expect(permission(for: request, enrollment, under: .strict) == .refused(.off))
        let disabled = policy { $0.isEnabled = false }
        #expect(permission(for: request, enrollment, under: disabled) == .refused(.disabled))
      }
    }
  }

  @Test func `is, not enrolled, to enroll where the level asks for it`() {
    let table: [(EnrollmentLevel, Permission)] = [
      (.refuse, .refused(.level)), (.required, .afterFirstCode), (.offer, .afterFirstCode),
      (.remind, .afterFirstCode), (.voluntary, .refused(.level)),
    ]
    for (level, expected) in table {
      for request in Self.requests {
        let found = permission(for: request, .notEnrolled(level), under: policy())
        if case .enroll = request {
          #expect(found == expected)
        } else {
          #expect(found == .refused(.notEnrolled))
        }
      }
    }
  }

  @Test func `is, enrolled, everything but to enroll, after a code of that enrollment`() {
    for request in Self.requests {
      let found = permission(for: request, .enrolled(id: 7, names: Self.two), under: policy())
      switch request {
      case .status: #expect(found == .show)
      case .enroll: #expect(found == .refused(.enrolled))
      case .add, .remove, .rename, .renew: #expect(found == .afterCode(id: 7))
      case .help: #expect(found == .refused(.notHelper))
      }
    }
  }

  @Test func `is refused for its names before a code is spent`() {
    let (phone, laptop, other) = (Label("phone"), Label("laptop"), Label("other"))
    let eight = (0..<8).compactMap { Label([UInt8(ascii: "a") + UInt8($0)]) }
    let table: [(ChangeRequest, [Label], Permission)] = [
      (.add(name: phone, .standard), Self.two, .refused(.nameTaken)),
      (.add(name: other, .standard), Self.two, .afterCode(id: 7)),
      (.add(name: other, .standard), eight, .refused(.tooMany)),
      (.remove(other), Self.two, .refused(.noSuchAuthenticator)),
      (.remove(phone), [phone], .refused(.last)),
      (.remove(phone), Self.two, .afterCode(id: 7)),
      (.rename(other, to: phone), Self.two, .refused(.noSuchAuthenticator)),
      (.rename(phone, to: laptop), Self.two, .refused(.nameTaken)),
      (.rename(phone, to: phone), Self.two, .afterCode(id: 7)),
    ]
    for (request, names, expected) in table {
      #expect(
        permission(for: request, .enrolled(id: 7, names: names), under: policy()) == expected)
    }
  }

  /// Else he would be left with codes that are refused.
  @Test func `is not to remove the last one whose kind is on`() {
    let (phone, laptop) = (Label("phone"), Label("laptop"))
    let enrollment = OwnEnrollment.enrolled(id: 7, names: Self.two, off: [laptop])
    #expect(permission(for: .remove(phone), enrollment, under: policy()) == .refused(.last))
    #expect(permission(for: .remove(laptop), enrollment, under: policy()) == .afterCode(id: 7))
  }
}
