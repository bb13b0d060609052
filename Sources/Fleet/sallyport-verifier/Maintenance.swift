import ArgumentParser
import SallyportCore
import SallyportLogin
import SallyportVerifier

struct Distrust: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Invalidate all codes up to now, after a restore.")

  @OptionGroup var common: Common

  func run() throws {
    try common.actAsOwner()
    let database = try common.open(name: "distrust") { _, _ in }
    try asking { () throws(DatabaseFault) in
      try database.beginCommand()
      try database.distrust()
    }
    print("codes up to now count as used; backup codes work again in a quarter of an hour")
  }
}

struct AdoptDatabase: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "adopt-database",
    abstract: "Work with another database from now on, and invalidate all codes up to now.",
    discussion: """
      A verifier refuses all logins over a database that is not the one it has worked with, such as
      one that was made again with the same key. Where it is the right one, on each verifier:
        sallyport-verifier adopt-database
      """)

  @OptionGroup var common: Common

  func run() throws {
    try common.actAsOwner()
    let database = try common.open(name: "adopt", isBound: true) { _, _ in }
    try asking { () throws(DatabaseFault) in
      try database.beginCommand()
      try database.adopt()
    }
    print("this verifier works with this database; codes up to now count as used")
  }
}

struct ForgetPerson: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "forget-person", abstract: "Take a person's name from the events.",
    discussion: """
      It needs the role that owns the tables (--database). It refuses who is enrolled: the next
      login would be an event with the name again, and hosts give-up would not find it.
      """)

  @OptionGroup var common: Common

  @Argument(help: "The name, as it was typed in logins.")
  var name: String

  func run() throws {
    try common.actAsOwner()
    let (words, bytes) = (try common.words(), Array(name.utf8))
    let database = try common.open(name: "forget-person") { _, line in
      tell(String(decoding: line.bytes, as: UTF8.self))
    }
    let isEnrolled = try asking { () throws(DatabaseFault) in
      try database.beginCommand()
      return try database.isEnrolled(bytes)
    }
    if isEnrolled {
      throw Failure(
        "\(printable(name.utf8)) is enrolled: nothing was changed\n"
          + "hint: sallyport unenroll \(printable(name.utf8)), on a host with changes")
    }
    let count = try asking { () throws(DatabaseFault) in
      try Database.forgetPerson(words, bytes)
    }
    print("\(count) events of \(printable(name.utf8)) have no name now")
  }
}

struct Migrate: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Update the tables to this version, add days of events, or delete old ones.",
    discussion: """
      An upgrade, while logins go on:
        sallyport-verifier migrate --database WORDS      once, as a role that owns the tables
        (the new package on each verifier, one after the other)
        sallyport-verifier migrate --finish      once, when none of the former version is left
      Events have a part of their table for each day. Each migrate adds days up to 30 after today.
      """)

  @OptionGroup var common: Common

  @Flag(help: "From now on write what verifiers of the former version cannot read.")
  var finish = false

  @Option(
    help: ArgumentHelp(
      "With --finish: the fleet's policy from now on, where the verifiers' sallyport.conf differ.",
      valueName: "file"))
  var policy: String?

  @Option(
    help: ArgumentHelp(
      "Delete the days of events that are older than this, such as 90d, as a role that owns them.",
      valueName: "days"))
  var prune: String?

  func run() throws {
    if finish, prune != nil { throw ValidationError("--finish and --prune do not go together") }
    if policy != nil, !finish { throw ValidationError("--policy needs --finish") }
    let days = try prune.map(days)
    let text = try policy.map { try policyText($0) }
    try common.actAsOwner()
    if let days {
      let words = try common.words()
      let gone = try asking { () throws(DatabaseFault) in
        try Database.prune(words, days: days)
      }
      print("\(gone) \(gone == 1 ? "day" : "days") of events deleted")
    } else if finish {
      try end(text)
    } else {
      try begin()
    }
  }

  private func days(_ text: String) throws -> Int {
    guard text.hasSuffix("d"), let days = Int(text.dropLast()), (1...36_500).contains(days) else {
      throw Failure("--prune \(text): not a number of days, such as 90d")
    }
    return days
  }

  private func begin() throws {
    let words = try common.words()
    let done = try asking { () throws(DatabaseFault) in try Database.migrate(words) }
    switch done {
    case .done: print("the tables have this version; verifiers of the former one still work")
    case .wasDone: print("the tables have this version already")
    case .other(let number):
      throw Failure(
        "the tables have schema \(number), this version has \(Schema.number): "
          + "they cannot be updated")
    }
  }

  private func end(_ given: [UInt8]?) throws {
    let database = try common.open(name: "migrate") { _, _ in }
    let former = try asking { () throws(DatabaseFault) in try database.newestPolicy() }
    if let former, given != nil {
      throw Failure(
        "the fleet has policy \(former.serial)\nhint: sallyport-verifier config edit FILE")
    }
    let text = former == nil ? try onePolicy(given, database) : nil
    let done = try asking { () throws(DatabaseFault) in try database.finishMigration() }
    switch done {
    case .done: print("verifiers of the former version do not start any more")
    case .wasDone: print("finished before")
    case .older(let names):
      throw Failure(
        "verifiers of an older version are alive: \(names.joined(separator: ", "))\n"
          + "hint: upgrade or stop each of them; one that was silent for 10 seconds does not count")
    }
    if let text { try store(text, in: database) }
  }

  /// What all verifiers have in their files. Of two no one is stored unless it is named.
  private func onePolicy(_ given: [UInt8]?, _ database: Database) throws -> [UInt8] {
    let path = policy ?? common.directory + "/sallyport.conf"
    let text = try given ?? policyText(path)
    if let flaw = StoredPolicy.flaw(of: text, named: path) { throw Failure(flaw) }
    if given != nil { return text }
    let own = database.policy.told.split(separator: UInt8(ascii: " ")).first ?? []
    let files = try asking { () throws(DatabaseFault) in try database.policyFiles() }
    let others = files.filter { !$0.digest.isEmpty && Array($0.digest.utf8) != Array(own) }
    guard others.isEmpty else {
      throw Failure(
        "\(path) here differs from that of the verifiers "
          + "\(others.map(\.name).joined(separator: ", ")): nothing was changed\n"
          + "hint: compare them; then sallyport-verifier migrate --finish --policy FILE, with the "
          + "one that all go by from then on")
    }
    return text
  }

  private func store(_ text: [UInt8], in database: Database) throws {
    let done = try asking { () throws(DatabaseFault) in
      try database.store(policy: text, by: author(), after: nil)
    }
    switch done {
    case .done:
      print("the policy is in the database: sallyport-verifier config edit changes it")
    case .late: break
    case .unread(let names):
      throw Failure(unreadPolicy(by: names) + "; then migrate --finish again")
    }
  }
}
