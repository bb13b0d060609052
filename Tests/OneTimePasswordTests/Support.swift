import Foundation
import OneTimePassword
import Testing

/// The columns of a file in Tests/Vectors; `""` is an empty column, `#` begins a comment line.
func vectors(_ name: String) throws -> [[String]] {
  let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Vectors/" + name)
  let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
  return lines.filter { !$0.hasPrefix("#") }
    .map { $0.split(separator: " ").map { $0 == "\"\"" ? "" : String($0) } }
}

func bytes(hex: String) throws -> [UInt8] {
  let digits = try hex.map { try #require($0.hexDigitValue) }
  return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}

func secret(_ bytes: [UInt8]) throws -> Secret {
  try #require(Secret(bytes))
}

func secret(_ text: String) throws -> Secret {
  try secret(Array(text.utf8))
}

func bytes(_ secret: Secret) -> [UInt8] {
  (0..<secret.count).map { secret[$0] }
}

func text(_ secret: Secret) -> String {
  String(decoding: bytes(secret), as: UTF8.self)
}

/// The secret of the RFCs' examples.
func example(_ count: Int) throws -> Secret {
  try secret((0..<count).map { UInt8(ascii: "0") + UInt8(($0 + 1) % 10) })
}

func padded(_ code: UInt32, _ digits: Digits) -> String {
  let text = String(code)
  return String(repeating: "0", count: Int(digits.rawValue) - text.count) + text
}
