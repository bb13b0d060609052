import PAMStack
import SallyportCore

/// What rules of the policy and conditions of the stacks ask about an account. Those of which the
/// same is true are all treated alike.
struct PolicyTerms {
  /// What is true of one account.
  struct Truths: Hashable {
    let isSuperuser: Bool
    /// The number of its name; nil if nothing names it.
    let user: Int?
    let groups: [Tristate]
    /// Whether its uid is less than each number, the same or greater; nil without an account.
    let numbers: [Int?]
  }

  private var users: [[UInt8]: Int] = [:]
  private var groups: [String] = []
  private var numbers: [UInt32] = []
  /// Addresses in rules, without `local` and `network`.
  private(set) var origins: [String] = []
  /// Whether a policy file says that the fleet verifies codes, or may be taken to say so.
  private(set) var mayMeetFleet = false

  init() {}

  /// With the usual policy file, and those that the stacks name.
  init(of stacks: [ServiceStack], _ policies: PolicySources) {
    take(policies.source(at: PolicySources.usual, isOptional: true), policies)
    for stack in stacks { take(stack, policies) }
  }

  mutating func take(_ text: PolicyText) {
    for word in text.conditions(.matchUser) { take(user: word) }
    for word in text.conditions(.matchGroup) { take(group: String(decoding: word, as: UTF8.self)) }
    origins += text.conditions(.matchOrigin).map { String(decoding: $0, as: UTF8.self) }
      .filter { $0.contains(".") || $0.contains(":") }
    if text.fleetLines()?.isEmpty != true { mayMeetFleet = true }
  }

  private mutating func take(_ source: PolicySources.Source, _ policies: PolicySources) {
    if policies.isInFleet, source.trouble != nil { mayMeetFleet = true }
    for text in [source.text, source.lastGood].compactMap({ $0 }) { take(PolicyText("", text)) }
  }

  /// The conditions of pam_succeed_if, and the policy files that our lines name.
  mutating func take(_ stack: ServiceStack, _ policies: PolicySources) {
    let entries = [PAMPhase.auth, .account, .session].flatMap { stack[$0] }
    for entry in entries where entry.moduleName == "pam_sallyport" {
      for word in entry.arguments where word.hasPrefix("conf=") {
        take(policies.source(at: String(word.dropFirst(5)), isOptional: false), policies)
      }
    }
    for entry in entries where entry.moduleName == "pam_succeed_if" {
      for (before, word) in zip(entry.arguments, entry.arguments.dropFirst()) {
        if ["ingroup", "notingroup"].contains(before.lowercased()) {
          for group in word.split(separator: ":") { take(group: String(group)) }
        }
        if ["=", "!=", "in", "notin"].contains(before.lowercased()) {
          for name in word.split(separator: ":") { take(user: Array(name.utf8)) }
        }
        if let number = UInt32(word) { take(numbers: [number]) }
      }
    }
    for word in entries.flatMap(\.arguments) where word.hasPrefix("minimum_uid=") {
      if let number = UInt32(word.dropFirst(12)) { take(numbers: [number]) }
    }
  }

  /// Uids at which something changes.
  mutating func take(numbers more: [UInt32]) {
    numbers += more.filter { !numbers.contains($0) }
  }

  private mutating func take(user: [UInt8]) {
    if users[user] == nil { users[user] = users.count }
  }

  private mutating func take(group: String) {
    if !groups.contains(group) { groups.append(group) }
  }

  func truths(of account: Account, isMember: (_ group: String) -> Tristate) -> Truths {
    truths(of: account.name.bytes, account.uid, isMember: isMember)
  }

  func truths(
    of name: [UInt8], _ uid: UInt32?, isMember: (_ group: String) -> Tristate
  ) -> Truths {
    Truths(
      isSuperuser: uid == 0, user: users[name], groups: groups.map(isMember),
      numbers: numbers.map { number in uid.map { $0 < number ? -1 : $0 == number ? 0 : 1 } })
  }
}
