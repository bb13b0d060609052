import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@Suite struct `The file of a block` {
  private static let lines = ["version = 1", "user = alice", "uid = 7", "until = 50", "since = 9"]

  private func isOver(_ lines: [String], at now: Int64 = 1_000_000) throws -> Bool {
    let text = lines.map { $0 + "\n" }.joined()
    return Block.isOver(try secret(text), at: UnixTime(now))
  }

  @Test func `ends by the clock, and holds again where that was set back`() throws {
    #expect(try !isOver(Self.lines, at: 49))
    #expect(try isOver(Self.lines, at: 50))
    #expect(try isOver(["# helper = carol", "# Sallyport"] + Self.lines + [""], at: 50))
    #expect(try !isOver(Self.lines, at: -1))
    #expect(try !isOver(Self.lines, at: .min))
  }

  /// Whatever is not what the command writes may have meant somebody who must not get in.
  // decisive
  @Test func `blocks without an end where it is anything else`() throws {
    var others: [[String]] = [[], ["until = 50"], ["\0"], ["[x]"] + Self.lines]
    for index in Self.lines.indices {
      var without = Self.lines
      without.remove(at: index)
      others.append(without)
      others.append(Self.lines + [Self.lines[index]])
      var swapped = Self.lines
      swapped.swapAt(index, (index + 1) % Self.lines.count)
      others.append(swapped)
    }
    for until in ["none", "", "-1", "5 0", "0x10", "18446744073709551616", "50\0"] {
      others.append(Self.lines.map { $0 == "until = 50" ? "until = \(until)" : $0 })
    }
    others.append(Self.lines + ["by = root"])
    others.append(["version = 2"] + Self.lines.dropFirst())
    for lines in others { #expect(try !isOver(lines), "\(lines)") }
    #expect(
      !Block.isOver(try #require(Secret([UInt8](repeating: 35, count: 65537))), at: UnixTime(9)))
  }
}
