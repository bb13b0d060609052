import OneTimePassword
import TestSupport
import Testing

/// The columns of a file in Tests/Vectors; `""` is an empty column, `#` begins a comment line.
func vectors(_ name: String) throws -> [[String]] {
  try vectorLines(name).map { $0.split(separator: " ").map { $0 == "\"\"" ? "" : String($0) } }
}

func bytes(hex: String) throws -> [UInt8] {
  let digits = try hex.map { try #require($0.hexDigitValue) }
  return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}

func padded(_ code: UInt32, _ digits: Digits) -> String {
  let text = String(code)
  return String(repeating: "0", count: Int(digits.rawValue) - text.count) + text
}
