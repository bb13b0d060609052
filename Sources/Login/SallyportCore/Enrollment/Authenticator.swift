package import OneTimePassword

/// One TOTP or HOTP secret with a name (NIST SP 800-63B §5.1.4 "OTP device").
package struct Authenticator: Sendable {
  /// Random, never 0; joins the enrollment's entry with its values in the login state.
  package let id: UInt64
  package var name: Label
  package let parameters: CodeParameters
  package let secret: Secret
  /// The time step or counter that counts as accepted from the start, so that the code typed while
  /// enrolling cannot be used again; nil if there was none (HOTP at counter 0).
  package let initialLastAccepted: UInt64?
  package let created: UnixTime
  /// Of a token, whose clock nobody can set: by how many seconds it was ahead at the start, behind
  /// if negative. nil: of a phone, or an HOTP.
  package let clockOffset: Int32?

  package init(
    id: UInt64, name: Label, parameters: CodeParameters, secret: Secret,
    initialLastAccepted: UInt64?, created: UnixTime, clockOffset: Int32? = nil
  ) {
    self.id = id
    self.name = name
    self.parameters = parameters
    self.secret = secret
    self.initialLastAccepted = initialLastAccepted
    self.created = created
    self.clockOffset = clockOffset
  }
}

extension Authenticator {
  /// By how many time steps a token's clock may be off, on either side.
  package static let mostClockSteps: UInt32 = 200

  /// The same in seconds.
  package static func mostClockOffset(_ period: UInt32) -> UInt32 { mostClockSteps * period }
}
