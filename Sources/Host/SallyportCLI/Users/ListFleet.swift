import SallyportAdministration
import SallyportCore
import SallyportSupport
import SallyportSystem

extension List {
  /// Each page as it comes. If one does not, what was printed says that it is not all.
  func listFleet(_ store: Store, _ context: Context) throws(CommandError) {
    guard let fleet = context.fleet else { throw .noFleet }
    try fleet.mustBeHost()
    var list = FleetList(filter, at: try context.time(), context.output(shared))
    do throws(CommandError) {
      try fleet.eachPage { (page) throws(CommandError) in
        list.take(page)
        try context.stopIfInterrupted(.nothingChanged)
      }
    } catch {
      if list.isBegun { list.end(isWhole: false) }
      throw error
    }
    if filter.neverEnrolled, !filter.exempt, !filter.blocked { try list.take(store, context) }
    list.end(isWhole: true)
    if list.unreadable > 0 { throw .fleetUnread(list.unreadable) }
    if !list.notReached.isEmpty { throw CommandError(.busy, "the list is incomplete") }
  }
}

extension CommandError {
  fileprivate static func fleetUnread(_ count: Int) -> CommandError {
    CommandError(
      .inputOutput, "what the fleet has of \(counted(count, "user")) cannot be read",
      hints: ["journalctl -u sallyport-verifier  # on the verifiers says why"])
  }
}

/// The people of the fleet whom `list` lists. As text nothing is kept of them.
private struct FleetList {
  private let filter: ListFilter
  private let now: UnixTime
  private let output: Output
  /// Whether a page came.
  private(set) var isBegun = false
  private(set) var unreadable = 0
  /// Those of this machine who may be meant.
  private(set) var notReached: [String] = []
  private var (found, enrolled, taken) = (0, 0, 0)
  /// Aligns a page with those before it.
  private var above: [String]?
  private var facts: [Facts] = []
  /// The names of all rows, where that is asked.
  private var known: Set<[UInt8]> = []

  init(_ filter: ListFilter, at now: UnixTime, _ output: Output) {
    (self.filter, self.now, self.output) = (filter, now, output)
  }

  mutating func take(_ page: [FleetMember]) {
    isBegun = true
    for one in page {
      switch one.place {
      case .enrolled: enrolled += 1
      case .taken: taken += 1
      case .unreadable: unreadable += 1
      case .notEnrolled: break
      }
    }
    if filter.neverEnrolled { known.formUnion(page.map(\.name)) }
    tell(page.filter { filter.takes($0, at: now) })
  }

  private mutating func tell(_ members: [FleetMember]) {
    found += members.filter(\.isReadable).count
    if output.isJSON {
      facts += members.map { Facts($0, at: now) }
      return
    }
    let width = output.width - 52
    tell(rows: members.flatMap { $0.text(asNames: filter.listsNames, at: now, width: width) })
  }

  private mutating func tell(rows: [[String]]) {
    guard !rows.isEmpty else { return }
    let head = ["USER", "AUTHENTICATORS", "BACKUP CODES", "LAST CODE"]
    let isFirst = above == nil && !filter.listsNames
    let first = above ?? (filter.listsNames ? [] : head)
    let lines = table([first] + rows)
    for line in lines.dropFirst(isFirst ? 0 : 1) { output.say(line) }
    let all = [first] + rows
    above = (0..<(all.map(\.count).max() ?? 0)).map { column in
      let cells = all.compactMap { column < $0.count - 1 ? $0[column].unicodeScalars.count : nil }
      return String(repeating: " ", count: cells.max() ?? 0)
    }
  }

  /// Accounts of people on this machine that the fleet verifies, and has nothing of.
  mutating func take(_ store: Store, _ context: Context) throws(CommandError) {
    let people = try MeantPeople(of: nil, storedIn: store, on: context.machine)
    notReached = people.unseen
    for name in people.found.sorted() where !known.contains(Array(name.utf8)) {
      let account = try context.account(name)
      guard context.policy(at: nil, for: account, in: store, warns: false).isFleet else { continue }
      found += 1
      if output.isJSON {
        facts.append(Facts(nobodys: account.name.text))
      } else {
        tell(rows: [[account.name.text, "an account here, of which the fleet has nothing"]])
      }
    }
  }

  func end(isWhole: Bool) {
    let counts = [
      filter.listsNames ? counted(found, "person", "s") : filter.count(found, of: enrolled),
      taken > 0 ? "\(taken) by the files of a host" : nil,
      unreadable > 0 ? "\(unreadable) cannot be read" : nil,
      isWhole ? nil : "and perhaps more: the list is incomplete",
    ].compactMap { $0 }
    let missed = notReached.isEmpty ? "" : "\nnot seen: \(notReached.joined(separator: ", "))"
    output.answer(
      Answer(users: facts, unreadable: unreadable, notReached: notReached, complete: isWhole),
      counts.joined(separator: ", ") + missed)
  }

  private struct Answer: Encodable {
    let users: [Facts]
    let unreadable: Int
    /// Accounts of this machine, by name or in words.
    let notReached: [String]
    /// False where a page did not come.
    let complete: Bool
  }

  fileprivate struct Facts: Encodable {
    let user, place: String
    /// The one that has taken the user.
    @OrNull var host: String?
    @OrNull var enrolled: String?
    let authenticators: [String]
    let backupCodesLeft, passes: Int
    @OrNull var locked: LockFacts?
    @OrNull var level: LevelFacts?
    @OrNull var blocked: BlockFacts?
    @OrNull var lastLogin: UseFacts?
  }

  fileprivate struct LockFacts: Encodable {
    @OrNull var until: String?
  }
}

extension FleetList.Facts {
  fileprivate init(_ one: FleetMember, at now: UnixTime) {
    var own: FleetMember.Enrolled?
    (user, host) = (printable(one.name, limit: 255), nil)
    switch one.place {
    case .enrolled(let enrolled): (place, own) = ("enrolled", enrolled)
    case .notEnrolled: place = "not-enrolled"
    case .taken(let by): (place, host) = ("taken", by)
    case .unreadable: place = "unreadable"
    }
    enrolled = own.flatMap { fact($0.since) }
    (authenticators, backupCodesLeft) = (own?.authenticators ?? [], own?.backupCodesLeft ?? 0)
    passes = own?.openPasses ?? 0
    locked = FleetList.LockFacts(own?.lock)
    (level, blocked) = (LevelFacts(one.level), BlockFacts(one.blocked(at: now)))
    lastLogin = UseFacts(
      own?.lastUse.map { Use(time: $0, origin: .unknown, service: nil) })
  }

  /// Of somebody who has no row there.
  fileprivate init(nobodys user: String) {
    (self.user, place, host, enrolled) = (user, "nothing", nil, nil)
    (authenticators, backupCodesLeft, passes) = ([], 0, 0)
    (locked, level, blocked, lastLogin) = (nil, nil, nil, nil)
  }
}

extension FleetList.LockFacts {
  fileprivate init?(_ lock: FleetMember.Lock?) {
    switch lock {
    case nil, .some(.none): return nil
    case .until(let time)?: until = fact(time)
    case .forGood?: until = nil
    }
  }
}

extension FleetMember {
  fileprivate var isReadable: Bool { if case .unreadable = place { false } else { true } }

  /// nil where it has ended.
  fileprivate func blocked(at now: UnixTime) -> Store.Blocked? {
    block.map { Store.Blocked(inFleet: $0) }.flatMap { $0.isOver(at: now) ? nil : $0 }
  }

  /// `asNames`: with what root has set for each, in place of what is enrolled.
  fileprivate func text(asNames: Bool, at now: UnixTime, width: Int) -> [[String]] {
    let user = printable(name, limit: 255)
    switch place {
    case .unreadable: return [[user, "cannot be read"]]
    case .enrolled(let own) where !asNames:
      let names = wrapped(own.authenticators, width: width)
      let when = own.lastUse.map { whenText($0, seenFrom: now) } ?? "never"
      let marks = stateText(
        isBlocked: blocked(at: now) != nil, isExempt: level.isExempt(at: now))
      let first = [user, names.first ?? "", "\(own.backupCodesLeft)", when] + marks
      return [first] + names.dropFirst().map { ["", $0] }
    case .taken(let host) where !asNames: return [[user, "by the files of \(host)"]]
    case .enrolled, .taken, .notEnrolled:
      let facts = [
        blocked(at: now).map { "blocked \(blockText($0, seenFrom: now))" }, level.map(levelText),
      ].compactMap { $0 }
      return [[user] + (facts.isEmpty ? [] : [facts.joined(separator: "; ")])]
    }
  }
}

extension ListFilter {
  /// Whether somebody of a fleet meets it; whose rows cannot be read may.
  fileprivate func takes(_ one: FleetMember, at now: UnixTime) -> Bool {
    guard one.isReadable else { return true }
    if exempt, !one.level.isExempt(at: now) { return false }
    if blocked, one.blocked(at: now) == nil { return false }
    return switch one.place {
    case .unreadable: true
    case .notEnrolled: listsNames
    case .taken: !neverEnrolled && !isOfEnrolled
    case .enrolled(let own): !neverEnrolled && takes(own, at: now)
    }
  }

  private func takes(_ own: FleetMember.Enrolled, at now: UnixTime) -> Bool {
    if passes, own.openPasses == 0 { return false }
    if locked, own.lock == .none { return false }
    guard let idle else { return true }
    return now.elapsed(since: max(own.lastUse ?? own.since, own.since)) >= idle.seconds
  }
}
