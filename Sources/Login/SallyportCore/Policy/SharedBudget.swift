/// What the throttle of a person goes by in every service alike: the least budget and the widest
/// windows of all logins in which a code of the person counts.
///
/// A wrong code costs the chance that it had in its own service; but if each service had a capacity
/// and a refill of its own, guesses in one would be forgotten at the rate of another.
package struct SharedBudget: Sendable {
  /// For each kind of factor the least budget of a year in a login that accepts it, in the units of
  /// `GuessProbability`; `nowhere` if no login does. Of backup codes only imported scratch codes
  /// can be guessed.
  private(set) var budgets = InlineArray<3, UInt64>(repeating: SharedBudget.nowhere)
  /// The widest `adjacent_intervals` and `look_ahead`.
  private(set) var windows = InlineArray<2, UInt64>(repeating: 0)

  static var nowhere: UInt64 { UInt64.max }

  init() {}

  /// As if all logins had this policy.
  @inline(never) package init(of policy: Policy) {
    let budget = policy.guessBudget.units
    if policy.totp != .off { budgets[0] = budget }
    if policy.hotp != .off { budgets[1] = budget }
    if policy.backupCode != .off { budgets[2] = budget }
    windows[0] = UInt64(policy.adjacentIntervals)
    windows[1] = UInt64(policy.lookAhead)
  }

  /// Counts logins of another policy as well.
  package mutating func include(_ other: SharedBudget) {
    for kind in 0..<3 { take(budget: other.budgets[kind], of: kind) }
    for kind in 0..<2 { take(window: other.windows[kind], of: kind) }
  }

  /// Of all kinds; `nowhere` if none is accepted.
  fileprivate var least: UInt64 { min(budgets[0], budgets[1], budgets[2]) }

  /// Counts logins of the policy that a request says, which has the least budget of all kinds in
  /// place of its own. Where that is ours too, each kind keeps the one that we know, if we do.
  package mutating func include(stated policy: Policy) {
    var other = SharedBudget(of: policy)
    if policy.guessBudget.units == least {
      for kind in 0..<3 where budgets[kind] != SharedBudget.nowhere { other.forget(kind) }
    }
    include(other)
  }

  func accepts(_ kind: FactorKind) -> Bool {
    budgets[Int(kind.rawValue)] != SharedBudget.nowhere
  }

  fileprivate mutating func take(budget: UInt64, of kind: Int) {
    budgets[kind] = min(budgets[kind], budget)
  }

  fileprivate mutating func take(window: UInt64, of kind: Int) {
    windows[kind] = max(windows[kind], window)
  }

  fileprivate mutating func forget(_ kind: Int) { budgets[kind] = SharedBudget.nowhere }
}

/// A `SharedBudget` as a policy has it.
package final class SharedBudgetBox: Equatable, Sendable {
  package let budget: SharedBudget

  package init(_ budget: SharedBudget) { self.budget = budget }

  package static func == (a: SharedBudgetBox, b: SharedBudgetBox) -> Bool {
    for kind in 0..<3 where a.budget.budgets[kind] != b.budget.budgets[kind] { return false }
    for kind in 0..<2 where a.budget.windows[kind] != b.budget.windows[kind] { return false }
    return true
  }
}

extension Policy {
  package var sharedBudget: SharedBudget { shared?.budget ?? SharedBudget(of: self) }

  /// The budget that a request says: the least of the kinds of factor that are accepted anywhere.
  /// Not that of this policy, which a strict line may have made smaller.
  var statedBudget: UInt64 {
    @inline(never) get {
      let least = sharedBudget.least
      return least == SharedBudget.nowhere ? guessBudget.units : least
    }
  }
}

extension PolicyKey {
  /// Whether the budget of wrong codes is made of it, for which each section counts.
  package var isOfBudget: Bool { SharedSettings.keys & SharedSettings.bit(self) != 0 }
}

/// What a section of a policy file says of what is shared.
struct SharedSettings {
  let budget: UInt64
  let adjacent: UInt64
  let lookAhead: UInt64
  /// The keys of `gates` that are `off` or `disabled`, as bits.
  private(set) var off: UInt32 = 0

  static func bit(_ key: PolicyKey) -> UInt32 { 1 << UInt32(key.rawValue) }
  static var gates: UInt32 { bit(.state) | 7 << UInt32(PolicyKey.factorTOTP.rawValue) }
  /// The keys that matter here.
  static var keys: UInt32 {
    gates | bit(.guessBudget) | bit(.adjacentIntervals) | bit(.lookAhead)
  }

  /// Numbers with their lines, as a policy file has them.
  @inline(never) init(_ values: PolicyFile.Values) {
    budget = values[Int(PolicyKey.guessBudget.rawValue)] >> 20
    adjacent = values[Int(PolicyKey.adjacentIntervals.rawValue)] >> 20
    lookAhead = values[Int(PolicyKey.lookAhead.rawValue)] >> 20
    for index in 0..<PolicyKey.scalars where values[index] >> 20 == 1 { off |= 1 << UInt32(index) }
    off &= SharedSettings.gates
  }
}

/// Gathers what all logins of a person share from the rules that can match the person in some
/// login, in their order, and then from `[default]`.
struct SharedSections {
  private var shared = SharedBudget()
  /// The keys, as bits, that a rule sets which matches the person in every login: later sections do
  /// not count.
  private var settled: UInt32 = 0
  /// The keys of `gates` that some section sets to something else than `off` or `disabled`.
  private var on: UInt32 = 0

  /// `keys`: those that the section sets.
  @inline(never)
  mutating func take(_ section: SharedSettings, setting keys: UInt32, everywhere: Bool) {
    let new = keys & ~settled
    on |= new & SharedSettings.gates & ~section.off
    // What an earlier section may have set to something else in the same login, or a later one.
    let open = on | ~(settled | new & section.off)
    if everywhere { settled |= keys }
    guard open & SharedSettings.bit(.state) != 0 else { return }
    for kind in 0..<3 where open & SharedSections.bit(kind) != 0 {
      if new & SharedSettings.bit(.guessBudget) != 0 {
        shared.take(budget: section.budget, of: kind)
      }
    }
    if new & SharedSettings.bit(.adjacentIntervals) != 0, open & SharedSections.bit(0) != 0 {
      shared.take(window: section.adjacent, of: 0)
    }
    if new & SharedSettings.bit(.lookAhead) != 0, open & SharedSections.bit(1) != 0 {
      shared.take(window: section.lookAhead, of: 1)
    }
  }

  /// With what `[default]` says, or what is built in.
  mutating func finish(_ presets: SharedSettings) -> SharedBudget {
    take(presets, setting: SharedSettings.keys, everywhere: true)
    for kind in 0..<3 where on & SharedSections.bit(kind) == 0 { shared.forget(kind) }
    return shared
  }

  /// Of the key that says whether a kind of factor is accepted.
  private static func bit(_ kind: Int) -> UInt32 {
    1 << (UInt32(PolicyKey.factorTOTP.rawValue) + UInt32(kind))
  }
}
