import ArgumentParser
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

  func validate() throws {
    if yes, uid == nil { throw ValidationError("--yes needs --uid, the uid before") }
  }

  private struct Answer: Encodable {
    let user: String
    let uid: UInt32
    let from: String
    @OrNull var fromUID: UInt32?
    let isRequired: Bool
  }

  func run(in context: Context) throws(CommandError) {
    let subject = try shared.open(in: context, for: .onAccount)
    let (account, store) = (try subject.account(), subject.store)
    guard let own = account.uid else { throw .noSuchUser }
    let former =
      try from.map { name throws(CommandError) in try gone(name, context) }
      ?? account.name
    let found = try storing { () throws(StoreTrouble) in
      try store.load(stored: try store.storedName(of: former))
    }
    guard let record = found else { throw .notEnrolledBefore(former) }
    let before = record.enrollment.uid
    let isNew = former != account.name || before != own
    if isNew {
      guard uid == nil || uid == before else { throw .otherUIDBefore(former, before) }
      for line in facts(record, account) { subject.output.say(line) }
      if !yes {
        try subject.output.insist(
          "Is \(account.name.text) the person who was enrolled?",
          or: .nothingChanged)
      }
      try adopt(record, by: account, in: store)
    }
    let isRequired = try noting { () throws(StoreTrouble) in
      try store.adoptRequirement(of: former, by: account)
    }
    guard isNew || isRequired else { throw .adoptedAlready(account) }
    subject.output.answer(
      Answer(
        user: account.name.text, uid: own, from: former.text, fromUID: before,
        isRequired: isRequired),
      "The enrollment is \(account.name.text)'s now, as uid \(own).")
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

  fileprivate static func adoptedAlready(_ account: Account) -> CommandError {
    CommandError {
      Message(
        "the enrollment is of \(account.name.text) and of this uid already: nothing was changed",
        .exists, hints: [$0.command("status")])
    }
  }

  fileprivate static let changedMeanwhile = CommandError {
    Message("the enrollment was changed meanwhile: nothing was changed", .busy, hints: [$0.again()])
  }
}
