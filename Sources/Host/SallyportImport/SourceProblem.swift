package import OneTimePassword
package import SallyportAdministration
import SallyportCore

/// Why a line of another module's file cannot be imported. Never contains a byte of a secret.
package enum SourceProblem: Error, Equatable, Sendable {
  /// There is nothing but comments.
  case empty
  /// A NUL, which no text contains.
  case notText
  /// Longer than the 64 KiB that the other module itself reads.
  case tooLong
  /// The secret is empty or has a character that is not in base32.
  case base32
  /// The key is not an even number of hexadecimal digits.
  case hexadecimal
  /// The key exceeds 32 bytes, which the other module rejects.
  case keyTooLong
  /// Neither TOTP nor HOTP.
  case noType
  /// A token type that the other module does not know.
  case unknownType
  /// An option with a value that the other module rejects.
  case option(StaticText)
  /// This time step, in seconds, is not within the supported 15 to 300.
  case period(UInt64)
  /// The counter is not a number, or has reached its end.
  case counter
  /// Not a valid date.
  case date
  /// The line has too few fields.
  case tooFewWords
  /// Not a valid user name.
  case userName
  case uri(OtpauthURI.Error)
  case outOfMemory
}

/// A name to show, as it is in the source.
package struct StaticText: Equatable, Sendable {
  package let text: String

  init(_ text: StaticString) { self.text = "\(text)" }
}

/// A problem and its line, counted from 1.
package struct LineProblem: Error, Equatable, Sendable {
  package let line: Int
  package let problem: SourceProblem

  package init(_ line: Int, _ problem: SourceProblem) {
    (self.line, self.problem) = (line, problem)
  }
}
