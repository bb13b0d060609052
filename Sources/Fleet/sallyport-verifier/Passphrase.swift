import Glibc
import OneTimePassword
import SallyportVerifier

/// A passphrase from the terminal, without echo, or from the first line of standard input.
enum Passphrase {
  private static let shortest = 12
  private static let longest = 1024

  /// Typed twice where a person types it.
  static func new() throws -> Secret {
    let typed = try line("New passphrase: ")
    guard typed.count >= shortest else {
      throw Failure("a passphrase of at least \(shortest) characters is needed")
    }
    if isatty(0) == 1 {
      guard constantTimeEquals(typed, try line("Repeat it: ")) else {
        throw Failure("the passphrases do not match")
      }
    }
    return typed
  }

  static func known() throws(KeyBackup.Fault) -> Secret {
    guard let typed = try? line("Passphrase: ") else { throw .wrongPassphrase }
    return typed
  }

  private static func line(_ prompt: String) throws -> Secret {
    var before = termios()
    // SAFETY: filled within the call; set again below.
    let isPerson = unsafe isatty(0) == 1 && tcgetattr(0, &before) == 0
    if isPerson {
      tellInline(prompt)
      var silent = before
      silent.c_lflag &= ~tcflag_t(ECHO)
      // SAFETY: the struct lives for the call.
      _ = unsafe tcsetattr(0, TCSAFLUSH, &silent)
    }
    defer {
      if isPerson {
        // SAFETY: as above.
        _ = unsafe tcsetattr(0, TCSAFLUSH, &before)
        tellInline("\n")
      }
    }
    guard let buffer = Secret(count: longest) else { throw Failure("out of memory") }
    var count = 0
    var byte: UInt8 = 0
    // SAFETY: one byte at a time, so that what follows the line is left where it is.
    while unsafe read(0, &byte, 1) == 1, byte != 0x0a {
      guard count < longest else { throw Failure("longer than \(longest) characters") }
      buffer.set(count, to: byte)
      count += 1
    }
    guard count > 0, let typed = buffer.slice(0..<count) else {
      throw Failure("no passphrase was typed")
    }
    return typed
  }
}

/// To standard error, so that the answer can go into a pipe.
func tellInline(_ text: String) {
  // SAFETY: the string lives for the call.
  _ = unsafe write(2, text, text.utf8.count)
}

/// The same as a line of this program's.
func tell(_ line: String) { tellInline("sallyport-verifier: \(line)\n") }
