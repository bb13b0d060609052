import ArgumentParser
import SallyportCore
import SallyportSystem
import SallyportText

/// `sallyport require`
struct Require: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Require a user to enroll, whatever level the policy sets.",
    discussion: """
      Only a rule of the policy file that refuses unenrolled users overrides it. The user enrolls \
      at login, if the module's line has the argument enroll, or root enrolls the user.
      """)

  @OptionGroup var shared: SubjectOptions<Nobody>

  @Option(
    help: ArgumentHelp("From this day on (UTC); until then, only offer it.", valueName: "date"),
    transform: Day.init(typed:))
  var by: Day?

  @Flag(help: "Undo it: the policy's level applies again.")
  var undo = false

  func validate() throws {
    if undo, by != nil { throw ValidationError("--undo takes no --by") }
  }

  func run(in context: Context) throws(CommandError) {
    try LevelChange(subject: try shared.open(in: context)).run(
      undo ? nil : .required(from: by?.midnight)
    ) { level in
      if case .required = level { true } else { false }
    }
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

  @OptionGroup var shared: SubjectOptions<Nobody>

  @Flag(help: "Undo it: the policy's level applies again.")
  var undo = false

  func run(in context: Context) throws(CommandError) {
    try LevelChange(subject: try shared.open(in: context)).run(undo ? nil : .exempt) {
      $0 == .exempt
    }
  }
}

/// A day in UTC, as people type it: 2027-03-01.
struct Day {
  let midnight: UnixTime

  /// Throws where it is no day of that form.
  init(typed text: String) throws {
    guard let midnight = UnixTime(date: Array(text.utf8)) else {
      throw ValidationError("expected YYYY-MM-DD, such as 2026-12-01")
    }
    self.midnight = midnight
  }
}

/// A change of what root says of one user alone.
struct LevelChange {
  let subject: Subject

  /// `level` nil: takes back the one that `isMeant`; throws `noLevel` where there is none.
  func run(_ level: UserNote.Level?, undoing isMeant: (UserNote.Level?) -> Bool)
    throws(CommandError)
  {
    let account = try subject.account()
    guard account.uid != nil || subject.users.allowMissing else { throw .noSuchUser }
    if level == nil, !isMeant(try subject.context.note(of: account, in: subject.store).level) {
      throw .noLevel
    }
    do throws(StoreTrouble) {
      try subject.store.prepare()
      _ = try subject.store.changeNote(of: account.name) { $0.level = level }
    } catch {
      throw CommandError(note: error)
    }
    subject.voice.answer(
      Answer(user: account.name.text, level: LevelFacts(level)),
      LevelChange.text(account.name.text, level))
  }

  private struct Answer: Encodable {
    let user: String
    @OrNull var level: LevelFacts?
  }

  private static func text(_ user: String, _ level: UserNote.Level?) -> String {
    switch level {
    case .required: "\(user): \(level.map(levelText) ?? ""), whatever level the policy sets."
    case .exempt: "\(user): exempt, whatever level the policy sets."
    case nil: "\(user): the policy's level applies."
    }
  }
}

extension Context {
  /// Logins of one who is not enrolled that were counted.
  func loginsCounted(of account: Account, in store: Store) throws(CommandError) -> UInt32 {
    do throws(StoreTrouble) {
      return try store.loginsCounted(of: account.name)
    } catch {
      throw CommandError(note: error)
    }
  }

  /// What is kept of a user apart from an enrollment.
  func note(of account: Account, in store: Store) throws(CommandError) -> UserNote {
    do throws(StoreTrouble) {
      return try store.note(of: account.name)
    } catch {
      throw CommandError(note: error)
    }
  }
}

extension CommandError {
  /// An error of a note, which is fixed differently from an enrollment.
  fileprivate init(note trouble: StoreTrouble) {
    self = trouble.isBrokenEnrollment ? .note(trouble) : .store(trouble)
  }
}
