import Foundation
import Glibc
import SallyportCore
import SallyportSystem
import Testing

@testable import SallyportDoctor

/// Sudoers files by chance, held against the real sudo. SALLYPORT_SUDOERS_SEED and
/// SALLYPORT_SUDOERS_COUNT set which and how many; without them it is the same ones each time.
@Suite(
  .enabled(if: geteuid() == 0, "only root can make a private machine"),
  .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/sudo"), "sudo is not here"))
struct `Sudoers by chance` {
  private static func number(_ name: String) -> Int? {
    ProcessInfo.processInfo.environment["SALLYPORT_SUDOERS_\(name)"].flatMap { Int($0) }
  }
  private static let count = number("COUNT") ?? 25
  private static let seed = number("SEED") ?? 142_380_792

  @Test func `what doctor says of a rule is what sudo does`() throws {
    let (first, count) = (`Sudoers by chance`.seed, `Sudoers by chance`.count)
    let trial = try SudoersTrial()
    let now = UnixTime(Int64(Date().timeIntervalSince1970))
    var (rules, words) = (0, [String: Int]())
    for seed in first..<first + count {
      let text = SudoersDraw(seed: UInt64(seed)).text
      rules += text.split(separator: "\n").count { $0.contains(" =") && !$0.contains("_Alias") }
      let (told, done) = (try trial.told(text, at: now), try trial.done(text))
      for (name, truth) in done.sorted(by: { $0.key < $1.key }) {
        let isAsked = truth.contains("auth,")
        if !name.hasSuffix(" all") {
          words[truth == "refused" ? truth : isAsked ? "asked" : "in", default: 0] += 1
        }
        if told[name] != truth {
          Issue.record(
            "SEED=\(seed) COUNT=1: \(name): \(told[name] ?? "-"), but: \(truth)\n\(text)")
        }
      }
    }
    print("SEED=\(first): \(count) files, \(rules) rules, \(words)")
    guard count >= 25 else { return }
    #expect(rules >= 40 && words.values.allSatisfy { $0 > count } && words.count == 3)
  }
}
