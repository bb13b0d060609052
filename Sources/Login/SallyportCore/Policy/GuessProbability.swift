package import OneTimePassword

/// The probability of a correct guess, in units of 10⁻¹².
package struct GuessProbability: Equatable, Comparable, Sendable {
  package let units: UInt64

  package init(units: UInt64) { self.units = units }

  package static let none = GuessProbability(units: 0)
  package static let percent = GuessProbability(units: 10_000_000_000)
  /// The limits of a year's budget: 0.01 % and 10 %.
  package static let budgets =
    GuessProbability(units: 100_000_000)...GuessProbability(units: 100_000_000_000)

  /// The probability of guessing a given code with this number of digits.
  package init(ofOneCodeWith digits: Digits) {
    units = 1_000_000_000_000 / UInt64(digits.modulus)
  }

  /// The probability of guessing a given scratch code: eight digits, the first of which is not 0.
  package static let ofOneScratchCode = GuessProbability(units: 11_112)

  package static func < (a: GuessProbability, b: GuessProbability) -> Bool { a.units < b.units }
}
