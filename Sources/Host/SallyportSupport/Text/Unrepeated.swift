import SallyportCore

// What a file, standard input or a prompt holds may be a secret, also where something else is
// wanted.

/// Whether a text may hold a secret: an otpauth URI, or one of 8 bytes or more in Base32 or in
/// hexadecimal digits. A name with thirteen letters in a row cannot be told from one.
package func mayHoldSecret(_ text: some Collection<UInt8>) -> Bool {
  var (base32, hexadecimal) = (0, 0)
  // Secrets are read without them, and people write them in groups.
  for byte in text where ![0x20, 0x09, 0x2d, 0x3d].contains(byte) {
    let letter = byte | 0x20
    let isLetter = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(letter)
    let isDigit = (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    let isBase32 = isLetter || (UInt8(ascii: "2")...UInt8(ascii: "7")).contains(byte)
    let isHexadecimal = isDigit || isLetter && letter <= UInt8(ascii: "f")
    base32 = isBase32 ? base32 + 1 : 0
    hexadecimal = isHexadecimal ? hexadecimal + 1 : 0
    if base32 >= 13 || hexadecimal >= 16 { return true }
  }
  return namesOTPAuth(text)
}

/// In capitals too. Byte by byte: to search a String brings the engine of regular expressions into
/// each program, a megabyte and a half.
private func namesOTPAuth(_ text: some Collection<UInt8>) -> Bool {
  let letters = text.map { $0 | 0x20 }
  return letters.indices.contains { letters[$0...].starts(with: "otpauth".utf8) }
}

/// A user's name that a file has, to show; nil if it is no valid one, or may be a secret.
package func shownName(_ name: [UInt8]) -> String? {
  guard let name = UserName(name), !mayHoldSecret(name.bytes) else { return nil }
  return printable(name.bytes, limit: 255)
}

/// A path to show. A word without a slash may be the secret itself, typed where a file is wanted.
package func shownPath(_ path: String) -> String {
  let isPath = path.utf8.contains(UInt8(ascii: "/")) && !namesOTPAuth(path.utf8)
  return isPath || !mayHoldSecret(path.utf8) ? printable(path.utf8, limit: 255) : "the named file"
}

/// The command that shows more of a file; none where the path is not shown.
package func lookingAt(_ path: String) -> [String] {
  shownPath(path) == "the named file" ? [] : ["ls -ld \(shellQuoted(path))"]
}
