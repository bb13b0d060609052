package import OneTimePassword

/// A stream that the command writes to.
package enum Stream {
  /// Standard output: the answer.
  case answer
  /// Standard error: everything that is not the answer.
  case aside
}

/// The size and the encoding of a terminal.
package struct Screen: Equatable {
  let columns: Int
  let lines: Int
  /// The locale's encoding is UTF-8.
  let isUTF8: Bool
}

/// Why there is no answer to a question.
package enum Interruption: Error, Equatable {
  case endOfInput
  /// The signal with this number.
  case signal(Int32)
  /// Reading failed with this errno.
  case failure(Int32)
}

/// Standard input, output and error: a user's terminal, the pipes of a script, or a test.
package protocol Terminal: AnyObject {
  /// Whether standard input is a terminal.
  var isInteractive: Bool { get }
  /// nil if the stream is not a terminal.
  func screen(of stream: Stream) -> Screen?
  /// From now on, signals that would end the command are only reported by `line` and
  /// `interruption`.
  func watchForInterruption()
  /// A signal that has arrived since `watchForInterruption`.
  func interruption() -> Interruption?
  /// If writing an answer fails, sets `failure` and writes no more answers.
  func write(_ bytes: [UInt8], to stream: Stream)
  /// The errno of the first failure to write an answer.
  var failure: Int32? { get }
  /// The next line of input, without its newline and cut to `Limits.line` bytes. `prompt` is
  /// written to `stream`, and only if standard input is a terminal.
  func line(prompt: String, on stream: Stream, echo: Bool) throws(Interruption) -> Secret
  /// All input up to its end, which may be empty; nil if it is more than `limit` bytes.
  func rest(limit: Int) throws(Interruption) -> Secret?
}

/// Limits on input, in bytes.
enum Limits {
  /// Enough for any code, and for the longest secret in base32.
  static let line = 1024
  static let file = 65536
  /// A list of users to import, on standard input.
  static let list = 64 << 20
}
