package import OneTimePassword

/// What a front end needs to know about an enrollment to ask for a code, without secrets and
/// digests.
package struct Shape: Equatable, Sendable {
  /// A TOTP or HOTP authenticator without its secret.
  package struct Authenticator: Equatable, Sendable {
    package let name: Label
    /// `totp` or `hotp`.
    package let kind: FactorKind
    package let digits: Digits

    package init(name: Label, kind: FactorKind, digits: Digits) {
      (self.name, self.kind, self.digits) = (name, kind, digits)
    }
  }

  /// Never 0: that of the user, or of the decoy.
  package let enrollmentID: UInt64
  /// 1 to 8, in the order of the enrollment; none where `isAway`.
  package let authenticators: [Authenticator]
  /// Whether the backup codes include scratch codes, used or not.
  package let hasScratchCodes: Bool
  /// How many backup codes and scratch codes are left, 0 to 64; nil if there is no set.
  package let backupCodesLeft: Int?
  /// Seconds until a code from a known origin is checked again, whatever its length; 0 if it is
  /// checked now, nil if never.
  package let wait: UInt64?
  /// Whether a login from there needs no code now (`remember` in the policy).
  package let isRemembered: Bool
  /// Whether the fleet is away, so that a backup code alone is accepted: `away(as:)`.
  package let isAway: Bool

  package init(
    enrollmentID: UInt64, authenticators: [Authenticator], hasScratchCodes: Bool,
    backupCodesLeft: Int?, wait: UInt64?, isRemembered: Bool, isAway: Bool = false
  ) {
    self.enrollmentID = enrollmentID
    self.authenticators = authenticators
    self.hasScratchCodes = hasScratchCodes
    self.backupCodesLeft = backupCodesLeft
    self.wait = wait
    self.isRemembered = isRemembered
    self.isAway = isAway
  }

  package init(
    of enrollment: Enrollment, _ state: LoginState, wait: UInt64?, isRemembered: Bool
  ) {
    self.init(
      enrollmentID: enrollment.id,
      authenticators: enrollment.authenticators.map {
        Authenticator(
          name: $0.name, kind: $0.parameters.type.factor, digits: $0.parameters.digits)
      },
      hasScratchCodes: enrollment.scratchCodes != nil,
      backupCodesLeft: enrollment.backupCodes?.left(state.backupCodes), wait: wait,
      isRemembered: isRemembered)
  }

  /// While the fleet is away: the same for everybody but for the number, so that neither who is
  /// enrolled shows, nor with what.
  package static func away(as enrollmentID: UInt64) -> Shape {
    Shape(
      enrollmentID: enrollmentID, authenticators: [], hasScratchCodes: false, backupCodesLeft: nil,
      wait: 0, isRemembered: false, isAway: true)
  }

  /// Whether logins alone can have made this of the earlier one. What a shape does not show is not
  /// noticed: an authenticator in the place of another of the same name, kind and digits.
  package func follows(_ earlier: Shape) -> Bool {
    guard !isAway, enrollmentID == earlier.enrollmentID, authenticators == earlier.authenticators
    else { return false }
    // There are never more but by new ones.
    switch (backupCodesLeft, earlier.backupCodesLeft) {
    case (nil, nil): return true
    case (let left?, let before?): return left <= before
    case (nil, _?), (_?, nil): return false
    }
  }

  /// Whether an authenticator or a scratch code has this number of digits.
  func hasCodes(of digits: Digits) -> Bool {
    for one in authenticators where one.digits == digits { return true }
    return digits == .eight && hasScratchCodes
  }

  /// The kinds that are enrolled, used-up backup codes included.
  package var factors: Factors {
    var factors = Factors()
    for authenticator in authenticators { factors.insert(authenticator.kind) }
    if backupCodesLeft != nil { factors.insert(.backupCode) }
    return factors
  }
}
