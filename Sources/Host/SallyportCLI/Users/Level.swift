import ArgumentParser
import SallyportAdministration
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

/// `sallyport require`
struct Require: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Require a user to enroll, whatever level the policy sets.",
    discussion: """
      Only a rule of the policy file that refuses unenrolled users overrides it. The user enrolls \
      at login, if the module's line has the argument enroll, or root enrolls the user.
      """)

  @OptionGroup var shared: SubjectOptions<NoDefault>

  @Option(
    help: ArgumentHelp("From this day on (UTC); until then, only offer it.", valueName: "date"),
    transform: Day.init(typed:))
  var by: Day?

  @Flag(help: "Undo it: the policy's level applies again.")
  var undo = false

  @Option(
    help: ArgumentHelp("Everybody who is in this group now, one by one.", valueName: "group"))
  var group: String?

  @Flag(help: "Every person who has an account now, one by one.")
  var all = false

  func validate() throws {
    if undo, by != nil { throw ValidationError("--undo takes no --by") }
    let ways = [shared.argument.name != nil, group != nil, all].filter { $0 }.count
    if group == "" { throw ValidationError("--group needs the name of a group") }
    if ways > 1 { throw ValidationError("a user, --group and --all exclude each other") }
  }

  func run(in context: Context) throws(CommandError) { _ = try status(in: context) }

  func status(in context: Context) throws(CommandError) -> Int32 {
    let level: UserNote.Level? = undo ? nil : .required(from: by?.midnight)
    let now = try context.time()
    if let by, by.midnight.seconds + 86_400 <= now.seconds {
      let day = CalendarDate(by.midnight, inUTC: true)?.isoDay ?? ""
      context.output(shared.storeOptions).warn("\(day) is past: required from now on")
    }
    if group != nil || all { return try runForMany(level, in: context) }
    try LevelChange(try shared.open(in: context, for: undo ? .onStored : .onAccount))
      .run(level, undoing: Require.isRequired)
    return Sysexit.done.rawValue
  }

  private static func isRequired(_ level: UserNote.Level?) -> Bool {
    if case .required = level { true } else { false }
  }

  /// Those who are seen are done; the exit status says whether anybody may be missing.
  private func runForMany(_ level: UserNote.Level?, in context: Context)
    throws(CommandError) -> Int32
  {
    var done: [LevelChange.Answer] = []
    var (exempt, earlier): ([String], [String]) = ([], [])
    let store = try context.store(shared.storeOptions)
    let now = try context.time()
    let people = try MeantPeople(of: group, storedIn: store, on: context.machine)
    if people.found.isEmpty, people.unseen.isEmpty { throw .nobodyInGroup(group ?? "") }
    if !undo { try storing { () throws(StoreTrouble) in try context.prepare(store) } }
    for name in people.found {
      let one = try LevelChange(try shared.subject(name, in: context))
      let old = try one.level()
      if !undo, old.isExempt(at: now) {
        exempt.append(name)
      } else if !undo, case .required(let from) = old, isBy(from) {
        earlier.append(name)
      } else if let change = try one.change(level, undoing: Require.isRequired) {
        done.append(change)
      }
    }
    let what = undo ? "the policy's level applies" : level.map(levelText) ?? ""
    let output = context.output(shared.storeOptions)
    let lists = [
      (counted(done.count, "user") + ": \(what)", done.map(\.user)), ("left exempt", exempt),
      ("already required, from the same day or an earlier one", earlier),
      ("not reached", people.unseen),
    ]
    output.answer(
      LevelChange.Answers(
        users: done, exempt: exempt, alreadyRequired: earlier, notReached: people.unseen),
      lists.flatMap { LevelChange.list($0, $1, width: output.width) }.joined(separator: "\n"))
    if people.unseen.isEmpty { return Sysexit.done.rawValue }
    let named = invocation(in: context).command("require NAME", undo ? "--undo" : "")
    let hint = "hint: \(named)  # one by one; a rule of sallyport.conf holds for a group\n"
    context.terminal.write(Array(hint.utf8), to: .aside)
    return Sysexit.busy.rawValue
  }

  /// Whether a user who must enroll from that day on must do so by the day given now anyway.
  private func isBy(_ from: UnixTime?) -> Bool {
    guard let from else { return true }
    return by.map { from.seconds <= $0.midnight.seconds } ?? false
  }
}

/// `sallyport exempt`
struct Exempt: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Let a user in without an enrollment, whatever level the policy sets.",
    discussion: """
      Only a rule of the policy file that refuses unenrolled users overrides it. An enrolled user \
      is still asked for a code.
      """)

  @OptionGroup var shared: SubjectOptions<NoDefault>

  @Option(
    help: ArgumentHelp(
      "Up to this day (UTC); from then on the policy's level applies again.", valueName: "date"),
    transform: Day.init(typed:))
  var until: Day?

  @Flag(help: "Undo it: the policy's level applies again.")
  var undo = false

  func validate() throws {
    if undo, until != nil { throw ValidationError("--undo takes no --until") }
  }

  func run(in context: Context) throws(CommandError) {
    let level = UserNote.Level.exempt(until: until?.midnight)
    guard UserNote.Level?.some(level).isExempt(at: try context.time()) else {
      throw CommandError { _ in
        Message("--until: the day has begun, so nothing would change", .usage)
      }
    }
    try LevelChange(try shared.open(in: context, for: undo ? .onStored : .onAccount))
      .run(undo ? nil : level) { $0.isExempt }
  }
}

/// A date in UTC, typed as 2027-03-01.
struct Day {
  let midnight: UnixTime

  /// Throws unless it is a date of that form.
  init(typed text: String) throws {
    guard let midnight = UnixTime(date: Array(text.utf8)) else {
      throw ValidationError("expected YYYY-MM-DD, such as 2026-12-01")
    }
    self.midnight = midnight
  }
}

/// A change of one user's own level, which root sets.
struct LevelChange {
  private let subject: Subject
  private let person: any Person

  init(_ subject: Subject) throws(CommandError) {
    (self.subject, person) = (subject, try subject.person(usesPolicy: false))
  }

  /// As root has set it.
  func level() throws(CommandError) -> UserNote.Level? { try person.level() }

  /// Sets the level. nil removes the one for which `isMeant` is true, and throws if the user
  /// has no such level.
  func run(_ level: UserNote.Level?, undoing isMeant: (UserNote.Level?) -> Bool)
    throws(CommandError)
  {
    guard let answer = try change(level, undoing: isMeant) else {
      throw .nothingToUndo(
        of: try subject.account(), "has no such level", list: "list --exempt", "who is exempt")
    }
    // Where the store cannot be read, nothing is said of it.
    let isAsked = level.isExempt && isEnrolled
    let more = isAsked ? " \(answer.user) is enrolled, and is asked for a code all the same." : ""
    subject.output.answer(answer, LevelChange.text(answer.user, level) + more)
  }

  private var isEnrolled: Bool { (try? person.enrolledRecord()) != nil }

  /// As `run`, but prints nothing, and returns nil if the user has no such level.
  func change(_ level: UserNote.Level?, undoing isMeant: (UserNote.Level?) -> Bool)
    throws(CommandError) -> Answer?
  {
    let account = try subject.account()
    let owner = level == nil ? try undone(of: account, isMeant) : account
    // Exempt is the account with this name and uid; in a fleet the name. What is taken back is
    // found by the name, also where the account is gone.
    let needsAccount = level.isExempt && !person.isInFleet || !subject.users.allowMissing
    let isFound = account.uid != nil || level == nil && !person.isInFleet
    guard isFound || !needsAccount else { throw .noSuchUser }
    guard let owner else { return nil }
    try person.set(level, of: owner)
    return Answer(user: account.name.text, level: LevelFacts(level))
  }

  /// Whose level is taken back; nil if there is no such level. A note that does not hold for the
  /// account which has its name now, as of one who had it before, is nobody's who has a uid.
  private func undone(of account: Account, _ isMeant: (UserNote.Level?) -> Bool)
    throws(CommandError) -> Account?
  {
    if subject.entry == nil, isMeant(try level()) { return account }
    if person.isInFleet { return nil }
    do throws(StoreTrouble) {
      let note = try subject.store.note(of: account.name)
      return isMeant(note.level) ? Account(name: account.name, uid: nil) : nil
    } catch {
      throw CommandError(note: error)
    }
  }

  struct Answer: Encodable {
    let user: String
    @OrNull var level: LevelFacts?
  }

  /// The answer for many users. Those who are exempt or required already were not changed, and
  /// those who were not reached may be somebody's: by name, or in words.
  struct Answers: Encodable {
    let users: [Answer]
    let exempt, alreadyRequired, notReached: [String]
  }

  /// A heading with names below it; empty if there are no names.
  static func list(_ heading: String, _ names: [String], width: Int) -> [String] {
    let shown = names.map { printable($0.utf8, limit: 255) }
    return names.isEmpty ? [] : ["\(heading):"] + wrapped(shown, width: width - 4).map { "  \($0)" }
  }

  private static func text(_ user: String, _ level: UserNote.Level?) -> String {
    switch level {
    case .required, .exempt:
      "\(user): \(level.map(levelText) ?? ""), whatever level the policy sets."
    case nil: "\(user): the policy's level applies."
    }
  }
}
