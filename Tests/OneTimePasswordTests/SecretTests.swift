import OneTimePassword
import Testing

@Suite("A secret's bytes") struct SecretBytes {
  @Test(
    "are read in any range, with zeros for what is not inside",
    arguments: [
      (0..<4, [1, 2, 3, 4]), (1..<3, [2, 3]), (3..<6, [4, 0, 0]), (4..<6, [0, 0]),
      (200..<202, [0, 0]), (-2..<1, [0, 0, 1]), (-3..<(-1), [0, 0]), (2..<2, []),
      (-1..<6, [0, 1, 2, 3, 4, 0, 0]),
    ] as [(Range<Int>, [UInt8])])
  func ranges(_ range: Range<Int>, _ expected: [UInt8]) throws {
    let secret = try #require(Secret([1, 2, 3, 4] as [UInt8]))
    #expect(secret.bytes(in: range) == expected)
  }

  @Test(
    "are found where they stand first in a range",
    arguments: [
      (0..<4, 0), (1..<4, 2), (1..<2, nil), (3..<4, nil), (2..<9, 2), (-5..<1, 0), (4..<9, nil),
      (-3..<0, nil), (2..<2, nil),
    ] as [(Range<Int>, Int?)])
  func first(_ range: Range<Int>, _ expected: Int?) throws {
    let secret = try #require(Secret([7, 1, 7, 3] as [UInt8]))
    #expect(secret.first(7, in: range) == expected)
  }

  @Test("of an empty secret are zeros") func empty() throws {
    let secret = try #require(Secret(count: 0))
    #expect(secret.bytes(in: 0..<3) == [0, 0, 0])
  }
}
