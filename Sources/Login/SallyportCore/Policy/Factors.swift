package import OneTimePassword

/// A kind of factor that an enrollment can hold.
package enum FactorKind: UInt8, CaseIterable, Sendable {
  case totp, hotp, backupCode

  package var name: StaticString {
    switch self {
    case .totp: "totp"
    case .hotp: "hotp"
    case .backupCode: "backup_code"
    }
  }
}

/// What the policy says about a kind of factor.
package enum FactorUse: UInt8, Sendable {
  case on
  /// Not accepted, but stored.
  case off
  /// An enrollment without one is incomplete.
  case mandatory

  package var name: StaticString {
    switch self {
    case .on: "on"
    case .off: "off"
    case .mandatory: "mandatory"
    }
  }
}

/// The order in which enrolling offers the kinds; each appears once.
package struct FactorOrder: Equatable, Sendable {
  package let first: FactorKind
  package let second: FactorKind
  package let third: FactorKind

  package static let usual = FactorOrder(.totp, .hotp, .backupCode)

  /// All three kinds in this order.
  package var kinds: [FactorKind] { [first, second, third] }

  private init(_ first: FactorKind, _ second: FactorKind, _ third: FactorKind) {
    (self.first, self.second, self.third) = (first, second, third)
  }

  /// The order as a number in base three.
  package var number: UInt8 { first.rawValue * 9 + second.rawValue * 3 + third.rawValue }

  /// Returns nil for a number that is not an order of all three.
  package init?(number: UInt8) {
    guard number < 27, let first = FactorKind(rawValue: number / 9),
      let second = FactorKind(rawValue: number / 3 % 3),
      let third = FactorKind(rawValue: number % 3),
      first != second, first != third, second != third
    else { return nil }
    self.init(first, second, third)
  }
}

/// A set of kinds.
package struct Factors: Equatable, Sendable {
  private var bits: UInt8 = 0

  package init() {}

  package var isEmpty: Bool { bits == 0 }
  package var count: Int { bits.nonzeroBitCount }

  package func contains(_ kind: FactorKind) -> Bool { bits >> kind.rawValue & 1 == 1 }
  package mutating func insert(_ kind: FactorKind) { bits |= 1 << kind.rawValue }

  package var hasAuthenticator: Bool { contains(.totp) || contains(.hotp) }
}

extension Enrollment {
  /// The kinds in the enrollment, used-up backup codes included.
  package var factors: Factors {
    var factors = Factors()
    for authenticator in authenticators { factors.insert(authenticator.parameters.type.factor) }
    if backupCodes != nil { factors.insert(.backupCode) }
    return factors
  }
}

extension AuthenticatorType {
  package var factor: FactorKind {
    switch self {
    case .totp: .totp
    case .hotp: .hotp
    }
  }
}

extension Policy {
  package func use(of kind: FactorKind) -> FactorUse {
    switch kind {
    case .totp: totp
    case .hotp: hotp
    case .backupCode: backupCode
    }
  }

  /// The kinds that `factors` needs to be complete: every mandatory kind, an authenticator, and
  /// more kinds that are on, in the policy's order, until there are `minimum_factors`. Kinds that
  /// are off neither count nor are asked for; if the policy allows too few, all that it allows are
  /// needed.
  package func missing(from factors: Factors) -> Factors {
    var (missing, have) = (Factors(), Factors())
    for kind in FactorKind.allCases where factors.contains(kind) && use(of: kind) != .off {
      have.insert(kind)
    }
    for kind in FactorKind.allCases where use(of: kind) == .mandatory && !have.contains(kind) {
      missing.insert(kind)
    }
    fill(&missing, have) { missing, kind in
      kind != .backupCode && !missing.hasAuthenticator && !have.hasAuthenticator
    }
    let wanted = Int(minimumFactors)
    fill(&missing, have) { missing, _ in missing.count + have.count < wanted }
    return missing
  }

  /// Whether a login needs a code of a certain kind, which a pass is not.
  package var demandsKind: Bool {
    totp == .mandatory || hotp == .mandatory || backupCode == .mandatory
  }

  private func fill(
    _ missing: inout Factors, _ have: Factors, while isWanted: (Factors, FactorKind) -> Bool
  ) {
    for kind in factorOrder.kinds {
      if use(of: kind) == .on, !have.contains(kind), !missing.contains(kind),
        isWanted(missing, kind)
      {
        missing.insert(kind)
      }
    }
  }
}
