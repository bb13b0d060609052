import ArgumentParser
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

/// Whom `list` lists: those who meet every condition.
struct ListFilter: ParsableArguments {
  @Flag(help: "Those whose wrong codes are used up: from known places, or from elsewhere.")
  var locked = false

  @Option(
    help: ArgumentHelp(
      "Those with no accepted code for that long, as 90d.", valueName: "days"),
    transform: Days.init(typed:))
  var idle: Days?

  @Flag(help: "Those with an open pass.")
  var passes = false

  @Flag(help: "Those whom root has exempted, enrolled or not.")
  var exempt = false

  @Flag(help: "Those who are blocked, enrolled or not.")
  var blocked = false

  @Flag(help: "Instead of the enrolled, the people who have an account and are not enrolled.")
  var neverEnrolled = false

  func validate() throws {
    if neverEnrolled, isOfEnrolled {
      throw ValidationError("--never-enrolled takes no --locked, --idle and --passes")
    }
  }

  /// Whether only somebody who is enrolled can meet it.
  var isOfEnrolled: Bool { locked || idle != nil || passes }
  private var isAny: Bool { isOfEnrolled || exempt || blocked }

  /// How many were found, of all who are enrolled.
  func count(_ found: Int, of all: Int) -> String {
    isAny ? "\(found) of \(all) enrolled" : "\(all) enrolled"
  }

  /// Whether it lists people who are not enrolled.
  var listsNames: Bool { neverEnrolled || (exempt || blocked) && !isOfEnrolled }

  /// Whether somebody who is enrolled meets it, but for being exempt or blocked. `policy`: of the
  /// user.
  func takes(
    _ enrollment: Enrollment, _ state: LoginState, at now: UnixTime, under policy: () -> Policy
  ) -> Bool {
    var state = state
    state.reconcile(with: enrollment)
    if passes, enrollment.openPasses(state, at: now).isEmpty { return false }
    if let idle {
      let last = max(state.lastUse?.time ?? enrollment.created, enrollment.created)
      if now.elapsed(since: last) < idle.seconds { return false }
    }
    guard locked else { return true }
    let left = Allowances(enrollment, state, under: policy(), at: now)
    return left.known.left == 0 || left.other.left == 0
  }
}

/// A number of days, typed as 90d.
struct Days {
  let seconds: UInt64

  /// Throws unless it is such a number, from 1 to 3660.
  init(typed text: String) throws {
    guard text.last == "d", let days = UInt64(text.dropLast()), (1...3660).contains(days) else {
      throw ValidationError("expected a number of days, such as 90d")
    }
    seconds = days * 86_400
  }
}

extension List {
  struct Names: Encodable {
    struct Person: Encodable {
      let user: String
      @OrNull var level: LevelFacts?
      @OrNull var blocked: BlockFacts?
    }
    let users: [Person]
    /// Those who may be meant: by name, or in words.
    let notReached: [String]
  }

  /// Lists names with what root has set for each.
  func listNames(_ store: Store, _ context: Context) throws(CommandError) {
    let now = try context.time()
    let (levels, unread) = context.machine.ownLevels(by: store, in: shared.path, at: now)
    let blocks = try BlockedPeople(by: store, at: now)
    var (names, unseen): ([String], [String]) = (levels.keys.sorted(), [])
    if filter.blocked { names = blocks.all.keys.sorted() }
    if filter.neverEnrolled {
      let people = try MeantPeople(of: nil, storedIn: store, on: context.machine)
      let enrolled = try storing { () throws(StoreTrouble) in
        Set(try store.enrolledNames().compactMap { $0.user?.text })
      }
      names = people.found.filter { !enrolled.contains($0) }.sorted()
      unseen = people.unseen
    }
    unseen += unread.map { printable($0.utf8, limit: 255) }
    if filter.exempt { names = names.filter { levels[$0].isExempt } }
    if filter.blocked { names = names.filter { blocks.all[$0] != nil } }
    let people = names.map {
      Names.Person(
        user: $0, level: LevelFacts(levels[$0]), blocked: BlockFacts(blocks.all[$0]))
    }
    let rows = names.map { name in
      let facts = [
        blocks.all[name].map { "blocked \(blockText($0, seenFrom: now))" },
        levels[name].map(levelText),
      ]
      return [printable(name.utf8, limit: 255)]
        + (facts.contains { $0 != nil } ? [facts.compactMap { $0 }.joined(separator: "; ")] : [])
    }
    let missed = unseen.isEmpty ? [] : ["not seen: \(unseen.joined(separator: ", "))"]
    context.output(shared).answer(
      Names(users: people, notReached: unseen),
      (table(rows) + [counted(names.count, "person", "s")] + missed).joined(separator: "\n"))
    if !unseen.isEmpty { throw CommandError(.busy, "the list is incomplete") }
  }
}

/// Who is blocked on this machine.
struct BlockedPeople {
  /// By login name: that of the block, and that which the account of its uid has now.
  private(set) var all: [String: Store.Blocked] = [:]

  /// Those whose block has not ended.
  init(by store: Store, at now: UnixTime) throws(CommandError) {
    let found = try storing { () throws(StoreTrouble) in try store.allBlocked() }
    for (file, blocked) in found where !blocked.isOver(at: now) {
      let name = try storing { () throws(StoreTrouble) -> UserName? in
        guard blocked.path.contains("/\(Store.blockedUIDs.text)/") else {
          return file.user ?? blocked.block?.user
        }
        guard let uid = UInt32(file.directory) else { return blocked.block?.user }
        return try Accounts.find(uid: uid)?.name ?? blocked.block?.user
      }
      guard let name else { continue }
      let text = String(decoding: name.bytes, as: UTF8.self)
      if all[text] == nil { all[text] = blocked }
    }
  }
}
