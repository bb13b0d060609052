import OneTimePassword
import SallyportCore
import TestSupport

extension Seeded {
  mutating func policy() -> Policy {
    var policy = Policy()
    policy.isEnabled = flip()
    policy.adjacentIntervals = UInt8(number(0...10))
    policy.lookAhead = UInt8(number(0...100))
    policy.guessBudget = GuessProbability(units: UInt64(number(100_000_000...100_000_000_000)))
    policy.enrollment = level()
    policy.isRefusedByRule = flip()
    policy.remindEvery = UInt8(number(1...100))
    policy.requiredFrom = UnixTime(Int64(number64() >> 1))
    (policy.totp, policy.hotp, policy.backupCode) = (factorUse(), factorUse(), factorUse())
    policy.factorOrder = pick((UInt8(0)..<27).compactMap { FactorOrder(number: $0) })
    policy.minimumFactors = UInt8(number(1...3))
    policy.remember = UInt64(number(0...366 * 86_400))
    policy.hints = flip()
    policy.isSelfService = flip()
    (policy.isFleet, policy.isRefusedAway) = (flip(), flip())
    policy.reserveFor = UInt32(number(0...366 * 86_400))
    return policy
  }

  private mutating func factorUse() -> FactorUse { pick([.on, .off, .mandatory]) }

  mutating func level() -> EnrollmentLevel {
    pick([.refuse, .required, .offer, .remind, .voluntary])
  }

  mutating func charge() -> Charge {
    Charge(
      enrollmentID: number64(), isKnown: flip(),
      amount: GuessProbability(units: UInt64(number(0...100_000_000_000))))
  }

  mutating func shape(isRemembered: Bool) -> Shape {
    let left = flip() ? nil : Int?(number(0...64))
    return Shape(
      enrollmentID: id(),
      authenticators: (0..<number(1...8)).map { _ in
        Shape.Authenticator(
          name: label(), kind: flip() ? .totp : .hotp, digits: pick(Digits.allCases))
      },
      hasScratchCodes: left != nil && flip(), backupCodesLeft: left,
      wait: flip() ? nil : number64(), isRemembered: isRemembered)
  }

  /// One request for each verb and each change.
  mutating func requests() throws -> [LoginQuestion] {
    let enrollment = try enrollment()
    let name = enrollment.user.bytes
    let (digests, typed) = ((0..<number(0...32)).map { _ in bytes(32) }, bytes(0...512))
    let codes = BackupCodeSet(id: id(), salt: bytes(16), digests: digests)
    var verbs: [LoginQuestion.Verb] = [
      .prepare(mayEnroll: flip(), after: pick(FirstFactor.allCases)),
      .attempt(
        try secret(typed), knownAs: flip() ? nil : pick(Malformation.allCases),
        as: pick([
          .firstPass, .last(givingBack: nil), .last(givingBack: charge()), .claim(next()),
        ])),
      .enrolled, .level, .remember, .count, .rehearse,
      .notices(by: flip() ? nil : label(), told: nil),
      .notices(
        by: label(),
        told: ToldNotices(
          wrongCodes: UInt16(truncatingIfNeeded: next()),
          latest: UnixTime(Int64(truncatingIfNeeded: next())))),
    ]
    let changes: [EnrollmentChange] = [
      .create(enrollment), .add(enrollment.authenticators, backupCodes: enrollment.backupCodes),
      .add([], backupCodes: codes), .remove(label()), .rename(label(), to: label()),
      .renew(codes), .revoke,
      .replace(enrollment.authenticators, backupCodes: enrollment.backupCodes, claim: next()),
      .give(
        Pass(
          id: id(), digest: bytes(32), created: UnixTime(Int64(next() >> 1)),
          expires: UnixTime(Int64(next() >> 1)), uses: UInt8(number(1...5)),
          enrolls: flip())),
    ]
    for change in changes {
      if case .create = change {
        verbs.append(.amend(change, to: 0))
      } else {
        verbs.append(.amend(change, to: id()))
      }
    }
    return verbs.map { verb in
      let address = LoginQuestion.StatedOrigin.address(NumericAddress(high: next(), low: next()))
      var place = pick([.unknown, .local, address])
      if case .remember = verb { place = address }
      return LoginQuestion(
        name: name, service: bytes(0...255), origin: place, policy: policy(),
        millisecondsLeft: UInt32(truncatingIfNeeded: next()), verb: verb, isAway: flip())
    }
  }

  /// Each answer with each kind of value in it.
  mutating func answers() -> [ServiceAnswer] {
    let charge = charge()
    let refusals: [Refusal] =
      [
        .wrongCode(nil), .wrongCode(charge), .replayed(until: anyTime()), .throttled,
        .clock(until: anyTime()), .mustEnroll,
      ]
      + Malformation.allCases.map { .malformed($0) }
    let outcomes: [Outcome] =
      [
        .accepted(.authenticator(name: label(), drift: Int32(truncatingIfNeeded: next()))),
        .accepted(.backupCode(left: number(0...64))), .accepted(.pass(left: number(0...5))),
        .accepted(.claim(left: number(0...5))),
        .refused(.notEnrolled),
        .refused(.unknownUser), .refused(.blocked),
      ]
      + refusals.map { .refused(.response($0, left: BudgetLeft(known: next(), other: next()))) }
    let flaws: [EnrollmentChange.Flaw] = [
      .enrolled, .noSuchAuthenticator(label()), .lastAuthenticator, .nameTaken(label()),
      .tooManyAuthenticators, .tooManyPasses, .secretTaken(label()),
    ]
    let prompts: [ServiceAnswer] = [
      .prompt(.enrolled, shape(isRemembered: false)), .prompt(.enrolled, shape(isRemembered: true)),
      .prompt(.enrolled, .away(as: id())),
      .prompt(.notEnrolled, shape(isRemembered: false)),
      .prompt(.unknown, shape(isRemembered: false)),
    ]
    let (shape, time) = (shape(isRemembered: false), anyTime())
    let notices: [OwnerNotice] = [
      .wrongCodes(UInt16(number(0...65_535))), .added(shape.authenticators[0].name, time),
      .passGiven(time), .passUsed(time, from: nil),
      .passUsed(time, from: NetworkAddress(high: next(), low: next())), .restored(time),
    ]
    let told = notices.map { ServiceAnswer.told(shape, [$0]) } + [.told(shape, notices)]
    let levels: [EnrollmentLevel] = [.refuse, .required, .offer, .remind, .voluntary]
    let rest: [ServiceAnswer] = [
      .skip, .notEnrolled, .count(0), .count(UInt32(truncatingIfNeeded: next())), .done, .changed,
      .trouble(mayBeTheCallers: false), .trouble(mayBeTheCallers: true), .notServed,
    ]
    return prompts + told + rest + outcomes.map { .outcome($0) } + flaws.map { .flaw($0) }
      + levels.map { .level($0) } + [.required, .offer, .remind].map { .enroll($0) }
  }

  /// A hostile copy of a frame.
  mutating func mutated(frame: [UInt8]) -> [UInt8] {
    var frame = frame
    for _ in 0..<number(1...3) where !frame.isEmpty {
      let place = number(0...frame.count - 1)
      switch number(0...5) {
      case 0: frame[place] = byte()
      case 1: frame[place] ^= 1 << UInt8(number(0...7))
      case 2: frame[place] = pick([0, 1, 2, 0x7f, 0x80, 0xff])
      case 3: frame.insert(byte(), at: place)
      case 4: frame.remove(at: place)
      case _: frame.removeLast(number(1...frame.count))
      }
    }
    return frame
  }
}
