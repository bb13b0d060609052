import OneTimePassword

/// A key of a policy file, such as `remember`. The scalar ones first, and of these the ones first
/// of which the smaller value is the stricter one; otherwise in the order of the manual. A request
/// to the service has the scalar values in this order (`isAsked`): another one is another version
/// of it.
package enum PolicyKey: UInt8, CaseIterable, Sendable {
  case state, adjacentIntervals, lookAhead, guessBudget, enrollment, remember, selfService
  case verification, away, reserveFor, tries, factorPass
  case remindEvery, requiredFrom
  case factorTOTP, factorHOTP, factorBackupCode, factorOrder, minimumFactors
  case hints, tell, language
  case localServices, sshdServices
  case matchService, matchUser, matchGroup, matchOrigin

  package var name: StaticString {
    switch self {
    case .state: "state"
    case .adjacentIntervals: "adjacent_intervals"
    case .lookAhead: "look_ahead"
    case .guessBudget: "guess_budget"
    case .enrollment: "enrollment"
    case .remember: "remember"
    case .selfService: "self_service"
    case .verification: "verification"
    case .away: "away"
    case .reserveFor: "reserve_for"
    case .tries: "tries"
    case .remindEvery: "remind_every"
    case .requiredFrom: "required_from"
    case .factorTOTP: "factor_totp"
    case .factorHOTP: "factor_hotp"
    case .factorBackupCode: "factor_backup_code"
    case .factorPass: "factor_pass"
    case .factorOrder: "factor_order"
    case .minimumFactors: "minimum_factors"
    case .hints: "hints"
    case .tell: "tell"
    case .language: "language"
    case .localServices: "local_services"
    case .sshdServices: "sshd_services"
    case .matchService: "match_service"
    case .matchUser: "match_user"
    case .matchGroup: "match_group"
    case .matchOrigin: "match_origin"
    }
  }

  package var wanted: StaticString {
    switch self {
    case .state: "enabled or disabled"
    case .adjacentIntervals: "a whole number from 0 to 10"
    case .lookAhead, .remindEvery:
      self == .lookAhead ? "a whole number from 0 to 100" : "a whole number from 1 to 100"
    case .guessBudget: "0.01 % to 10 %"
    case .enrollment: "refuse, required, offer, remind or voluntary"
    case .remember, .reserveFor: "0, or up to 366 d, such as 12 h or 30 d"
    case .verification: "local or fleet"
    case .away: "backup_code or refuse"
    case .requiredFrom: "a date such as 2027-01-31"
    case .factorTOTP, .factorHOTP, .factorBackupCode: "on, off or mandatory"
    case .factorPass: "on or off"
    case .factorOrder: "totp, hotp and backup_code, each once"
    case .minimumFactors: "1, 2 or 3"
    case .tries: "a whole number from 1 to 5"
    case .hints, .tell, .selfService: "no or yes"
    case .language: "a language such as fr or pt-BR"
    case .localServices, .sshdServices, .matchService, .matchUser, .matchGroup:
      "names, one with a space in double quotes"
    case .matchOrigin: "local, network, addresses, or ranges such as 192.0.2.0/24"
    }
  }

  /// A value as a word, from its number in `Policy`; nil if the key has no such value.
  package func word(_ number: UInt64) -> StaticString? {
    switch self {
    case .state:
      number == 0 ? "enabled" : number == 1 ? "disabled" : nil
    case .enrollment:
      UInt8(exactly: number).flatMap(EnrollmentLevel.init(rawValue:))?.name
    case .factorTOTP, .factorHOTP, .factorBackupCode:
      UInt8(exactly: number).flatMap(FactorUse.init(rawValue:))?.name
    case .hints, .tell, .selfService:
      number == 0 ? "no" : number == 1 ? "yes" : nil
    case .verification:
      number == 0 ? "fleet" : number == 1 ? "local" : nil
    case .away:
      number == 0 ? "refuse" : number == 1 ? "backup_code" : nil
    case .factorPass:
      number == 0 ? "off" : number == 1 ? "on" : nil
    case .adjacentIntervals, .lookAhead, .guessBudget, .remember, .reserveFor, .tries, .remindEvery,
      .requiredFrom, .factorOrder, .minimumFactors, .language, .localServices, .sshdServices,
      .matchService, .matchUser, .matchGroup, .matchOrigin:
      nil
    }
  }

  /// How many keys have one value, and for how many of them the smaller value is the stricter one,
  /// which applies in doubt.
  static let scalars = 22
  static let tightened = 12

  /// The range of a number; for words, of their numbers in `word`.
  var bounds: ClosedRange<UInt64> {
    switch self {
    case .adjacentIntervals: 0...UInt64(Policy.mostAdjacentIntervals)
    case .lookAhead: 0...100
    case .guessBudget:
      GuessProbability.budgets.lowerBound.units...GuessProbability.budgets.upperBound.units
    case .remember, .reserveFor: 0...366 * 86_400
    case .remindEvery: 1...100
    case .minimumFactors: 1...3
    case .tries: 1...5
    case .state, .enrollment, .requiredFrom, .factorTOTP, .factorHOTP, .factorBackupCode,
      .factorPass, .factorOrder, .hints, .tell, .language, .selfService, .verification, .away,
      .localServices, .sshdServices, .matchService, .matchUser, .matchGroup, .matchOrigin:
      0...UInt64.max
    }
  }

  package var isScalar: Bool { rawValue < PolicyKey.localServices.rawValue }

  /// Whether the stricter value applies where it is not known which rule matches.
  package var isTightenedInDoubt: Bool { rawValue < PolicyKey.tightened }

  /// Whether a request to the service has the value as a number: all scalar ones but those of the
  /// front end, and `factor_pass`, which is a bit beside them.
  package var isAsked: Bool {
    isScalar && self != .tries && self != .tell && self != .language && self != .factorPass
  }

  /// Whether the key is a condition of a rule, not a setting.
  package var isMatch: Bool { rawValue > PolicyKey.sshdServices.rawValue }

  init?(spelledIn text: Secret, at range: Range<Int>) {
    var number: UInt8 = 0
    while let key = PolicyKey(rawValue: number) {
      if text.holds(key.name, in: range) {
        self = key
        return
      }
      number += 1
    }
    return nil
  }
}

extension Policy {
  /// A scalar value as a number; a word as its number in `PolicyKey.word`.
  package subscript(_ key: PolicyKey) -> UInt64 {
    @inline(never) get {
      switch key {
      case .state: isEnabled ? 0 : 1
      case .adjacentIntervals: UInt64(adjacentIntervals)
      case .lookAhead: UInt64(lookAhead)
      case .guessBudget: guessBudget.units
      case .enrollment: UInt64(enrollment.rawValue)
      case .remember: remember
      case .selfService: isSelfService ? 1 : 0
      case .verification: isFleet ? 0 : 1
      case .away: isRefusedAway ? 0 : 1
      case .reserveFor: UInt64(reserveFor)
      case .tries: UInt64(tries)
      case .factorPass: acceptsPasses ? 1 : 0
      case .remindEvery: UInt64(remindEvery)
      case .requiredFrom: UInt64(max(requiredFrom.seconds, 0))
      case .factorTOTP: UInt64(totp.rawValue)
      case .factorHOTP: UInt64(hotp.rawValue)
      case .factorBackupCode: UInt64(backupCode.rawValue)
      case .factorOrder: UInt64(factorOrder.number)
      case .minimumFactors: UInt64(minimumFactors)
      case .hints: hints ? 1 : 0
      case .tell: tells ? 1 : 0
      case .language: language
      case .localServices, .sshdServices, .matchService, .matchUser, .matchGroup, .matchOrigin:
        0
      }
    }
    set {
      let small = UInt8(truncatingIfNeeded: newValue)
      switch key {
      case .state: isEnabled = newValue == 0
      case .adjacentIntervals: adjacentIntervals = small
      case .lookAhead: lookAhead = small
      case .guessBudget: guessBudget = GuessProbability(units: newValue)
      case .enrollment: enrollment = EnrollmentLevel(rawValue: small) ?? .refuse
      case .remember: remember = newValue
      case .selfService: isSelfService = newValue == 1
      case .verification: isFleet = newValue == 0
      case .away: isRefusedAway = newValue == 0
      case .reserveFor: reserveFor = UInt32(clamping: newValue)
      case .tries: tries = small
      case .factorPass: acceptsPasses = newValue == 1
      case .remindEvery: remindEvery = small
      case .requiredFrom: requiredFrom = UnixTime(Int64(clamping: newValue))
      case .factorTOTP: totp = FactorUse(rawValue: small) ?? .off
      case .factorHOTP: hotp = FactorUse(rawValue: small) ?? .off
      case .factorBackupCode: backupCode = FactorUse(rawValue: small) ?? .off
      case .factorOrder: factorOrder = FactorOrder(number: small) ?? .usual
      case .minimumFactors: minimumFactors = small
      case .hints: hints = newValue == 1
      case .tell: tells = newValue == 1
      case .language: language = newValue
      case .localServices, .sshdServices, .matchService, .matchUser, .matchGroup, .matchOrigin:
        break
      }
    }
  }
}
