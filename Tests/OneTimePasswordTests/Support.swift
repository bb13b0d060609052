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

/// SplitMix64: the same numbers in every run.
struct Seeded: RandomNumberGenerator {
  private var state: UInt64

  init(_ seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }

  mutating func bytes(_ counts: ClosedRange<Int>) -> [UInt8] {
    let count = Int.random(in: counts, using: &self)
    return (0..<count).map { _ in UInt8.random(in: 0...255, using: &self) }
  }

  mutating func pick<T>(_ values: [T]) -> T {
    values[Int.random(in: 0..<values.count, using: &self)]
  }
}
