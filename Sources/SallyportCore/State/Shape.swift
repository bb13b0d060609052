package import OneTimePassword

/// What a front end needs to know of an enrollment to ask for a code: no secret and no digest.
package struct Shape: Equatable, Sendable {
  /// One TOTP or HOTP secret, without it.
  package struct Authenticator: Equatable, Sendable {
    package let name: Label
    /// `totp` or `hotp`.
    package let kind: FactorKind
    package let digits: Digits

    package init(name: Label, kind: FactorKind, digits: Digits) {
      (self.name, self.kind, self.digits) = (name, kind, digits)
    }
  }

  /// Never 0; the user's, or the decoy's.
  package let enrollmentID: UInt64
  /// 1 to 8, in the enrollment's order.
  package let authenticators: [Authenticator]
  /// Whether the backup codes include scratch codes, used or not.
  package let hasScratchCodes: Bool
  /// Backup codes and scratch codes that are good, 0 to 64; nil: there is no set of them.
  package let backupCodesLeft: Int?
  /// Seconds until a code from a known place is checked again; 0: one is checked now; nil: none
  /// ever is.
  package let wait: UInt64?
  /// Whether no code is needed from there now (the policy's `remember`).
  package let isRemembered: Bool

  package init(
    enrollmentID: UInt64, authenticators: [Authenticator], hasScratchCodes: Bool,
    backupCodesLeft: Int?, wait: UInt64?, isRemembered: Bool
  ) {
    self.enrollmentID = enrollmentID
    self.authenticators = authenticators
    self.hasScratchCodes = hasScratchCodes
    self.backupCodesLeft = backupCodesLeft
    self.wait = wait
    self.isRemembered = isRemembered
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

  /// Whether some code has so many digits: of an authenticator, or a scratch code.
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
