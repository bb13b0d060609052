/// SplitMix64: the same numbers in every run.
package struct Seeded: RandomNumberGenerator {
  private var state: UInt64

  package init(_ seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }

  package mutating func number(_ range: ClosedRange<Int>) -> Int {
    Int.random(in: range, using: &self)
  }

  package mutating func byte() -> UInt8 { UInt8.random(in: 0...255, using: &self) }

  package mutating func flip() -> Bool { Bool.random(using: &self) }

  package mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in byte() } }

  package mutating func bytes(_ counts: ClosedRange<Int>) -> [UInt8] { bytes(number(counts)) }

  /// Of a list that is not empty.
  package mutating func pick<T>(_ values: [T]) -> T { values[number(0...values.count - 1)] }

  /// Less than `bound`, in one step of the generator.
  package mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

  /// The same of a list that is not empty.
  package mutating func one<T>(of choices: [T]) -> T { choices[below(choices.count)] }

  /// Never 0.
  package mutating func id() -> UInt64 { UInt64.random(in: 1...UInt64.max, using: &self) }

  /// Small, huge and edge values alike.
  package mutating func number64() -> UInt64 {
    pick([0, 1, UInt64(number(0...1_000_000)), next(), UInt64.max - 1, UInt64.max])
  }
}
