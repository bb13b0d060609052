package import OneTimePassword
import SallyportCore

/// Why a line of another module's file cannot be taken. Never holds a byte of a secret.
package enum SourceProblem: Error, Equatable, Sendable {
  /// Nothing, or nothing but comments.
  case empty
  /// A byte 0, which no such text has.
  case notText
  /// Longer than the other module itself reads: 64 KiB.
  case tooLong
  /// The secret has characters that base32 has not, or none at all.
  case base32
  /// The key is no even number of hexadecimal digits.
  case hexadecimal
  /// The key has more than 32 bytes, which the other module refuses.
  case keyTooLong
  /// Neither by time nor by counter.
  case noType
  /// A type of token that the other module does not know.
  case unknownType
  /// An option whose value the other module refuses.
  case option(StaticText)
  /// Codes change every so many seconds; 15 to 300 can be had.
  case period(UInt64)
  /// The counter is none, or has come to its end.
  case counter
  /// The date is none.
  case date
  /// Fewer words than a line has.
  case tooFewWords
  /// The name can be no user's.
  case userName
  case uri(OtpauthURI.Error)
  case outOfMemory
}

/// A name in the source, to be shown.
package struct StaticText: Equatable, Sendable {
  package let text: String

  init(_ text: StaticString) { self.text = "\(text)" }
}

/// A problem with its line, from 1.
package struct LineProblem: Error, Equatable, Sendable {
  package let line: Int
  package let problem: SourceProblem

  package init(_ line: Int, _ problem: SourceProblem) {
    (self.line, self.problem) = (line, problem)
  }
}
