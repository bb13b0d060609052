import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

/// A store that came to this machine with a copy of another one, or that is to go with copies of
/// this one.
struct CopiedStore {
  let context: Context
  let shared: StoreOptions
  let store: Store
  let asks: Bool

  private var output: Output { context.output(shared) }

  private struct Answer: Encodable {
    let users: [String]
    /// Those whose counters wait for `resync`.
    var counters: [String]?
    /// As `NAME: why`.
    var failed: [String]?
    /// How many of the inventory were taken over.
    var tokens: Int?
  }

  /// Refuses what may have been used on the other machine. Each enrollment is changed by one write,
  /// and the mark of the machine comes last: cut short anywhere, the same command goes on. The mark
  /// names those who could not be changed: they alone are left to the next call.
  func takeOver() throws(CommandError) -> Int32 {
    let rest = (try? store.machineMark()).flatMap { $0.left.isEmpty ? nil : $0 }
    let isCopy = (try? context.machine.difference(from: store)) != []
    if !isCopy, rest == nil {
      output.answer(
        Answer(users: [], counters: [], failed: [], tokens: 0),
        "The store was made on this machine. Nothing was changed.")
      return Sysexit.done.rawValue
    }
    let now = try context.time()
    let names = try storing { () throws(StoreTrouble) in try store.enrolledNames() }
      .filter { isCopy || rest?.left.contains($0.directory) == true }
    if asks {
      output.say(
        "After a yes, codes up to now and all backup codes are refused, and counters until")
      output.say("they are synchronized.")
      try output.insist(
        "\(counted(names.count, "enrollment")). Was the store copied from another machine?",
        or: .nothingChanged)
    }
    let isDone = { (done: TakenOver) in done.failed.isEmpty }
    let done = try context.recorder(shared).record(.newMachine, isDone: isDone) {
      () throws(CommandError) in try takeOver(names, rest, isCopy: isCopy, at: now)
    }
    tell(done.taken, done.failed, tokens: done.tokens, done.until > now ? done.until : nil)
    return (done.failed.isEmpty ? Sysexit.done : .badData).rawValue
  }

  /// In the mark, before the file of a token.
  private static let tokens = "tokens/"

  private static func token(_ left: String) -> String? {
    left.hasPrefix(tokens) ? String(left.dropFirst(tokens.count)) : nil
  }

  private typealias TakenOver = (
    taken: [Enrollment], failed: [String], tokens: Int, until: UnixTime
  )

  private func takeOver(
    _ names: [StoredName], _ rest: MachineMark?, isCopy: Bool, at now: UnixTime
  ) throws(CommandError) -> TakenOver {
    var (done, failed, left): ([Enrollment], [String], [String]) = ([], [], [])
    var until = now
    for name in names {
      do throws(StoreTrouble) {
        if let copy = try distrust(name, isCopy ? nil : rest?.since) {
          done.append(copy.enrollment)
          until = max(until, copy.until ?? until)
        }
      } catch {
        failed.append(tell(error, of: name.directory, user: name.user?.typedOrShown))
        // No name of a user's directory has a blank.
        if !name.directory.contains(where: \.isWhitespace) { left.append(name.directory) }
      }
    }
    let again = isCopy ? nil : rest?.left.compactMap { CopiedStore.token($0) } ?? []
    let tokens = try storing { () throws(StoreTrouble) in
      try store.distrustTokens(named: again, at: now)
    }
    for (file, trouble) in tokens.failed {
      failed.append(tell(trouble, of: CopiedStore.tokens + file, user: nil))
      if !file.contains(where: \.isWhitespace) { left.append(CopiedStore.tokens + file) }
    }
    try storing { () throws(StoreTrouble) in
      if !isCopy, var mark = rest {
        mark.left = left
        if mark != rest { try store.set(mark) }
      } else {
        try store.leaveReserve()
        try context.markCopy(store, shared, left: left, since: now)
      }
    }
    return (done, failed, tokens.done, until)
  }

  private func tell(_ error: StoreTrouble, of name: String, user: String?) -> String {
    var invocation = Invocation(verb: "prepare", user: user, store: shared.store)
    invocation.typed = ["prepare", "--new-machine"] + (shared.store.map { ["--store", $0] } ?? [])
    let message = Message(error, at: invocation)
    let text = "\(name): \(message.text)"
    let written = Message(text, message.status, hints: message.hints).written
    context.terminal.write(Array(written.utf8), to: .aside)
    return text
  }

  /// nil: it is gone, or was made here after the first call, `since` then.
  private func distrust(
    _ name: StoredName, _ since: UnixTime?
  ) throws(StoreTrouble) -> (enrollment: Enrollment, until: UnixTime?)? {
    if let since, let own = try store.load(stored: name), own.enrollment.created > since {
      return nil
    }
    return try store.distrustCopy(stored: name, at: context.now)
  }

  private func tell(
    _ done: [Enrollment], _ failed: [String], tokens: Int, _ until: UnixTime?
  ) {
    func names(_ enrollments: [Enrollment]) -> [String] { enrollments.map(\.user.text) }
    let counters = done.filter { $0.authenticators.contains { $0.parameters.type == .hotp } }
    let codes = done.filter { $0.backupCodes != nil }
    let invocation = Invocation(verb: "prepare", user: "NAME", store: shared.store)
    var lines = ["\(counted(done.count, "enrollment")) taken over, \(failed.count) not."]
    if tokens > 0 {
      lines.append("\(counted(tokens, "token")) of the inventory as well, for who gets them next.")
    }
    if let until, let time = fact(until) { lines.append("Codes are accepted again at \(time).") }
    if !codes.isEmpty {
      lines.append("No backup codes now: \(listed(names(codes))). New ones, good at once:")
      lines.append("  " + invocation.command("backup-codes", "--regenerate"))
    }
    if !counters.isEmpty {
      lines.append("Counters are refused now: \(listed(names(counters))). Synchronize each:")
      lines.append("  " + invocation.command("resync"))
    }
    if !done.isEmpty {
      lines.append("While the other machine lives, both take the same codes, until people enroll")
      lines.append("with a new secret or both machines join a fleet.")
    }
    output.answer(
      Answer(users: names(done), counters: names(counters), failed: failed, tokens: tokens),
      lines.joined(separator: "\n"))
  }

  /// Removes everything that a copy of this machine must not have.
  func empty() throws(CommandError) -> Int32 {
    if shared.path == Store.usualRoot, context.fleet?.isHost == true {
      throw CommandError(
        .configuration, "this machine is in a fleet: an image must not have its key",
        hints: ["sallyport fleet leave"])
    }
    let names = try storing { () throws(StoreTrouble) in try store.enrolledNames() }
    if asks {
      let people = counted(names.count, "enrollment")
      try output.insist("\(people). Remove all of them?", or: .nothingChanged)
    }
    try context.recorder(shared).record(.empty) { () throws(CommandError) in
      try storing { () throws(StoreTrouble) in try store.empty() }
    }
    context.removeWord(of: shared)
    output.answer(
      Answer(users: names.map(\.directory)),
      "The store is empty. The next \"sallyport prepare\" makes it that machine's.")
    return Sysexit.done.rawValue
  }
}
