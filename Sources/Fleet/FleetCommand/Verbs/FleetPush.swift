import ArgumentParser
import FleetProtocol
import FleetTransport
import SallyportAdministration
import SallyportCLI
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

/// `sallyport fleet push`
struct FleetPush: Verb {
  static let configuration = CommandConfiguration(
    commandName: "push", abstract: "Move enrollments from this machine's files to its fleet.",
    discussion: """
      The apps keep working. From then on the fleet verifies the codes of moved users, on all \
      hosts. If the command is interrupted, run it again: it continues.
      """)

  @Option(
    name: [.customLong("user"), .customShort("u")],
    help: ArgumentHelp("Move this user.", valueName: "user"),
    completion: .custom(Completions.users))
  var user: String?

  @Flag(help: "Move all users with verification = fleet.")
  var all = false

  @Flag(help: "Where the fleet has the name under another enrollment, keep that one.")
  var keepFleet = false

  @OptionGroup var shared: StoreOptions
  @OptionGroup var policy: PolicyOptions

  private struct Answer: Encodable {
    struct NotMoved: Encodable {
      let user: String
      let reason: String
    }
    /// Who is in the fleet now.
    let moved: [String]
    /// Who stays here, as the policy or a way in without the fleet wants it.
    let kept: [NotMoved]
    let notMoved: [NotMoved]
  }

  /// What became of one.
  private struct Pushed {
    let name: String
    /// nil: he was moved.
    let fault: MoveFault?
    var shown: String { printable(name.utf8, limit: 64) }
  }

  func validate() throws {
    guard (user != nil) != all else {
      throw ValidationError("one of --user and --all is required")
    }
  }

  func invocation(in context: Context) -> Invocation {
    Invocation(verb: "fleet push", user: user, store: shared.store)
  }

  func run(in context: Context) throws(CommandError) {
    let place = try context.placeForRoot()
    let (verifiers, missing) = try place.verifiersForMoves(.changes)
    let store = try context.store(shared)
    let people = HostAccounts(store: store, conf: policy.conf, context: context)
    let mover = MoveToFleet(
      store: store, verifiers: verifiers, missing: missing, keepsFleet: keepFleet,
      tokens: try storing { () throws(StoreTrouble) in try store.heldTokens() })
    let ways = try WaysIn(people, context.machine)
    if let user {
      let account = try context.meantAccount(user, context.output(shared))
      let name = account.name.text
      if let fault = try push(account, of: people, by: mover, ways) {
        throw .move(fault, name)
      }
      return tell([Pushed(name: name, fault: nil)], context)
    }
    try pushAll(of: people, by: mover, ways, context)
  }

  /// nil: he was moved.
  private func push(
    _ account: Account, of people: HostAccounts, by mover: MoveToFleet, _ ways: WaysIn
  ) throws(CommandError) -> MoveFault? {
    guard account.uid != nil else { return .noAccount }
    guard try people.isTheFleets(account) else { return .keptByPolicy }
    guard !ways.isLast(account.name) else { return .lastBreakGlass }
    let recorder = try people.context.recorder(shared)
    do throws(MoveFault) {
      try recorder.record(.fleetPush, for: account.name) { () throws(MoveFault) in
        try mover.push(account)
      }
      ways.close(account.name)
      return nil
    } catch {
      return error
    }
  }

  private func pushAll(
    of people: HostAccounts, by mover: MoveToFleet, _ ways: WaysIn, _ context: Context
  ) throws(CommandError) {
    let names = try people.enrolled()
    let progress = Progress(of: names.count, on: context.terminal)
    var done: [Pushed] = []
    var end: CommandError?
    for name in names {
      if let interruption = context.terminal.interruption() {
        end = .pushed(
          "\(interruption == .endOfInput ? "end of input" : "interrupted"): \(done.count) of "
            + "\(counted(names.count, "user")) were looked at")
        break
      }
      let account = try storing { () throws(StoreTrouble) in try Accounts.find(name) }
      let fault =
        account.name == name
        ? try push(account, of: people, by: mover, ways) : .otherSpelling(of: account.name.text)
      done.append(Pushed(name: name.text, fault: fault))
      if let fault, fault.isOfAll {
        end = .move(fault, name.text)
        break
      }
      progress.show(done.count)
    }
    progress.end()
    tell(done, context)
    if let end { throw end }
    let left = done.filter { $0.fault.map { $0.cause != .wanted } ?? false }
    if !left.isEmpty {
      throw .pushed("\(left.count) of \(counted(names.count, "user")) were not moved")
    }
  }

  private func tell(_ all: [Pushed], _ context: Context) {
    let moved = all.filter { $0.fault == nil }
    let kept = all.filter { $0.fault?.cause == .wanted }
    let failed = all.filter { $0.fault.map { $0.cause != .wanted } ?? false }
    func reasons(_ some: [Pushed]) -> [Answer.NotMoved] {
      some.map { Answer.NotMoved(user: $0.name, reason: $0.fault?.text ?? "") }
    }
    let lines = (kept + failed).map { "\($0.shown)   \($0.fault?.text ?? "")" }
    let summary =
      [
        "\(moved.count) moved to the fleet", kept.isEmpty ? nil : "\(kept.count) stay here",
        failed.isEmpty ? nil : "\(failed.count) not moved",
      ].compactMap { $0 }.joined(separator: ", ") + "."
    let one = moved.count == 1 && all.count == 1 ? moved.first : nil
    let end = one.map { "\($0.shown) is in the fleet: a code is good once on all its hosts." }
    context.output(shared).answer(
      Answer(moved: moved.map(\.name), kept: reasons(kept), notMoved: reasons(failed)),
      (lines + [end ?? summary]).joined(separator: "\n"))
  }
}

/// Who could become root here by files alone: the last one is not moved.
final class WaysIn {
  /// Names as bytes: those that are equal to Unicode need not be one account.
  private var left: Set<[UInt8]>
  /// Whether somebody stays in any case.
  private let isSafe: Bool

  init(_ people: HostAccounts, _ machine: Machine) throws(CommandError) {
    let candidates = BreakGlass.candidates(on: machine)
    isSafe = try !people.breakGlass(among: candidates).isEmpty
    left = Set(try people.enrolled(among: candidates).map { Array($0.utf8) })
  }

  func isLast(_ name: UserName) -> Bool { !isSafe && left == [name.bytes] }

  func close(_ name: UserName) { left.remove(name.bytes) }
}

extension CommandError {
  /// How far it came.
  fileprivate static func pushed(_ text: String) -> CommandError {
    CommandError { Message(text, .refused, hints: [$0.again(remark: "goes on")]) }
  }
}
