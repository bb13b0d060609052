import ArgumentParser
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportLogin
import SallyportSupport
import SallyportSystem
import SessionProtocol

/// `sallyport block`
struct BlockUser: Verb {
  static let configuration = CommandConfiguration(
    commandName: "block",
    abstract: "Block a user, whatever is enrolled or set, until that is lifted.",
    discussion: """
      Codes, backup codes and passes are refused, no place is remembered, nothing enrolls, and the \
      account line refuses after a key or a ticket too. What is enrolled is kept. Sessions that \
      are open go on.
      """)

  @OptionGroup var shared: SubjectOptions<NoDefault>

  @Option(
    help: ArgumentHelp("Up to this day (UTC); from then on it is lifted.", valueName: "date"),
    transform: Day.init(typed:))
  var until: Day?

  @Flag(help: "Lift it: what is enrolled and set counts again.")
  var undo = false

  @Flag(help: "Also for root, and for the account that you logged in with.")
  var force = false

  func validate() throws {
    if undo, until != nil || force { throw ValidationError("--undo takes no --until and --force") }
  }

  func run(in context: Context) throws(CommandError) {
    if let until, until.midnight <= (try context.time()) { throw .blockEnded }
    let act: HelpAct = undo ? .unblock : .block(until: until?.midnight)
    if case .done(let user, _, _)? = try shared.helped(
      act, in: context, roots: ["--force": force])
    {
      return tell(user.text, context.output(shared.storeOptions))
    }
    let subject = try shared.open(in: context, for: undo ? .onStored : .onAccount)
    let person = try subject.person(usesPolicy: false)
    if undo { return try lift(person, subject) }
    guard person.account.uid != nil || subject.users.allowMissing else { throw .noSuchUser }
    try insist(on: person.account, context)
    let before = replaced(of: person, subject)
    let isSettled = try person.block(until: until?.midnight)
    if !isSettled {
      subject.output.warn(
        "a login that began before is held up, and its code may still be accepted; the account "
          + "line refuses it")
    }
    let passes = revokePasses(of: person, subject.output)
    let table = try openWays(of: person.account, context)
    let name = person.account.name.text
    subject.output.answer(
      Answer(
        user: name, until: OrNull(wrappedValue: until.flatMap { fact($0.midnight) }),
        inFleet: person.isInFleet, replaced: OrNull(wrappedValue: BlockFacts(before)),
        passesRevoked: passes,
        ways: table.map { $0.rows.flatMap(\.cells).map(\.names) }),
      text(person, table, subject.output.width, replaced: before))
  }

  /// The block that this one takes the place of, where that has another end or helper; nil where
  /// that is not known.
  private func replaced(of person: any Person, _ subject: Subject) -> Store.Blocked? {
    guard let now = try? subject.context.time() else { return nil }
    let before =
      person.isInFleet
      ? (try? person.record().blocked).map { [$0] } : try? subject.store.blocks(of: person.account)
    return before?.first { one in
      !one.isOver(at: now) && (one.block == nil || one.block?.helper != nil || one.isOther(until))
    }
  }

  private func lift(_ person: any Person, _ subject: Subject) throws(CommandError) {
    guard try person.unblock() else {
      throw .nothingToUndo(
        of: person.account, "is not blocked", list: "list --blocked", "who is blocked")
    }
    tell(lifted: person.account.name.text, subject.output)
  }

  private func tell(lifted name: String, _ output: Output) {
    output.answer(Lifted(user: name), "\(name) is not blocked any more.")
  }

  /// To a helper, who has done it.
  private func tell(_ name: String, _ output: Output) {
    if undo { return tell(lifted: name, output) }
    output.answer(
      Helped(user: name, until: OrNull(wrappedValue: until.flatMap { fact($0.midnight) })),
      "\(blockedText(name)) Ways in that do not ask, such as a key alone, stay open: "
        + "`sudo sallyport doctor` names them.")
  }

  /// Nobody shuts himself or root out by a slip.
  private func insist(on account: Account, _ context: Context) throws(CommandError) {
    guard !force, let uid = account.uid else { return }
    if uid == 0 { throw .blockOf("has the uid 0: every way to root is shut then") }
    let own = try context.caller.map { name throws(CommandError) in try context.account(name).uid }
    if own == uid || context.loginUID() == uid {
      throw .blockOf("is the account that you logged in with")
    }
  }

  /// How many open passes were ended. He is blocked already: what fails here lets nothing in.
  private func revokePasses(of person: any Person, _ output: Output) -> Int {
    do throws(CommandError) {
      let count = try person.enrolledRecord().enrollment.passes.count
      guard count > 0, let pending = try person.found() else { return 0 }
      try person.amend(.revoke, of: pending)
      return count
    } catch {
      if !error.isAbsence {
        output.warn("the passes were not revoked: what is enrolled cannot be read or changed")
      }
      return 0
    }
  }

  /// The ways in that ask nothing of ours, so that no block is read; nil where another store than
  /// the usual one is meant.
  private func openWays(of account: Account, _ context: Context) throws(CommandError)
    -> AccessTable?
  {
    let options = shared.storeOptions
    guard options.path == Store.usualRoot else { return nil }
    let facts = try context.accessFacts(options, user: account.name)
    return AccessTable(facts).narrowed(to: nil, account.name.text).open
  }

  private func text(
    _ person: any Person, _ table: AccessTable?, _ width: Int, replaced before: Store.Blocked?
  ) -> String {
    let name = person.account.name.text
    var lines = [blockedText(name, person.isInFleet ? " in the fleet" : "")]
    lines += before.map { ["Before this it was blocked \($0.extent)."] } ?? []
    if person.isInFleet {
      lines += [
        "",
        "A login that asks for no code, such as by a key alone, a host refuses by its own files:",
        "    sudo \(sallyportCommand("block", on: [name], ["--store", Store.usualRoot]))",
      ]
    }
    let ways = table.map { AccessText(table: $0, width: width, store: nil) }
    let open = ways.map { ways in ways.table.rows.flatMap { ways.lines(of: $0).dropFirst() } } ?? []
    if !open.isEmpty {
      lines += ["", "Ways in\(person.isInFleet ? " on this host" : "") that do not ask:"] + open
    }
    return lines.joined(separator: "\n")
  }

  private func blockedText(_ name: String, _ place: String = "") -> String {
    let end = until.map { " up to \(endText($0.midnight))" } ?? ""
    let session = "loginctl terminate-user \(shellQuoted(name))"
    return "\(name) is blocked\(place)\(end): nothing is accepted. Sessions that are open go on: "
      + "`sudo \(session)` ends them."
  }

  private struct Answer: Encodable {
    let user: String
    let until: OrNull<String>
    let inFleet: Bool
    let replaced: OrNull<BlockFacts>
    let passesRevoked: Int
    /// nil where they were not looked for.
    let ways: [Way]?
  }

  fileprivate struct Way: Encodable {
    let service, name, verdict, reason: String
  }

  private struct Helped: Encodable {
    let user: String
    let until: OrNull<String>
  }

  private struct Lifted: Encodable {
    let user: String
    var blocked = false
  }
}

extension Cell {
  fileprivate var names: BlockUser.Way {
    BlockUser.Way(
      service: way.service, name: way.name, verdict: verdict.name, reason: verdict.reason)
  }
}

extension Store.Blocked {
  fileprivate func isOther(_ until: Day?) -> Bool { block?.until != until?.midnight }

  fileprivate var extent: String {
    guard let block else {
      return "for good: \(printable(path.utf8, limit: 300)) was not understood"
    }
    let end = block.until.map { "up to \(endText($0))" } ?? "without an end"
    return end + (block.helper.map { ", by the helper \($0.text)" } ?? "")
  }
}

extension AccessTable {
  /// What is let in without a code, or not known: of somebody who is blocked, the ways that do not
  /// read it.
  fileprivate var open: AccessTable {
    narrowed(toCells: { cell in
      switch cell.verdict {
      case .withoutCode, .unseen: true
      case .asked, .refused: false
      }
    })
  }
}

extension CommandError {
  fileprivate static func blockOf(_ why: String) -> CommandError {
    CommandError {
      Message("\($0.who) \(why)", .refused, hints: [$0.again("--force", remark: "does it")])
    }
  }

  fileprivate static let blockEnded = CommandError(
    .usage, "--until: the day has begun, so nothing would change")
}
