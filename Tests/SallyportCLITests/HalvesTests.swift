import Testing

@testable import SallyportCLI

@Suite struct `Two halves` {
  @Test(arguments: [0, 1, 2, 3, 1001]) func `are all of it, in order`(count: Int) {
    let halves = inHalves(Array(0..<count)) { Array($0) }
    #expect(halves.map(\.count) == [count / 2, count - count / 2])
    #expect(Array(halves.joined()) == Array(0..<count))
  }
}
