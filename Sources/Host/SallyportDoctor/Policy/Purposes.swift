import OneTimePassword
package import PAMStack
package import SallyportCore

/// A word of `without_code`: it is meant that an account gets in by a way without a code.
package struct Purpose: Equatable, Sendable {
  package let account: String
  /// A PAM service; the first of a program's services stands for all of them.
  package let way: String
  package let location: FileLocation

  /// As it is written in the file.
  package static func word(_ account: String, _ way: String) -> String {
    let word = "\(account):\(way)"
    return word.contains { $0 == " " || $0 == "," } ? "\"\(word)\"" : word
  }
}

extension PolicyText {
  /// What is meant to be without a code; nothing as long as the file has an error.
  package func purposes() -> [Purpose] {
    guard problems().isEmpty else { return [] }
    let found = PurposeReader(self)
    return found.problems.isEmpty ? found.purposes : []
  }

  /// Each mistake in a line of `without_code`. No login reads these lines, so that the file is used
  /// as if they were not there.
  package func purposeProblems() -> [SettingsError] { PurposeReader(self).problems }
}

/// Reads the lines of `without_code`.
private struct PurposeReader {
  private(set) var purposes: [Purpose] = []
  private(set) var problems: [SettingsError] = []

  private let text: PolicyText
  private var isInDefault = false
  private var isSet = false

  init(_ text: PolicyText) {
    self.text = text
    guard var lines = try? SettingsScanner(text.content) else { return }
    while true {
      do throws(SettingsError) {
        guard let line = try lines.next() else { return }
        take(line, lines.number)
      } catch {
        // `problems` has it.
        continue
      }
    }
  }

  private mutating func take(_ line: SettingsLine, _ number: Int) {
    switch line {
    case .section(let name): isInDefault = text.content.holds("default", in: name)
    case .setting(let key, let value):
      guard text.content.holds(PolicyFile.withoutCode, in: key) else { return }
      let found = text.content.bytes(in: key)
      if !isInDefault {
        problems.append(
          SettingsError(line: number, .missing("[default] above this key"), found: found))
      } else if isSet {
        problems.append(SettingsError(line: number, .duplicateKey, found: found))
      } else {
        isSet = true
        take(text.words(in: value), text.content.bytes(in: value), number)
      }
    }
  }

  private mutating func take(_ words: [[UInt8]], _ value: [UInt8], _ number: Int) {
    if words.isEmpty { complain(number, PurposeReader.form, about: value) }
    for word in words {
      let parts = word.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
      if parts.count != 2 || parts.contains(where: \.isEmpty) {
        complain(number, PurposeReader.form, about: word)
      } else if !isAccount(parts[0]) {
        complain(number, "the name of an account, no group and no pattern", about: word)
      } else if !isService(parts[1]) {
        complain(number, "a PAM service in lower case after the colon", about: word)
      } else {
        purposes.append(
          Purpose(
            account: String(decoding: parts[0], as: UTF8.self),
            way: String(decoding: parts[1], as: UTF8.self),
            location: FileLocation(file: text.path, line: number)))
      }
    }
  }

  private static var form: StaticString { "words such as git:sshd, or \"john doe:sshd\" in quotes" }

  private mutating func complain(_ line: Int, _ wanted: StaticString, about word: [UInt8]) {
    problems.append(
      SettingsError(line: line, .value(PolicyFile.withoutCode, wanted: wanted), found: word))
  }

  /// A literal one: sudoers writes groups as `%wheel`, sshd and PAM as `@wheel`.
  private func isAccount(_ name: some Collection<UInt8>) -> Bool {
    guard let first = name.first, UserName(name) != nil else { return false }
    return !"%@!+".utf8.contains(first) && !name.contains { "*?".utf8.contains($0) }
      && String(validating: name, as: UTF8.self) != nil
  }

  /// As libpam has it: in lower case, and the name of a file.
  private func isService(_ name: some Collection<UInt8>) -> Bool {
    name.first != UInt8(ascii: ".")
      && name.allSatisfy { byte in
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
          || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "_.+-".utf8.contains(byte)
      }
  }
}
