import OneTimePassword
import SallyportCore
import SallyportSupport

/// A base32 secret in groups of four characters, which are easier to type. Up to 12 groups follow
/// `heading` on its line; more get lines of their own.
func grouped(_ base32: Secret, after heading: String) -> [String] {
  let groups = stride(from: 0, to: base32.count, by: 4).map { start in
    String(decoding: (start..<min(start + 4, base32.count)).map { base32[$0] }, as: UTF8.self)
  }
  if groups.count <= 12 { return ["\(heading) \(groups.joined(separator: " "))"] }
  let lines = stride(from: 0, to: groups.count, by: 12).map { start in
    "    " + groups[start..<min(start + 12, groups.count)].joined(separator: " ")
  }
  return [heading] + lines
}

/// A secret's bytes as text. Only for what is meant to be shown.
func plainText(_ secret: Secret) -> String {
  // SAFETY: the bytes are copied while the secret lives.
  unsafe secret.withBytes { unsafe String(decoding: $0, as: UTF8.self) }
}

/// Unwraps a value that is nil only when allocation fails; exits before anything has changed.
func inMemory<Value>(_ value: Value?) -> Value {
  guard let value else { fatalError("out of memory") }
  return value
}

/// Backup codes in two columns.
func columns(ofBackupCodes codes: [String]) -> [String] {
  stride(from: 0, to: codes.count, by: 2).map { index in
    "    " + codes[index..<min(index + 2, codes.count)].joined(separator: "    ")
  }
}

/// Pads `text` with spaces to `width` columns.
func padded(_ text: String, _ width: Int) -> String {
  text + String(repeating: " ", count: max(0, width - text.unicodeScalars.count))
}

/// Aligns rows in columns, three spaces apart. The last cell of a row is not padded and does not
/// widen its column.
package func table(_ rows: [[String]]) -> [String] {
  let count = rows.map(\.count).max() ?? 0
  let widths = (0..<count).map { column in
    rows.map { column < $0.count - 1 ? $0[column].unicodeScalars.count : 0 }.max() ?? 0
  }
  return rows.map { row in
    row.enumerated().map { column, text in
      column == row.count - 1 ? text : padded(text, widths[column] + 3)
    }.joined()
  }
}

/// Joins parts with commas, in lines of at most `width` columns unless a single part is longer.
func wrapped(_ parts: [String], width: Int) -> [String] {
  parts.reduce(into: []) { lines, part in
    guard let last = lines.last, last.unicodeScalars.count + part.unicodeScalars.count + 3 <= width
    else {
      if let last = lines.popLast() { lines.append(last + ",") }
      lines.append(part)
      return
    }
    lines[lines.count - 1] = "\(last), \(part)"
  }
}

/// `TOTP, 6 digits, 30 s`; names the hash function unless it is SHA-1.
func description(of parameters: CodeParameters, every: String = "") -> String {
  let hash: String
  switch parameters.algorithm {
  case .sha1: hash = ""
  case .sha256: hash = " with SHA-256"
  case .sha512: hash = " with SHA-512"
  }
  let digits = "\(parameters.digits.rawValue) digits"
  switch parameters.type {
  case .totp(let period): return "TOTP\(hash), \(digits), \(every)\(period) s"
  case .hotp: return "HOTP\(hash), \(digits)"
  }
}

/// `7 min ahead`; `right`.
func offText(_ seconds: Int64) -> String {
  guard seconds != 0 else { return "right" }
  return "\(offsetText(seconds.magnitude)) \(seconds < 0 ? "behind" : "ahead")"
}

extension TokenClock {
  /// `7 min ahead, accepted so`; nil if it is right.
  var text: String? { offset == 0 ? nil : "\(offText(Int64(offset))), accepted so" }
}

/// `20 min behind`; nil if the clock is right, and for HOTP, which has none.
func driftText(_ drift: Int32, _ type: AuthenticatorType) -> String? {
  guard case .totp(let period) = type, drift != 0 else { return nil }
  let off = offsetText(UInt64(drift.magnitude) * UInt64(period))
  return "\(off) \(drift < 0 ? "behind" : "ahead")"
}
