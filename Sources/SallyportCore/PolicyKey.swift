/// What can be set in a policy file. The scalar ones first, in the order of the manual.
package enum PolicyKey: UInt8, CaseIterable, Sendable {
  case state, adjacentIntervals, lookAhead, guessBudget, enrollment
  case factorTOTP, factorHOTP, factorBackupCode
  case localServices
  case matchService, matchUser, matchGroup, matchOrigin

  package var name: StaticString {
    switch self {
    case .state: "state"
    case .adjacentIntervals: "adjacent_intervals"
    case .lookAhead: "look_ahead"
    case .guessBudget: "guess_budget"
    case .enrollment: "enrollment"
    case .factorTOTP: "factor_totp"
    case .factorHOTP: "factor_hotp"
    case .factorBackupCode: "factor_backup_code"
    case .localServices: "local_services"
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
    case .lookAhead: "a whole number from 0 to 100"
    case .guessBudget: "0.01 % to 10 %"
    case .enrollment: "refuse or voluntary"
    case .factorTOTP, .factorHOTP, .factorBackupCode: "on or off"
    case .localServices, .matchService, .matchUser, .matchGroup: "names"
    case .matchOrigin: "local, network, addresses, or ranges such as 192.0.2.0/24"
    }
  }

  package var isScalar: Bool { rawValue < PolicyKey.localServices.rawValue }

  /// Whether it says when a rule holds, and not what.
  package var isMatch: Bool { rawValue > PolicyKey.localServices.rawValue }
}

extension Policy {
  /// A scalar value as a number: of the words that `wanted` names the first is 0, the second 1.
  package subscript(_ key: PolicyKey) -> UInt64 {
    get {
      switch key {
      case .state: isEnabled ? 0 : 1
      case .adjacentIntervals: UInt64(adjacentIntervals)
      case .lookAhead: UInt64(lookAhead)
      case .guessBudget: guessBudget.units
      case .enrollment: enrollment == .refuse ? 0 : 1
      case .factorTOTP: acceptsTOTP ? 0 : 1
      case .factorHOTP: acceptsHOTP ? 0 : 1
      case .factorBackupCode: acceptsBackupCodes ? 0 : 1
      case .localServices, .matchService, .matchUser, .matchGroup, .matchOrigin: 0
      }
    }
    set {
      switch key {
      case .state: isEnabled = newValue == 0
      case .adjacentIntervals: adjacentIntervals = UInt8(truncatingIfNeeded: newValue)
      case .lookAhead: lookAhead = UInt8(truncatingIfNeeded: newValue)
      case .guessBudget: guessBudget = Luck(units: newValue)
      case .enrollment: enrollment = newValue == 0 ? .refuse : .voluntary
      case .factorTOTP: acceptsTOTP = newValue == 0
      case .factorHOTP: acceptsHOTP = newValue == 0
      case .factorBackupCode: acceptsBackupCodes = newValue == 0
      case .localServices, .matchService, .matchUser, .matchGroup, .matchOrigin: break
      }
    }
  }
}
