import SallyportSupport

/// Why a line of a list of tokens cannot be imported. Never contains a byte of a secret.
package struct TokenProblem: Error, Equatable, Sendable {
  /// Counted from 1.
  package let line: Int
  /// The column, counted from 1; nil: all of the line.
  package let column: Int?
  package let text: String

  package init(line: Int, column: Int? = nil, _ text: String) {
    (self.line, self.column, self.text) = (line, column, text)
  }

  /// `line 3, column 2: the secret is not base32`
  package var told: String {
    "line \(line)" + (column.map { ", column \($0)" } ?? "") + ": \(text)"
  }
}

/// Why nothing of a list of tokens can be imported.
package enum TokenListError: Error, Equatable, Sendable {
  /// It has a NUL byte, or is UTF-16.
  case notText
  case empty
  /// No line has a comma, semicolon or tab; whether its first one has blanks between words.
  case noSeparator(hasBlanks: Bool)
  /// XML, as of a key container.
  case markup
  /// The head names no column, or not these two.
  case noColumn(TokenColumn)
  /// Two columns are this.
  case doubleColumn(TokenColumn)
  /// No head tells what the columns are, and their order is none that is known.
  case unknownColumns(line: Int)
  /// A column whose head is not known, and may mean this.
  case unknownHead(column: Int, [UInt8], TokenColumn)
  /// What should be serial numbers are secrets by their looks.
  case secretsAsSerials
  /// Every secret can be read as either.
  case eitherForm
  /// Lines of which one secret is hexadecimal alone, and the other base32 alone.
  case bothForms(hexadecimal: Int, base32: Int)
  case problems([TokenProblem])
}
