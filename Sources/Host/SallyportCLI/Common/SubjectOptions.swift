import ArgumentParser
import SallyportCore
import SallyportDoctor
import SallyportSupport
import SallyportSystem

/// The user of a verb if none is named.
protocol UnnamedUser {
  /// Whether it is the user who called sudo or doas.
  static var isCaller: Bool { get }
  /// Whether to ask first; without a terminal this fails.
  static var asks: Bool { get }
  static var help: ArgumentHelp { get }
}

/// No default: for verbs that remove something.
enum NoDefault: UnnamedUser {
  static let isCaller = false
  static let asks = false
  static let help = ArgumentHelp("The user.", valueName: "user")
}

/// The user who called sudo, after a question: for verbs that users run for themselves.
enum CallerConfirmed: UnnamedUser {
  static let isCaller = true
  static let asks = true
  static let help = ArgumentHelp(
    "The user. (default: who called sudo, after a question)", valueName: "user")
}

/// The user who called sudo: for verbs that only read.
enum Caller: UnnamedUser {
  static let isCaller = true
  static let asks = false
  static let help = ArgumentHelp("The user. (default: who called sudo)", valueName: "user")
}

/// The user: the first positional argument, or `--user`.
struct UserArgument<Unnamed: UnnamedUser>: ParsableArguments {
  @Argument(help: Unnamed.help, completion: .custom(Completions.users))
  var word: String?

  @Option(
    name: [.customLong("user"), .customShort("u")],
    help: ArgumentHelp("The same, as an option.", valueName: "user"),
    completion: .custom(Completions.users))
  var option: String?

  var name: String? { option ?? word }
}

/// An authenticator: the positional argument after the user, or `--name`.
struct AuthenticatorArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp("The authenticator's name.", valueName: "name"),
    completion: .custom(Completions.authenticators))
  var word: String?

  @Option(
    name: .customLong("name"), help: ArgumentHelp("The same, as an option.", valueName: "name"),
    completion: .custom(Completions.authenticators))
  var option: Label?
}

extension AuthenticatorArgument {
  /// The name of a new authenticator; nil, with a warning, where the plain word for it is the
  /// user's once more, as in `enroll alice alice`.
  func meant<Unnamed>(
    _ name: Label?, after user: UserArgument<Unnamed>, _ output: Output
  ) -> Label? {
    guard option == nil, let name else { return name }
    let same = [user.word, user.option, word].filter {
      $0?.utf8.elementsEqual(name.bytes) == true
    }
    guard same.count > 1 else { return name }
    let shown = printable(name.bytes, limit: 64)
    let word = shellQuoted(String(decoding: name.bytes, as: UTF8.self))
    output.warn(
      "\(shown) is taken for the user, twice; an authenticator has that name with --name \(word)")
    return nil
  }

  /// Asks, or warns, where the plain word for the name of a new authenticator is that of a person:
  /// in `enroll alice bob`, bob was probably meant to be enrolled too.
  func insist(on name: Label, of subject: Subject, asks: Bool, or consequence: Consequence)
    throws(CommandError)
  {
    guard option == nil, !subject.user.utf8.elementsEqual(name.bytes),
      let word = UserName(name.bytes), let user = (try? Accounts.find(word))?.uid,
      user == 0 || HomeAccount.people.contains(user)
    else { return }
    let whose = printable(subject.user.utf8, limit: 255)
    guard asks, subject.context.terminal.isInteractive else {
      return subject.output.warn("\(name.text) is an account, and is not enrolled by this")
    }
    try subject.output.insist(
      "\(name.text) is an account, and would be the name of an authenticator of \(whose). Go on?",
      or: consequence)
  }
}

/// The options of the verbs that are about one user.
struct SubjectOptions<Unnamed: UnnamedUser>: SharedOptions {
  @OptionGroup var argument: UserArgument<Unnamed>
  @OptionGroup var users: UserOptions
  @OptionGroup var storeOptions: StoreOptions

  func user(in context: Context) -> String? {
    argument.name ?? (Unnamed.isCaller ? context.caller : nil)
  }

  /// The user and the store that the options name.
  func open(in context: Context, for effect: VerbEffect = .onStored) throws(CommandError) -> Subject
  {
    try open(in: context, naming: [], for: effect).subject
  }

  /// As `open(in:for:)`, and the name that each pair of a positional argument and an option gives;
  /// nil if both are missing. Positional arguments are used in order for what the options leave
  /// out.
  func open(
    in context: Context, naming pairs: [(word: String?, option: Label?)],
    for effect: VerbEffect = .onStored
  ) throws(CommandError) -> (subject: Subject, names: [Label?]) {
    let words = ([argument.option == nil ? nil : argument.word] + pairs.map(\.word))
      .compactMap { $0 }
    let names = try names(typed: pairs.map(\.option), words)
    guard let user = user(in: context) else {
      _ = try context.store(storeOptions)
      throw .nobodyNamed
    }
    let subject = try subject(user, in: context)
    if argument.name == nil, Unnamed.asks { try agree(to: user, in: context) }
    return (try subject.meant(for: effect), names)
  }

  /// This user and the store. The user need not be the one that the options name.
  func subject(_ user: String, in context: Context) throws(CommandError) -> Subject {
    Subject(
      user: user, users: users, store: try context.store(storeOptions),
      isStoreNamed: storeOptions.store != nil, output: context.output(storeOptions),
      context: context)
  }

  /// As `open(in:naming:for:)`, for a verb about one authenticator.
  func open(
    in context: Context, naming authenticator: AuthenticatorArgument,
    for effect: VerbEffect = .onStored
  ) throws(CommandError) -> (subject: Subject, name: Label?) {
    let (subject, names) = try open(
      in: context, naming: [(authenticator.word, authenticator.option)], for: effect)
    return (subject, names[0])
  }

  /// Asks whether the default user is meant.
  private func agree(to user: String, in context: Context) throws(CommandError) {
    guard context.terminal.isInteractive else { throw .nobodyNamed }
    let question = "For \(printable(user.utf8, limit: 255))?"
    try context.output(storeOptions).insist(question, usually: true, or: .nothingChanged)
  }
}

/// The names that were typed as options, and in the place of those that were not the plain words in
/// turn. Throws where a word is no name, or is one too many.
func names(typed options: [Label?], _ words: [String]) throws(CommandError) -> [Label?] {
  var words = words[...]
  var names: [Label?] = []
  for option in options {
    guard option == nil, let word = words.popFirst() else {
      names.append(option)
      continue
    }
    guard let name = Label(argument: word) else { throw .notAName(word) }
    names.append(name)
  }
  if let word = words.first {
    throw CommandError {
      Message(
        "unexpected argument '\(printable(word.utf8, limit: 64))'", .usage,
        hints: ["sallyport \($0.verb) --help"])
    }
  }
  return names
}

extension Label {
  /// A name that is given now: throws where a part of it cannot be seen.
  func clear() throws(CommandError) -> Label {
    guard isClear else { throw .notAName(text) }
    return self
  }
}

extension CommandError {
  /// No user is named, and there is no default.
  static let nobodyNamed = CommandError {
    Message("no user given", .usage, hints: [$0.again(for: "NAME")])
  }

  /// No valid name for an authenticator.
  fileprivate static func notAName(_ word: String) -> CommandError {
    let shown = printable(word.utf8, limit: 64)
    return CommandError {
      Message(
        "\"\(shown)\" is not a valid name: 1 to 64 bytes of characters that can be seen", .usage,
        hints: [$0.command($0.verb, "phone")])
    }
  }
}
