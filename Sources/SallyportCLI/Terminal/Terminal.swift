import OneTimePassword

/// Where the command's words go.
enum Stream {
  /// Standard output: the answer.
  case answer
  /// Standard error: everything else, where the answer is for a program.
  case aside
}

/// What can be drawn on.
struct Screen: Equatable {
  let columns: Int
  let lines: Int
  /// The reader's locale writes UTF-8.
  let isUTF8: Bool
}

/// Why there is no answer to a question.
enum Interruption: Error, Equatable {
  case endOfInput
  /// A signal by its number.
  case signal(Int32)
  /// Reading failed with this errno.
  case failure(Int32)
}

/// Who sits in front of the command: a person at a terminal, a script at both ends of a pipe, or a
/// test.
protocol Terminal: AnyObject {
  /// Whether questions are answered at a terminal.
  var isInteractive: Bool { get }
  /// nil where the stream is no terminal.
  func screen(of stream: Stream) -> Screen?
  /// From now on the signals that end a command are taken by `line` and `interruption` alone.
  func watchForInterruption()
  /// A signal that has arrived since.
  func interruption() -> Interruption?
  /// A failure is kept in `failure` and nothing more is written to that stream.
  func write(_ bytes: [UInt8], to stream: Stream)
  /// The errno of the first failure to write an answer.
  var failure: Int32? { get }
  /// The next line without its newline; of a longer one the first `Limits.line` bytes. `prompt` is
  /// shown only to a person, on `stream`.
  func line(prompt: String, on stream: Stream, echo: Bool) throws(Interruption) -> Secret
  /// Everything up to the end, perhaps nothing; nil where that is more than `limit` bytes.
  func rest(limit: Int) throws(Interruption) -> Secret?
}

/// Bounds of what is read.
enum Limits {
  /// Longer than any code, and the longest secret in base32.
  static let line = 1024
  static let file = 65536
  /// A list on standard input.
  static let list = 64 << 20
}
