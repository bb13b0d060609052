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
      codes, what was used of them, and wrong codes. An exemption and remembered addresses are \
      not kept.
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
    if yes, uid == nil, all == nil {
      throw ValidationError("--yes needs --uid, the uid before; without --yes it is shown")
    }
  }

  private struct Answer: Encodable {
    let user: String
    let uid: UInt32
    let from: String
    @OrNull var fromUID: UInt32?
  }

  private struct Answers: Encodable {
    let users: [Answer]
    /// The names of accounts whose own the enrollment is.
    let already: [String]
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
      for line in lines { output.say(line.text(in: context)) }
      let people = counted(lines.count, "line")
      try output.insist("\(people). Is each of them the person of before?", or: .nothingChanged)
    }
    var (done, already, failed): ([Answer], [String], [String]) = ([], [], [])
    for line in lines {
      do throws(CommandError) {
        let subject = try shared.subject(line.name, in: context)
        if let answer = try adopt(
          subject, from: line.former, line.uid, asks: false, among: lines)
        {
          done.append(answer)
        } else {
          already.append(line.name)
        }
      } catch {
        let invocation = Invocation(
          verb: "adopt", user: line.name, store: shared.storeOptions.store)
        failed.append("\(shownPath(path)):\(line.number): \(error.message(invocation).text)")
      }
    }
    for text in failed { context.terminal.write(Array("sallyport: \(text)\n".utf8), to: .aside) }
    output.answer(
      Answers(users: done, already: already, failed: failed),
      "\(counted(done.count, "enrollment")) moved, \(already.count) needed no move, "
        + "\(failed.count) failed.")
    return (failed.isEmpty ? Sysexit.done : .badData).rawValue
  }

  /// nil: the enrollment is the account's already. `lines`: of the file that has this one.
  private func adopt(
    _ subject: Subject, from: String?, _ uid: UInt32?, asks: Bool, among lines: [AdoptedLine] = []
  ) throws(CommandError) -> Answer? {
    let (account, store) = (try subject.account(), subject.store)
    guard let own = account.uid else { throw .noSuchUser }
    try storing { () throws(StoreTrouble) in try subject.context.prepare(store) }
    let former =
      try from.map { name throws(CommandError) in try gone(name, account, subject.context) }
      ?? account.name
    guard let record = try self.record(of: former, for: account, in: store) else {
      if former != account.name, try isAdopted(account, in: store) { return nil }
      let error = CommandError.notEnrolledBefore(
        former, inFleet: subject.context.fleet?.isHost == true)
      throw former == account.name ? error.hinting(at: account, in: store) : error
    }
    if former != account.name, try isEnrolled(account, in: store) { throw .enrolledHere }
    let (user, before) = (record.enrollment.user, record.enrollment.uid)
    if former == account.name, before == own { return nil }
    // Else it was cut short.
    if user != account.name || before != own {
      guard uid == nil || before == nil || uid == before else {
        throw .otherUIDBefore(former, before)
      }
      let number = before ?? uid
      let holder = try holder(of: number, besides: account)
      if let holder, !asks, let number, try !isAnother(holder, than: former, by: lines, store) {
        throw .uidHeld(number, printable(holder, limit: 255), former)
      }
      if asks {
        try ask(record, account, heldBy: holder.map { printable($0, limit: 255) }, subject.output)
      }
    }
    let facts =
      [Act.Fact("from", former.bytes)] + (before.map { [Act.Fact("uid", "\($0)".utf8)] } ?? [])
    let isDone = { (done: Transaction<Void>) in if case .committed = done { true } else { false } }
    let done = try subject.recorder.record(.adopt, for: account.name, facts, isDone: isDone) {
      () throws(CommandError) in
      try storing { () throws(StoreTrouble) in
        try store.adopt(record, of: former, by: account)
      }
    }
    guard case .committed = done else { throw .changedMeanwhile }
    return Answer(user: account.name.text, uid: own, from: former.text, fromUID: before)
  }

  private func record(of former: UserName, for account: Account, in store: Store)
    throws(CommandError) -> Record?
  {
    do throws(StoreTrouble) {
      return try store.record(of: former, for: account)
    } catch {
      throw CommandError {
        var invocation = $0
        // What fixes it is about the enrollment's directory.
        invocation.user = former.typedOrShown
        return Message(error, at: invocation)
      }
    }
  }

  /// The name of another account that has the uid before, whatever name that is.
  private func holder(of uid: UInt32?, besides account: Account) throws(CommandError) -> [UInt8]? {
    guard let uid else { return nil }
    let found = try storing { () throws(StoreTrouble) in try Accounts.name(of: uid) }
    return found == account.name.bytes ? nil : found
  }

  /// Whether a line says of the account which other enrollment is its, and that one agrees: so the
  /// account is not the person enrolled as `former`, and numbers may have been exchanged.
  private func isAnother(
    _ holder: [UInt8], than former: UserName, by lines: [AdoptedLine], _ store: Store
  ) throws(CommandError) -> Bool {
    let own = lines.filter { Array($0.name.utf8) == holder }
    guard own.count == 1, let line = own.first, let holder = UserName(holder),
      let name = UserName(Array((line.former ?? line.name).utf8)), name != former
    else { return false }
    return try storing { () throws(StoreTrouble) in
      let holder = try Accounts.find(holder)
      var record = try store.record(of: name, for: holder)
      // Once it is adopted, it is in the account's name.
      if record == nil { record = try store.record(of: holder.name, for: holder) }
      guard let uid = record?.enrollment.uid else { return false }
      return uid == line.uid || uid == holder.uid
    }
  }

  /// Whether there is an enrollment under its name, whatever is in it.
  private func isEnrolled(_ account: Account, in store: Store) throws(CommandError) -> Bool {
    try storing { () throws(StoreTrouble) in
      let own = try store.storedName(of: account.name).directory
      return try store.enrolledNames().contains { $0.directory == own }
    }
  }

  /// Whether the account has an enrollment, where the name before has none any more.
  private func isAdopted(_ account: Account, in store: Store) throws(CommandError) -> Bool {
    try storing { () throws(StoreTrouble) in
      let found = try store.load(stored: try store.storedName(of: account.name))
      return found?.enrollment.uid == account.uid
    }
  }

  /// The name before. Throws where another account has it: two people would share codes.
  private func gone(_ name: String, _ account: Account, _ context: Context) throws(CommandError)
    -> UserName
  {
    let other = try context.account(name)
    if let uid = other.uid, other.name != account.name { throw .stillThere(other.name, uid) }
    return UserName(Array(name.utf8)) ?? other.name
  }

  private func ask(
    _ record: Record, _ account: Account, heldBy holder: String?, _ output: Output
  ) throws(CommandError) {
    let enrollment = record.enrollment
    let day = CalendarDate(enrollment.created).map { " on \($0.dayText)" } ?? ""
    let before = enrollment.uid.map { "uid \($0)" } ?? "any uid"
    output.say("Enrolled\(day): \(enrollment.user.text), \(before).")
    output.say("The account now: \(account.name.text)\(account.uid.map { ", uid \($0)" } ?? "").")
    if let holder { output.say("Of \(before) is \(holder) now: perhaps the person meant.") }
    output.say("A name or a uid may be another person's by now.")
    try output.insist(
      "Is \(account.name.text) the person who was enrolled?", or: .nothingChanged,
      unless: (uid == nil ? ["--uid", "UID"] : []) + ["--yes"])
  }
}

extension CommandError {
  fileprivate static func notEnrolledBefore(_ name: UserName, inFleet: Bool) -> CommandError {
    let place = inFleet ? " by the files of this machine" : ""
    let more = inFleet ? ["sallyport-fleet(1), MOVING: of people of the fleet"] : []
    return CommandError(.notEnrolled) { _ in
      Message(
        "\(name.text) is not enrolled\(place)", .noInput, hints: ["sallyport list"] + more)
    }
  }

  fileprivate static func stillThere(_ name: UserName, _ uid: UInt32) -> CommandError {
    CommandError { _ in
      Message(
        "\(name.text) is an account still (uid \(uid)): two accounts cannot have one enrollment",
        .exists)
    }
  }

  fileprivate static func uidHeld(_ uid: UInt32, _ holder: String, _ former: UserName)
    -> CommandError
  {
    CommandError {
      Message(
        "uid \(uid) is \(holder)'s now, who may be the person that was enrolled as "
          + "\(former.text): nothing was changed", .exists,
        hints: [$0.command("adopt", remark: "asks")])
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

  fileprivate static let enrolledHere = CommandError {
    Message(
      "\($0.who) is enrolled already: nothing was changed", .exists,
      hints: [$0.command("unenroll", "--force", remark: "then adopt again")])
  }

  fileprivate static let changedMeanwhile = CommandError {
    Message("the enrollment was changed meanwhile: nothing was changed", .busy, hints: [$0.again()])
  }
}
