import ArgumentParser
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportSupport
import SallyportSystem

/// `sallyport adopt`
struct Adopt: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Keep an enrollment whose account got another uid or name.",
    discussion: """
      After usermod -u or -l, or on a new server, codes are refused: the enrollment is of another \
      uid or name. This gives it to the account, if it is the same person: authenticators, backup \
      codes, what was used of them, and wrong codes. An exemption and remembered addresses stay \
      behind.
      """)

  @OptionGroup var shared: SubjectOptions<NoDefault>

  @Option(
    help: ArgumentHelp("The name before, of which there is no account now.", valueName: "user"))
  var from: String?

  @Option(help: ArgumentHelp("The uid before; with --yes it is needed.", valueName: "n"))
  var uid: UInt32?

  @Flag(help: "Do not ask whether it is the same person.")
  var yes = false

  @Option(
    help: ArgumentHelp(
      "Many: each line of this file is NAME:BEFORE:UID, with the name and uid before; BEFORE is "
        + "empty where the name is the same.", valueName: "file"),
    completion: .file())
  var all: String?

  func validate() throws {
    if all != nil, shared.argument.name != nil || from != nil || uid != nil {
      throw ValidationError("--all takes no user, no --from and no --uid")
    }
    if yes, uid == nil, all == nil { throw ValidationError("--yes needs --uid, the uid before") }
  }

  private struct Answer: Encodable {
    let user: String
    let uid: UInt32
    let from: String
    @OrNull var fromUID: UInt32?
    let isRequired: Bool
  }

  private struct Answers: Encodable {
    let users: [Answer]
    /// As `FILE:LINE: why`.
    let failed: [String]
  }

  func run(in context: Context) throws(CommandError) { _ = try status(in: context) }

  func status(in context: Context) throws(CommandError) -> Int32 {
    if let all { return try adoptAll(in: all, context) }
    let subject = try shared.open(in: context, for: .onAccount)
    guard let answer = try adopt(subject, from: from, uid, asks: !yes) else {
      throw .adoptedAlready
    }
    subject.output.answer(
      answer, "The enrollment is \(answer.user)'s now, as uid \(answer.uid).")
    return Sysexit.done.rawValue
  }

  /// Those that fail are told, and the others are done: the same file can be used again.
  private func adoptAll(in path: String, _ context: Context) throws(CommandError) -> Int32 {
    let lines = try AdoptedLine.all(in: path)
    let output = context.output(shared.storeOptions)
    if !yes {
      let people = counted(lines.count, "line")
      try output.insist("\(people). Is each of them the person of before?", or: .nothingChanged)
    }
    var (done, failed): ([Answer], [String]) = ([], [])
    for line in lines {
      do throws(CommandError) {
        let subject = try shared.subject(line.name, in: context)
        if let answer = try adopt(subject, from: line.former, line.uid, asks: false) {
          done.append(answer)
        }
      } catch {
        let invocation = Invocation(
          verb: "adopt", user: line.name, store: shared.storeOptions.store)
        failed.append("\(shownPath(path)):\(line.number): \(error.message(invocation).text)")
      }
    }
    for text in failed { context.terminal.write(Array("sallyport: \(text)\n".utf8), to: .aside) }
    output.answer(
      Answers(users: done, failed: failed),
      "\(counted(done.count, "enrollment")) moved, \(failed.count) not.")
    return (failed.isEmpty ? Sysexit.done : .badData).rawValue
  }

  /// nil: the enrollment is the account's already.
  private func adopt(_ subject: Subject, from: String?, _ uid: UInt32?, asks: Bool)
    throws(CommandError) -> Answer?
  {
    let (account, store) = (try subject.account(), subject.store)
    guard let own = account.uid else { throw .noSuchUser }
    let former =
      try from.map { name throws(CommandError) in try gone(name, subject.context) }
      ?? account.name
    let found = try storing { () throws(StoreTrouble) in
      try store.load(stored: try store.storedName(of: former))
    }
    guard let record = found else {
      if former != account.name, try isAdopted(account, in: store) { return nil }
      throw .notEnrolledBefore(former)
    }
    let before = record.enrollment.uid
    let isNew = former != account.name || before != own
    if isNew {
      guard uid == nil || uid == before else { throw .otherUIDBefore(former, before) }
      if asks {
        for line in facts(record, account) { subject.output.say(line) }
        try subject.output.insist(
          "Is \(account.name.text) the person who was enrolled?", or: .nothingChanged)
      }
      try adopt(record, by: account, in: store)
    }
    let isRequired = try noting { () throws(StoreTrouble) in
      try store.adoptRequirement(of: former, by: account)
    }
    guard isNew || isRequired else { return nil }
    return Answer(
      user: account.name.text, uid: own, from: former.text, fromUID: before,
      isRequired: isRequired)
  }

  /// Whether the account has an enrollment, where the name before has none any more.
  private func isAdopted(_ account: Account, in store: Store) throws(CommandError) -> Bool {
    try storing { () throws(StoreTrouble) in
      let found = try store.load(stored: try store.storedName(of: account.name))
      return found?.enrollment.uid == account.uid
    }
  }

  /// The name before. Throws where there is an account of that name: two people would share codes.
  private func gone(_ name: String, _ context: Context) throws(CommandError) -> UserName {
    let other = try context.account(name)
    if let uid = other.uid { throw .stillThere(other.name, uid) }
    return other.name
  }

  private func facts(_ record: Record, _ account: Account) -> [String] {
    let enrollment = record.enrollment
    let day = CalendarDate(enrollment.created).map { " on \($0.dayText)" } ?? ""
    let before = enrollment.uid.map { "uid \($0)" } ?? "any uid"
    let now = account.uid.map { "uid \($0)" } ?? "no uid"
    return [
      "Enrolled\(day): \(enrollment.user.text), \(before).",
      "The account now: \(account.name.text), \(now).",
      "A name or a uid may be another person's by now.",
    ]
  }

  private func adopt(_ record: Record, by account: Account, in store: Store) throws(CommandError) {
    let done = try storing { () throws(StoreTrouble) in try store.adopt(record, by: account) }
    guard case .committed = done else { throw .changedMeanwhile }
  }
}

extension CommandError {
  fileprivate static func notEnrolledBefore(_ name: UserName) -> CommandError {
    CommandError(.notEnrolled) { _ in
      Message("\(name.text) is not enrolled", .noInput, hints: ["sallyport list"])
    }
  }

  fileprivate static func stillThere(_ name: UserName, _ uid: UInt32) -> CommandError {
    CommandError { _ in
      Message(
        "\(name.text) is an account still (uid \(uid)): two accounts cannot have one enrollment",
        .exists)
    }
  }

  fileprivate static func otherUIDBefore(_ name: UserName, _ uid: UInt32?) -> CommandError {
    CommandError { _ in
      Message(
        "the enrollment of \(name.text) is of \(uid.map { "uid \($0)" } ?? "any uid"), not of the "
          + "uid that was given: nothing was changed", .noUser)
    }
  }

  fileprivate static let adoptedAlready = CommandError {
    Message(
      "the enrollment of \($0.who) is of this account already: nothing was changed", .exists,
      hints: [$0.command("status")])
  }

  fileprivate static let changedMeanwhile = CommandError {
    Message("the enrollment was changed meanwhile: nothing was changed", .busy, hints: [$0.again()])
  }
}
