import OneTimePassword
package import SallyportCore
package import SallyportSystem

// `helpdesk/by-UID` and `helpdesk/for-UID`: what each helper did lately, and what was done for each
// person. Counted before it is done, under the lock of all commands. What was done for a person of
// a fleet, its verifiers count, by the same rule.

/// Why a helper does no more.
package enum HelpLimit: Equatable, Sendable {
  /// For this person, in seven days.
  case person
  /// For this helper, in a day. `isFirst`: nobody was told of it yet.
  case helper(isFirst: Bool)
}

/// What helpers did lately. In a file, text of one line each, the verb and the time:
///
///     pass 1772530000
package struct HelpCounts: Equatable, Sendable {
  /// The verbs, and that the log was told of a helper who does too much.
  package enum Word: String, CaseIterable, Sendable { case pass, unlock, block, alert }

  package private(set) var acts: [(word: Word, time: UnixTime)] = []

  package static func == (a: HelpCounts, b: HelpCounts) -> Bool { a.text == b.text }

  static let week: UInt64 = 7 * 86_400
  static let day: UInt64 = 86_400
  static let mostInADay = 10

  package init(_ acts: [(word: Word, time: UnixTime)] = []) { self.acts = acts }

  /// Throws the number of the line that is none.
  init(_ text: Secret) throws(SettingsError) {
    let lines = String(decoding: text.bytes(in: 0..<text.count), as: UTF8.self)
      .split(separator: "\n", omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() where index < lines.count - 1 || !line.isEmpty {
      let parts = line.split(separator: " ", omittingEmptySubsequences: false)
      guard parts.count == 2, let word = Word(rawValue: String(parts[0])),
        let seconds = Int64(parts[1]), seconds > 0, "\(seconds)" == parts[1],
        index < lines.count - 1
      else { throw SettingsError(line: index + 1, .notASetting) }
      acts.append((word, UnixTime(seconds)))
    }
  }

  var text: String { acts.map { "\($0.word.rawValue) \($0.time.seconds)\n" }.joined() }

  /// How many there were in that many seconds. One in the future counts: a clock that is set back
  /// renews nothing.
  func count(of words: [Word], within seconds: UInt64, at now: UnixTime) -> Int {
    acts.filter { words.contains($0.word) && now.elapsed(since: $0.time) < seconds }.count
  }

  /// Whether helpers may not do this for one person now, by what was done for him.
  package func isEnough(_ verb: HelpVerb, at now: UnixTime) -> Bool {
    guard let (word, most) = verb.counted else { return false }
    return count(of: [word], within: HelpCounts.week, at: now) >= most
  }

  /// Without those that count for nothing any more.
  package func recent(at now: UnixTime) -> HelpCounts {
    HelpCounts(acts.filter { now.elapsed(since: $0.time) < HelpCounts.week })
  }

  /// With one more, and without those.
  package func adding(_ word: Word, at now: UnixTime) -> HelpCounts {
    HelpCounts(recent(at: now).acts + [(word, now)])
  }
}

extension HelpVerb {
  /// nil for what changes nothing, which is not counted. `aWeek`: how often for one person.
  fileprivate var counted: (word: HelpCounts.Word, aWeek: Int)? {
    switch self {
    case .status: nil
    case .unlock: (.unlock, 1)
    case .pass, .passEnroll: (.pass, 2)
    case .block: (.block, Int.max)
    }
  }
}

extension Store {
  static var helpdesk: Path { "helpdesk" }

  /// Why this helper may not do it for that person now; nil: he may. Nothing is counted.
  /// `person`: nil for one of a fleet, for whom its verifiers count.
  package func helpLimit(
    _ verb: HelpVerb, by helper: UInt32, for person: UInt32?, at now: UnixTime
  )
    throws(StoreTrouble) -> HelpLimit?
  {
    guard let folder = try folder(Store.helpdesk) else { return nil }
    return try limit(verb, HelpFiles(by: helper, for: person), in: folder, at: now)
  }

  /// The same, and where he may it is counted, on the disk before this returns.
  package func countHelp(
    _ verb: HelpVerb, by helper: UInt32, for person: UInt32?, at now: UnixTime
  )
    throws(StoreTrouble) -> HelpLimit?
  {
    guard let (word, _) = verb.counted else { return nil }
    // A host of a fleet may have no store of its own yet.
    if person == nil { try prepare() }
    let files = HelpFiles(by: helper, for: person)
    return try changing { users throws(StoreTrouble) in
      try makeDirectory(root / Store.helpdesk)
      guard let folder = try folder(Store.helpdesk) else {
        throw .noStore(path: (root / Store.helpdesk).text)
      }
      let limit = try limit(verb, files, in: folder, at: now)
      switch limit {
      case .person, .helper(isFirst: false): return limit
      case .helper(isFirst: true): try add(.alert, to: files.helper, in: folder, users, at: now)
      case nil:
        // If one of them is lost, the act is not done.
        if let person = files.person { try add(word, to: person, in: folder, users, at: now) }
        try add(word, to: files.helper, in: folder, users, at: now)
      }
      return limit
    }
  }

  private func limit(
    _ verb: HelpVerb, _ files: HelpFiles, in folder: borrowing StoreFolder, at now: UnixTime
  ) throws(StoreTrouble) -> HelpLimit? {
    guard verb.counted != nil else { return nil }
    let (own, day) = (try counts(files.helper, in: folder), HelpCounts.day)
    if own.count(of: [.pass, .unlock, .block], within: day, at: now) >= HelpCounts.mostInADay {
      return .helper(isFirst: own.count(of: [.alert], within: day, at: now) == 0)
    }
    guard let person = files.person else { return nil }
    return try counts(person, in: folder).isEnough(verb, at: now) ? .person : nil
  }

  private func counts(_ name: Path, in folder: borrowing StoreFolder) throws(StoreTrouble)
    -> HelpCounts
  {
    guard let text = try folder.text(of: name) else { return HelpCounts() }
    do throws(SettingsError) {
      return try HelpCounts(text)
    } catch {
      throw .malformed(path: (folder.path / name).text, error)
    }
  }

  private func add(
    _ word: HelpCounts.Word, to name: Path, in folder: borrowing StoreFolder,
    _ users: borrowing StoreFolder, at now: UnixTime
  ) throws(StoreTrouble) {
    let text = try counts(name, in: folder).adding(word, at: now).text
    guard let secret = Secret(text.utf8) else { throw .outOfMemory }
    try users.put(secret, as: name, in: folder)
  }
}

/// By the numbers of the accounts: another name for one of them begins nothing again.
private struct HelpFiles {
  let helper: Path
  let person: Path?

  init(by helper: UInt32, for person: UInt32?) {
    self.helper = Path(Array("by-\(helper)".utf8))
    self.person = person.map { Path(Array("for-\($0)".utf8)) }
  }
}

// MARK: tries that are lent

/// What comes of lending tries to somebody.
package enum Lending: Equatable, Sendable {
  /// That many, from known places or to them.
  case lent(UInt64, toKnown: Bool)
  /// He may type a code everywhere.
  case notLocked
  /// There is nothing to lend.
  case spent
}

extension Throttle {
  /// How many tries are lent.
  package static let mostLent: UInt64 = 5

  /// `state` with tries lent from the budget of one kind of origins to that of the other, which has
  /// none left.
  package func lending(in state: inout LoginState, at now: UnixTime) -> Lending {
    state.distrustFuture(now)
    let left = [state.known, state.other].map { responsesLeft(in: $0, at: now) }
    if !left.contains(0) { return .notLocked }
    let isKnown = left[0] == 0
    var (giver, taker) = (state[known: !isKnown], state[known: isKnown])
    let lent = lend(Throttle.mostLent, from: &giver, to: &taker, at: now)
    if lent == 0 { return .spent }
    (state[known: !isKnown], state[known: isKnown]) = (giver, taker)
    return .lent(lent, toKnown: isKnown)
  }
}

extension ManagedStore {
  /// Lends the person tries. nil: the account is not enrolled by this id.
  package func lend(
    _ account: Account, id: UInt64, under policy: Policy,
    at now: () throws(StoreTrouble) -> UnixTime
  ) throws(StoreTrouble) -> Lending? {
    try settled(account, id) { (record) throws(StoreTrouble) in
      try exchange(record) { (enrollment, state) throws(StoreTrouble) in
        let time = try now()
        var next = state
        let throttle = Throttle(for: enrollment, state, under: policy)
        let lending = throttle.lending(in: &next, at: time)
        if case .lent = lending { return (lending, next) }
        return (lending, state)
      }
    }
  }
}
