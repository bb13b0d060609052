import ArgumentParser
import Glibc
import SallyportCore
import SallyportSupport
import SallyportSystem
import SallyportVerifier

struct Config: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show and change the policy of the fleet.",
    discussion: """
      It is in the database, for all verifiers, and has a serial number. sallyport.conf of a \
      verifier is read by the first init alone.
      """,
    subcommands: [ShowConfig.self, EditConfig.self, CheckConfig.self, ConfigHistory.self],
    defaultSubcommand: ShowConfig.self)
}

struct ShowConfig: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Print the policy as it was typed.")

  @OptionGroup var common: Common

  @Argument(help: "The number of an earlier policy, from config history (default: the newest).")
  var serial: UInt64?

  func run() throws {
    try common.actAsOwner()
    let database = try common.openForPolicy()
    let found = try asking { () throws(DatabaseFault) in
      guard let serial else { return try database.newestPolicy() }
      return try database.policyHistory().first { $0.serial == serial }
    }
    guard let found else {
      throw Failure(
        serial.map { "there is no policy \($0)\nhint: sallyport-verifier config history" }
          ?? Config.none)
    }
    print(String(decoding: found.text, as: UTF8.self), terminator: "")
  }
}

struct ConfigHistory: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "history", abstract: "List the policies, with who stored each, and when.")

  @OptionGroup var common: Common

  func run() throws {
    try common.actAsOwner()
    let database = try common.openForPolicy()
    let all = try asking { () throws(DatabaseFault) in try database.policyHistory() }
    for one in all {
      let at = CalendarDate(UnixTime(one.at), inUTC: true)?.internetText ?? "?"
      print("\(one.serial)  \(at)  \(String(decoding: one.author, as: UTF8.self))")
    }
    if all.isEmpty { throw Failure(Config.none) }
  }
}

struct CheckConfig: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check", abstract: "Say whether a text can be the policy of the fleet.")

  @OptionGroup var common: Common

  @Argument(help: "A file, or - for standard input.")
  var file: String

  func run() throws {
    let text = try policyText(file)
    if let flaw = StoredPolicy.flaw(of: text, named: file) { throw Failure(flaw) }
    print("\(file) can be used")
  }
}

struct EditConfig: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "edit", abstract: "Edit the policy, and check it before it is stored.",
    discussion: """
      Runs $VISUAL, $EDITOR, editor or vi on a copy, or stores a file. A text that is not stored, \
      as it has an error or as somebody else was faster, stays in the copy.
      """)

  @OptionGroup var common: Common

  @Argument(help: "Store this file, or - for standard input, without an editor.")
  var file: String?

  @Option(help: "Store it only if the newest policy has this number (config history).")
  var after: UInt64?

  func run() throws {
    let given = try file.map { try policyText($0) }
    try common.actAsOwner()
    let database = try common.openForPolicy()
    let former = try asking { () throws(DatabaseFault) in try database.newestPolicy() }
    guard let former else { throw Failure(Config.none) }
    if let after, after != former.serial {
      throw Failure("the newest policy has the number \(former.serial): nothing was stored")
    }
    var (text, name, isCopy) = (given ?? [], file ?? "", false)
    if given == nil {
      name = try copy(of: former)
      text = try edited(name)
      isCopy = true
    }
    if text == former.text {
      if isCopy { removeFile(name) }
      return print("nothing was changed")
    }
    let kept = isCopy ? "\nhint: your text is kept: sallyport-verifier config edit \(name)" : ""
    if let flaw = StoredPolicy.flaw(of: text, named: name) {
      throw Failure("\(flaw): nothing was stored\(kept)")
    }
    let done = try asking { () throws(DatabaseFault) in
      try database.store(policy: text, by: author(), after: former)
    }
    try tell(done, kept)
    if isCopy { removeFile(name) }
  }

  private func tell(_ done: Database.PolicyStored, _ kept: String) throws {
    switch done {
    case .done(let serial): print("stored as policy \(serial); the verifiers go by it within 2 s")
    case .late(let serial):
      throw Failure(
        "somebody else has stored policy \(serial): nothing was stored\(kept), after you have "
          + "put in what sallyport-verifier config show has")
    case .unread(let names): throw Failure(unreadPolicy(by: names) + kept)
    }
  }

  /// Beside the verifier's own files: nobody else can write there.
  private func copy(of policy: StoredPolicy) throws -> String {
    let path = "\(common.directory)/sallyport.conf.edit-\(policy.serial)-\(getpid())"
    do throws(SystemError) {
      try makeFile(path, policy.text)
    } catch {
      throw Failure("\(path): \(errnoDescription(error.number))")
    }
    return path
  }

  private func edited(_ path: String) throws -> [UInt8] {
    let kept = "nothing was stored; the text is in \(path)"
    switch Editor.run(path) {
    case .done: return try policyText(path)
    case .failed(let status): throw Failure("the editor exited with status \(status): \(kept)")
    case .cannotRun(let number): throw Failure("/bin/sh: \(errnoDescription(number)): \(kept)")
    }
  }
}

extension Config {
  static let none =
    "the fleet has no policy yet: its verifiers go by their own sallyport.conf\n"
    + "hint: sallyport-verifier migrate --finish stores it"
}

func unreadPolicy(by names: [String]) -> String {
  "verifiers that may not be able to read it are alive: \(names.joined(separator: ", ")): "
    + "nothing was stored\nhint: upgrade or stop each of them; one that was silent for 10 seconds "
    + "does not count"
}

/// Who types the command, for the history.
func author() -> [UInt8] {
  let user = environment("SUDO_USER") ?? "root"
  let name = "\(user)@\(HostName.label.text)"
  return name.utf8.prefix(100).map { (0x21...0x7e).contains($0) ? $0 : UInt8(ascii: "?") }
}

/// One byte more than a policy may have, so that a longer one is told from it.
func policyText(_ file: String) throws -> [UInt8] {
  try fileText(file, atMost: StoredPolicy.longest + 1)
}

/// The first bytes of a file, `most` of them; for "-", of standard input.
func fileText(_ file: String, atMost most: Int) throws -> [UInt8] {
  let name = file == "-" ? "/dev/stdin" : file
  return try rethrow(
    { () throws(SystemError) in try OpenFile(name, O_RDONLY).bytes(most) },
    as: { Failure("\(printable(file.utf8)): \(errnoDescription($0.number))") })
}

extension Common {
  func openForPolicy() throws -> Database {
    let database = try open(name: "config") { _, _ in }
    try asking { () throws(DatabaseFault) in try database.beginCommand() }
    return database
  }
}
