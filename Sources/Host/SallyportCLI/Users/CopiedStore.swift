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
  }

  /// Refuses what may have been used on the other machine. Each enrollment is changed by one write,
  /// and the mark of the machine comes last: cut short anywhere, the same command goes on.
  func takeOver() throws(CommandError) -> Int32 {
    if context.machine.difference(from: store) == [] {
      output.answer(
        Answer(users: [], counters: [], failed: []),
        "The store was made on this machine. Nothing was changed.")
      return Sysexit.done.rawValue
    }
    let names = try storing { () throws(StoreTrouble) in try store.enrolledNames() }
    if asks {
      output.say("Codes up to now and all backup codes are refused from now on, counters until")
      output.say("they are synchronized.")
      try output.insist(
        "\(counted(names.count, "enrollment")). Was the store copied from another machine?",
        or: .nothingChanged)
    }
    var (done, failed): ([Enrollment], [String]) = ([], [])
    for name in names {
      do throws(StoreTrouble) {
        if let enrollment = try distrust(name) { done.append(enrollment) }
      } catch {
        let invocation = Invocation(
          verb: "prepare", user: name.user?.typedOrShown, store: shared.store)
        failed.append("\(name.directory): \(Message(error, at: invocation).text)")
      }
    }
    for text in failed { context.terminal.write(Array("sallyport: \(text)\n".utf8), to: .aside) }
    if failed.isEmpty {
      try storing { () throws(StoreTrouble) in try store.leaveReserve() }
      try storing { () throws(StoreTrouble) in try context.mark(store, shared, isNew: true) }
    }
    tell(done, failed)
    return (failed.isEmpty ? Sysexit.done : .badData).rawValue
  }

  private func distrust(_ name: StoredName) throws(StoreTrouble) -> Enrollment? {
    try store.distrustCopy(
      stored: name,
      under: { enrollment in
        let account = Account(name: enrollment.user, uid: enrollment.uid)
        return context.policy(at: nil, for: account, in: store, warns: false)
      }, at: context.now)
  }

  private func tell(_ done: [Enrollment], _ failed: [String]) {
    func names(_ enrollments: [Enrollment]) -> [String] { enrollments.map(\.user.text) }
    let counters = done.filter { $0.authenticators.contains { $0.parameters.type == .hotp } }
    let codes = done.filter { $0.backupCodes != nil }
    let invocation = Invocation(verb: "prepare", user: "NAME", store: shared.store)
    var lines = ["\(counted(done.count, "enrollment")) taken over, \(failed.count) not."]
    if !codes.isEmpty {
      lines.append("No backup codes now: \(listed(names(codes))). New ones:")
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
      Answer(users: names(done), counters: names(counters), failed: failed),
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
    try storing { () throws(StoreTrouble) in try store.empty() }
    context.removeWord(of: shared)
    output.answer(
      Answer(users: names.map(\.directory)),
      "The store is empty. The next \"sallyport prepare\" makes it that machine's.")
    return Sysexit.done.rawValue
  }
}
