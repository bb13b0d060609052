import Foundation
import Glibc
import TestSupport
import Testing

@testable import SallyportDoctor

/// A doas.conf by chance.
private struct DoasDraw {
  private var random: Seeded
  private(set) var text = ""

  init(seed: UInt64) {
    random = Seeded(seed &* 2 &+ 1)
    text = (0...random.below(5)).map { _ in line() }.joined()
  }

  private mutating func one(_ choices: String...) -> String { random.one(of: choices) }

  private mutating func line() -> String {
    let action = one(
      "permit", "permit nopass", "permit persist", "permit keepenv", "deny", "permit nopass nolog",
      "permit setenv { A=B -C } nopass", "permit \\\n nopass")
    let identity = one(
      "alice", "bob", ":ops", ":2000", "1001", "root", ":bob", "\"alice\"", "nobodyhere", "carol")
    let target = one("", "", "", " as root", " as web", " as 0", " as nobodyhere")
    let command = one(
      "", "", "", " cmd /run/opt/a", " cmd /run/opt/a args", " cmd /run/opt/a args x # why")
    // Now and then what it cannot parse.
    let rest = random.below(40) == 0 ? " as" : ""
    return "\(action) \(identity)\(target)\(command)\(rest)\n"
  }
}

@Suite(
  .enabled(if: geteuid() == 0, "only root can make a private machine"),
  .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/doas"), "doas is not here"))
struct `Rules of doas by chance` {
  @Test func `what doctor says of a rule is what doas -C says`() throws {
    let first = 300_575_847
    print("SEED=\(first)")
    let trial = try SudoersTrial()
    for seed in first..<first + 40 {
      let text = DoasDraw(seed: UInt64(seed)).text
      let (told, done) = (try trial.toldOfDoas(text), try trial.doneByDoas(text))
      #expect(told == done, "SEED=\(seed)\n\(text)")
    }
  }
}
