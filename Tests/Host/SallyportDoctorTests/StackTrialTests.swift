import Foundation
import Testing

/// What is wrong on purpose, in the planner's place or in what doctor says, to see that the run
/// tells.
enum PlantedFault: CaseIterable {
  /// `pam enable` writes its line here, whatever the walk says.
  case inFront, behindTheFirst, atTheEnd, sufficientAtTheEnd
  /// It writes another line beside ours, or loses one.
  case refusesEverybody, losesTheLast
  /// It asks for a code in each stack, but as a choice.
  case optionalInFront
  /// doctor is silent.
  case silentOnCodeAlone, silentOnSkipped, silentOnUncounted, silentOnUnknown

  /// What `pam enable` writes; nil where it does as it does.
  func written(_ old: String) -> String? {
    let ours = "auth required pam_sallyport.so"
    var lines = old.split(separator: "\n").map { String($0) }
    let last = lines.lastIndex { $0.hasPrefix("auth ") } ?? 0
    switch self {
    case .inFront: lines.insert(ours, at: 0)
    case .optionalInFront: lines.insert("auth optional pam_sallyport.so", at: 0)
    case .behindTheFirst: lines.insert(ours, at: 1)
    case .atTheEnd: lines.insert(ours, at: last + 1)
    case .sufficientAtTheEnd: lines.insert("auth sufficient pam_sallyport.so", at: last + 1)
    case .refusesEverybody: lines.insert(contentsOf: [ours, "auth required pam_deny.so"], at: 0)
    case .losesTheLast: lines[last] = ours
    case .silentOnCodeAlone, .silentOnSkipped, .silentOnUncounted, .silentOnUnknown: return nil
    }
    return lines.joined(separator: "\n") + "\n"
  }

  /// What doctor does not say.
  var untold: Set<String> {
    switch self {
    case .inFront, .behindTheFirst, .atTheEnd, .sufficientAtTheEnd, .refusesEverybody,
      .losesTheLast, .optionalInFront:
      []
    case .silentOnCodeAlone: ["stack-only-factor"]
    case .silentOnSkipped: ["stack-skipped"]
    case .silentOnUncounted: ["stack-uncounted"]
    case .silentOnUnknown: ["stack-unknown-factor"]
    }
  }

  /// What is to be found.
  var rule: StackTrial.Rule {
    switch self {
    case .inFront, .atTheEnd, .sufficientAtTheEnd, .losesTheLast, .optionalInFront: .admitsMore
    case .refusesEverybody, .behindTheFirst: .admitsLess
    case .silentOnSkipped, .silentOnUncounted: .withoutCode
    case .silentOnCodeAlone, .silentOnUnknown: .withoutPassword
    }
  }
}

/// Fifty stacks, others each time; `Tests/Torture/stacks` plays more. COUNT and SEED set how
/// many and which.
@Suite(.serialized) struct `Stacks by chance` {
  private static func number(_ name: String) -> Int? {
    ProcessInfo.processInfo.environment["SALLYPORT_STACKS_\(name)"].flatMap { Int($0) }
  }
  private static let count = number("COUNT") ?? 50
  private static let seed = number("SEED") ?? Int.random(in: 0..<1_000_000_000)

  // shows: enable-admits, common-faults
  @Test func `no stack admits more or less than it did, or what doctor does not tell of`() throws {
    let run = try StackTrial()
    for index in 0..<`Stacks by chance`.count {
      try run.play(UInt64(`Stacks by chance`.seed + index))
    }
    print("SEED=\(`Stacks by chance`.seed): \(run.numbers)")
    for found in run.numbers.violations.prefix(6) {
      Issue.record("SEED=\(`Stacks by chance`.seed + found.stack - 1) COUNT=1: \(found)")
    }
    // A run that repeats one stack sees only that one.
    guard `Stacks by chance`.count >= 50 else { return }
    let share = `Stacks by chance`.count / 50
    #expect(run.numbers.written > share && run.numbers.refused > share)
    #expect(run.numbers.admitted > share && run.numbers.sound > share)
    #expect(run.numbers.withoutPassword > share && run.numbers.withoutCode > share)
  }

  // shows: enable-admits
  @Test(arguments: PlantedFault.allCases)
  func `a fault that is planted is found in a hundred stacks`(planted: PlantedFault) throws {
    let run = try StackTrial(planted)
    for seed: UInt64 in 1...100 {
      try run.play(seed)
      if let found = run.numbers.violations.first(where: { $0.rule == planted.rule }) {
        print("\(planted): \(found.rule) in stack \(found.stack)")
        return
      }
    }
    Issue.record("nothing found in \(run.numbers)")
  }
}
