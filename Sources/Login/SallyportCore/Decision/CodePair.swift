package import OneTimePassword

// What a resynchronization is asked for and gives, as values that a frame can carry. Only
// SallyportAdministration does one.

/// Two consecutive codes of one authenticator.
package struct CodePair: Equatable, Sendable {
  package let first: UInt32
  package let second: UInt32
  package let digits: Digits

  /// Returns nil unless both are codes, with the same number of digits.
  package init?(_ first: Response, _ second: Response) {
    guard case .code(let one, let digits) = first, case .code(let two, let others) = second,
      digits == others
    else { return nil }
    (self.first, self.second, self.digits) = (one, two, digits)
  }
}

/// The result of a resynchronization (RFC 4226 §7.4, RFC 6238 §6).
package enum Resync: Equatable, Sendable {
  /// The authenticator is in step: codes after the second one are accepted. `drift` as in
  /// `AuthenticatorState`. `reopened`: the clock had run ahead, and codes that were accepted then
  /// are accepted again in their own time; the last of these steps ends at this time.
  case done(name: Label, drift: Int32, reopened: UnixTime?)
  case refused(ResyncRefusal)
}

/// Why two codes changed nothing but the stored drift.
package enum ResyncRefusal: Equatable, Sendable {
  /// The authenticator's clock is off by `drift` steps of `period` seconds, but logins accept at
  /// most `accepted` of them: the clock must be set.
  case clockOff(name: Label, drift: Int32, period: UInt32, accepted: UInt8)
  /// Codes near the present time, at or below the last accepted one.
  case replayed(name: Label)
  /// Codes of a token below a last accepted step that it has not reached, as a clock of ours was
  /// ahead: it shows later ones from about that time on.
  case waits(name: Label, until: UnixTime)
  /// Not two consecutive codes of any authenticator within the searched range.
  case notFound
}
