import OneTimePassword
import Testing

@Suite struct `A secret's bytes` {
  @Test(
    arguments: [
      (0..<4, [1, 2, 3, 4]), (1..<3, [2, 3]), (3..<6, [4]), (4..<6, []), (200..<202, []),
      (-2..<1, [1]), (-3..<(-1), []), (2..<2, []), (-1..<6, [1, 2, 3, 4]),
    ] as [(Range<Int>, [UInt8])])
  func `are read in any range, without what is not inside`(_ range: Range<Int>, _ expected: [UInt8])
    throws
  {
    let secret = try #require(Secret([1, 2, 3, 4] as [UInt8]))
    #expect(secret.bytes(in: range) == expected)
  }

  @Test(
    arguments: [
      (0..<4, 0), (1..<4, 2), (1..<2, nil), (3..<4, nil), (2..<9, 2), (-5..<1, 0), (4..<9, nil),
      (-3..<0, nil), (2..<2, nil),
    ] as [(Range<Int>, Int?)])
  func `are found where they stand first in a range`(_ range: Range<Int>, _ expected: Int?) throws {
    let secret = try #require(Secret([7, 1, 7, 3] as [UInt8]))
    #expect(secret.first(7, in: range) == expected)
  }

  // decisive
  @Test func `of an empty secret are none`() throws {
    let secret = try #require(Secret(count: 0))
    #expect(secret.bytes(in: 0..<3) == [])
    #expect(secret.first(0, in: 0..<3) == nil)
    #expect(!secret.holds("x", in: 0..<1))
  }

  @Test(
    arguments: [
      (0..<4, "code", true), (0..<3, "code", false), (4..<8, "code", false), (4..<8, " = 1", true),
      (-2..<2, "code", false), (6..<10, "code", false), (3..<3, "", true),
    ] as [(Range<Int>, StaticString, Bool)])
  func `are held in the range that they fill`(
    _ range: Range<Int>, _ text: StaticString, _ expected: Bool
  ) throws {
    let secret = try #require(Secret(Array("code = 1".utf8)))
    #expect(secret.holds(text, in: range) == expected)
  }
}
