import ArgumentParser
import SallyportCore
import SallyportSystem
import SallyportText

/// `sallyport require`
struct Require: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Let a user in no longer without an enrollment, whatever the policy's level.",
    discussion: """
      Only a rule of the policy file that refuses the unenrolled stands above it. The user enrolls \
      in the login, where the module's line has the word enroll, or root enrolls him.
      """)

  @Option(help: ArgumentHelp("Whom.", valueName: "name"))
  var user: String

  @Option(
    help: ArgumentHelp("From this day on (UTC); until then it is offered.", valueName: "date"))
  var by: Day?

  @Flag(help: "Take it back: the policy's level holds.")
  var undo = false

  @OptionGroup var users: UserOptions
  @OptionGroup var store: StoreOptions

  func validate() throws {
    if undo, by != nil { throw ValidationError("--undo takes no --by") }
  }

  func user(in context: Context) -> String? { user }

  func run(in context: Context) throws(CommandError) {
    let change = LevelChange(user: user, users: users, store: store)
    try change.run(undo ? nil : .required(from: by?.midnight), in: context) { level in
      if case .required = level { true } else { false }
    }
  }
}

/// `sallyport exempt`
struct Exempt: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Let a user in without an enrollment, whatever the policy's level.",
    discussion: """
      Only a rule of the policy file that refuses the unenrolled stands above it. Whoever is \
      enrolled is asked for a code all the same.
      """)

  @Option(help: ArgumentHelp("Whom.", valueName: "name"))
  var user: String

  @Flag(help: "Take it back: the policy's level holds.")
  var undo = false

  @OptionGroup var users: UserOptions
  @OptionGroup var store: StoreOptions

  func user(in context: Context) -> String? { user }

  func run(in context: Context) throws(CommandError) {
    let change = LevelChange(user: user, users: users, store: store)
    try change.run(undo ? nil : .exempt, in: context) { $0 == .exempt }
  }
}

/// A day in UTC, as people type it: 2027-03-01.
struct Day: ExpressibleByArgument {
  let midnight: UnixTime

  init?(argument: String) {
    guard let midnight = UnixTime(date: Array(argument.utf8)) else { return nil }
    self.midnight = midnight
  }
}

/// A change of what root says of one user alone.
struct LevelChange {
  let user: String
  let users: UserOptions
  let store: StoreOptions

  /// `level` nil: takes back the one that `isMeant`; throws `noLevel` where there is none.
  func run(
    _ level: UserNote.Level?, in context: Context,
    undoing isMeant: (UserNote.Level?) -> Bool
  ) throws(CommandError) {
    let place = try context.store(store)
    let account = try context.account(user)
    guard account.uid != nil || users.allowMissing else { throw .noSuchUser }
    if level == nil, !isMeant(try context.note(of: account, in: place).level) { throw .noLevel }
    do throws(StoreTrouble) {
      try place.prepare()
      _ = try place.changeNote(of: account.name) { $0.level = level }
    } catch {
      throw CommandError(note: error)
    }
    context.voice(store).answer(
      .object([("user", .text(account.name.text)), ("level", fact(level))]),
      LevelChange.text(account.name.text, level))
  }

  private static func text(_ user: String, _ level: UserNote.Level?) -> String {
    switch level {
    case .required: "\(user): \(level.map(levelText) ?? ""), whatever the policy's level."
    case .exempt: "\(user): exempt, whatever the policy's level."
    case nil: "\(user): the policy's level holds."
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
  /// Trouble met with a note: what is broken in it is fixed otherwise than an enrollment.
  fileprivate init(note trouble: StoreTrouble) {
    self = trouble.isBrokenEnrollment ? .note(trouble) : .store(trouble)
  }
}
