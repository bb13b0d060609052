import Glibc
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem

/// An error or a warning: what happened, the next commands, and the exit status.
package struct Message: Equatable {
  package let text: String
  /// The next commands, each with an optional remark.
  package var hints: [String] = []
  package let status: Sysexit

  package init(_ text: String, _ status: Sysexit, hints: [String] = []) {
    (self.text, self.status, self.hints) = (text, status, hints)
  }

  /// As printed on standard error.
  package var written: String {
    "sallyport: \(text)\n" + hints.map { "hint: \($0)\n" }.joined()
  }
}

/// What the command was called for, to suggest the next command.
package struct Invocation: Equatable {
  package let verb: String
  /// As given on the command line, or by sudo.
  package var user: String?
  /// `--store`.
  package var store: String?
  /// The words after `sallyport`, as typed; empty if they are not known.
  package var typed: [String] = []

  package init(verb: String, user: String? = nil, store: String? = nil) {
    (self.verb, self.user, self.store) = (verb, user, store)
  }

  /// The user for a message.
  package var who: String { user.map { printable($0.utf8, limit: 255) } ?? "nobody" }

  /// A command to copy: the verb for the same user and store.
  package func command(_ verb: String, _ options: String = "", remark: String = "") -> String {
    var words = ["sallyport", verb]
    var users = [user].compactMap { $0 }
    // The positional argument of import is a file.
    if let user, verb.hasPrefix("import") {
      words += ["--user", shellQuoted(user)]
      users = []
    }
    let more = store.map { ["--store", shellQuoted($0)] } ?? []
    words.append(commandWords(users, more + (options.isEmpty ? [] : [options])))
    let command = words.filter { !$0.isEmpty }.joined(separator: " ")
    return remark.isEmpty ? command : "\(command)  # \(remark)"
  }
}

extension Invocation {
  /// The command that was typed, with one more option.
  package func again(_ option: String = "", remark: String = "") -> String {
    again(option.isEmpty ? [] : [option], remark: remark)
  }

  /// The command that was typed, with more words: an option and its value take the place of the
  /// same option.
  package func again(_ words: [String], remark: String = "") -> String {
    if typed.isEmpty { return command(verb, words.joined(separator: " "), remark: remark) }
    var (typed, more) = (typed, words)
    if words.count == 2 {
      while let place = typed.firstIndex(of: words[0]) {
        typed.removeSubrange(place..<min(place + 2, typed.count))
      }
    } else {
      more = words.filter { !typed.contains($0) }
    }
    let end = typed.firstIndex(of: "--") ?? typed.count
    return line(Array(typed[..<end]) + more + Array(typed[end...]), remark)
  }

  /// The command that was typed, with a user.
  package func again(for user: String) -> String {
    if typed.isEmpty { return Invocation(verb: verb, user: user, store: store).command(verb) }
    var words = typed
    let count = min(verb.split(separator: " ").count, words.count)
    words.insert(contentsOf: verb.hasPrefix("import") ? ["--user", user] : [user], at: count)
    return line(words, "")
  }

  private func line(_ words: [String], _ remark: String) -> String {
    let text = (["sallyport"] + words.map(shellQuoted)).joined(separator: " ")
    return text + (remark.isEmpty ? "" : "  # \(remark)")
  }
}

extension UserName {
  /// The name as it is typed, and passed on as a name; `text` only shows it. nil: no argument of a
  /// command can be it, as it is not UTF-8.
  package var typed: String? {
    let text = String(decoding: bytes, as: UTF8.self)
    return text.utf8.elementsEqual(bytes) ? text : nil
  }

  /// For a message that shows it, with a command to type.
  package var typedOrShown: String { typed ?? text }
}

/// `getent passwd lena`
package func lookup(of name: String, in database: String) -> String {
  "getent \(database) \(name.hasPrefix("-") ? "-- " : "")\(shellQuoted(name))"
}

/// A word of a command to type, quoted if it needs to be. Where a character of it cannot be seen,
/// it is written as bash, zsh and ksh read it: `$'a\012b'`.
package func shellQuoted(_ word: String) -> String {
  if word.unicodeScalars.allSatisfy(canBeSeen) { return quotedForPOSIX(word) }
  let inner = word.utf8.map { byte in
    let digits = String(byte, radix: 8)
    let isPlain = (0x20...0x7e).contains(byte) && byte != 0x27 && byte != 0x5c
    return isPlain
      ? String(UnicodeScalar(byte))
      : "\\" + String(repeating: "0", count: 3 - digits.count) + digits
  }
  return "$'\(inner.joined())'"
}

private func canBeSeen(_ scalar: Unicode.Scalar) -> Bool {
  if scalar.isASCII { return (0x20...0x7e).contains(scalar.value) }
  let hidden: [Unicode.GeneralCategory] = [
    .control, .format, .lineSeparator, .paragraphSeparator, .spaceSeparator, .privateUse,
    .unassigned,
  ]
  let facts = scalar.properties
  return !facts.isDefaultIgnorableCodePoint && !hidden.contains(facts.generalCategory)
}

/// A word, quoted for any POSIX shell if it needs to be.
package func quotedForPOSIX(_ word: String) -> String {
  let plain = word.utf8.allSatisfy { byte in
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"),
      UInt8(ascii: "."), UInt8(ascii: "/"), UInt8(ascii: "@"), UInt8(ascii: "+"),
      UInt8(ascii: "="), UInt8(ascii: ":"), UInt8(ascii: ","):
      return true
    case _: return false
    }
  }
  if plain, !word.isEmpty { return word }
  let inner = word.unicodeScalars.map { $0 == "'" ? "'\\''" : String(Character($0)) }.joined()
  return "'\(inner)'"
}

/// A command to copy, with the options where they count as options: a word that begins with a
/// hyphen needs `--` before it.
package func sallyportCommand(_ verb: String, on words: [String], _ options: [String] = [])
  -> String
{
  "sallyport \(verb) \(commandWords(words, options))"
}

/// What follows the verb.
package func commandWords(_ words: [String], _ options: [String] = []) -> String {
  let quoted = words.map(shellQuoted)
  let isHyphened = words.contains { $0.hasPrefix("-") }
  return (isHyphened ? options + ["--"] + quoted : quoted + options).joined(separator: " ")
}

/// `No space left on device (ENOSPC)`
package func errnoText(_ number: Int32) -> String {
  var line = LogLine("")
  line.add(error: number)
  return String(decoding: line.bytes, as: UTF8.self)
}

/// `No space left on device`, as the log of a service has it.
package func errnoDescription(_ number: Int32) -> String {
  // SAFETY: a C string for any number, copied at once.
  unsafe String(cString: strerror(number))
}
