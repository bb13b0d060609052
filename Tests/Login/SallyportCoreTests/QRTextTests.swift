import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@Suite struct `A QR code as text` {
  /// Some readers take a code that is mirrored, others do not.
  @Test func `has rows from above and columns from the left`() throws {
    let cells = try #require(Secret([1, 1, 1, 0, 0, 0, 1, 0, 0]))
    let code = try #require(QRMatrix(size: 3, cells: cells))
    let drawn = try #require(code.halfBlocks(quietZone: 0))
    // Light is inked: of each pair of rows the first is dark, and of the last row its left end.
    #expect(String(decoding: bytes(drawn), as: UTF8.self) == "▄▄▄\n▄██\n")
  }
}
