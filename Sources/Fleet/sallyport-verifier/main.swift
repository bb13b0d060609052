import ArgumentParser
import CService
import FleetTransport
import Glibc
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem
import SallyportVerifier

/// The verifier of a fleet.
struct Command: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sallyport-verifier",
    abstract: "Check the codes of a fleet of hosts, over PostgreSQL.",
    subcommands: [
      Init.self, Run.self, Status.self, Invite.self, FleetHosts.self, Revoke.self, Key.self,
      Config.self, Distrust.self, AdoptDatabase.self, Migrate.self, ForgetPerson.self,
      Backup.self,
    ])
}

struct Common: ParsableArguments {
  @Option(
    help: "Connection string of the database: \"host=… dbname=…\" or a URI (default: as for init).")
  var database: String?

  @Option(help: "Directory of key and sallyport.conf.")
  var directory = "/etc/sallyport-verifier"

  var keyFile: String { directory + "/key" }

  var policy: FleetPolicy { FleetPolicy(in: directory) }
}

struct Init: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Make the key, and the tables in the database.")

  @OptionGroup var common: Common

  func run() throws {
    try common.actAsOwner()
    let words = try common.words()
    try common.makeDirectory()
    let isNew = try makeFile(common.keyFile) { (path) throws(PrivateFile.Fault) in
      try FleetKey.make(at: path)
    }
    try makePolicy()
    let key = try common.readKey()
    let policy = try firstPolicy()
    let made = try asking { () throws(DatabaseFault) in
      try Database.makeSchema(words, key: key, policy: policy)
    }
    switch made {
    case .former:
      throw Failure(
        "the tables have the former version\n"
          + "hint: sallyport-verifier migrate  # as a role that owns them")
    case .other(let number):
      throw Failure(
        "the tables have schema \(number), this version has \(Schema.number)\n"
          + (number < Schema.number
            ? "hint: tables of a preview cannot be updated: use another database"
            : "hint: install a newer sallyport-verifier"))
    case .noRole: throw Failure("the role sallyport_verifier does not exist\n" + Self.hint)
    case .new: print("made the tables")
    case .wasThere: print("the tables exist")
    }
    let database = try common.open(name: "init") { _, line in
      ServiceLog.fatal(String(decoding: line.bytes, as: UTF8.self), of: "sallyport-verifier")
    }
    try asking { () throws(DatabaseFault) in try database.beginCommand() }
    do throws(StoreTrouble) {
      try FleetStore(database, Event(on: bytes(of: "init")), uid: nil).makeDecoys()
    } catch {
      throw Failure("the decoys were not made")
    }
    try common.settle(words)
    let hasNewIdentity = try makeFile(common.pathOfIdentity) { (path) throws(PrivateFile.Fault) in
      try Identity.make(at: path)
    }
    if hasNewIdentity { print("made \(common.pathOfIdentity)") }
    print("pin of the verifiers: \(try common.readIdentity().pin.hex)")
    print(isNew ? "made \(common.keyFile)" : "ready")
    try tellOfPolicy(database, policy)
    if !common.hasCopy { tell(Self.noCopy) }
  }

  /// Whether it is a new one.
  private func makeFile(_ path: String, _ make: (String) throws(PrivateFile.Fault) -> Void) throws
    -> Bool
  {
    do throws(PrivateFile.Fault) {
      try make(path)
      return true
    } catch {
      guard error == .exists else { throw Failure(error.sentence(path)) }
      return false
    }
  }

  /// What the tables are made with, where there are none.
  private func firstPolicy() throws -> StoredPolicy {
    let path = common.directory + "/sallyport.conf"
    let text = try policyText(path)
    if let flaw = StoredPolicy.flaw(of: text, named: path) { throw Failure(flaw) }
    let now = try Clock.now()
    return StoredPolicy(serial: 1, at: now.seconds, author: author(), text: text)
  }

  private func tellOfPolicy(_ database: Database, _ own: StoredPolicy) throws {
    let there = try asking { () throws(DatabaseFault) in try database.newestPolicy() }
    guard let there else { return tell(Config.none) }
    if there.text == own.text { return }
    tell(
      "sallyport.conf here is not used: the fleet has policy \(there.serial)\n"
        + "hint: sallyport-verifier config show")
  }

  private static let noCopy = """
    no copy of the keys was checked; without one, a lost disk of this machine loses everybody's \
    enrollment
    hint: sallyport-verifier key show > FILE      then: sallyport-verifier key check FILE
    """

  private static let hint =
    "hint: CREATE ROLE sallyport_verifier LOGIN PASSWORD 'PASSWORD' CONNECTION LIMIT 48; "
    + "GRANT pg_read_all_stats TO sallyport_verifier;"

  private func makePolicy() throws {
    let path = common.directory + "/sallyport.conf"
    let text = "# The policy of the fleet (sallyport.conf(5)). A host's can only be stricter.\n"
    do throws(SystemError) {
      try SallyportSupport.makeFile(path, mode: 0o644, Array(text.utf8))
    } catch {
      if error.number != EEXIST { throw Failure("\(path): \(errnoDescription(error.number))") }
    }
  }
}

struct Run: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Answer hosts, in the foreground, until SIGTERM.")

  @OptionGroup var common: Common

  @Option(help: "Listen to hosts here: a numeric address and a port.")
  var listen = "[::]:\(VerifierAddress.defaultPort)"

  @Option(help: "Name of this verifier in the fleet (default: the host's name).")
  var name = HostName.label.text

  @Option(help: "How many wrong codes a host may send in a day, where nobody logged in of late.")
  var hostWrongCodes = LoginHandler.wrongCodes

  @Option(help: "Write counters to this file, for node_exporter's textfile collector.")
  var metrics: String?

  /// As many as the unit allows.
  private static let descriptors: Int32 = 65_536

  func run() throws {
    try common.actAsOwner()
    ServiceLog.open(as: "sallyport-verifier")
    let descriptors: Int32
    do throws(ServiceError) {
      descriptors = try ServiceError.check(service_harden(Self.descriptors), "setrlimit")
      try ServiceError.check(service_hold_signals(), "sigprocmask")
      try prepareForService()
    } catch {
      throw Failure(error.text)
    }
    let database = try common.open(name: name, isBound: true) { ServiceLog.write($0, $1) }
    try asking { () throws(DatabaseFault) in try database.begin() }
    if let flaw = policy(of: database).flaw { ServiceLog.write(.error, flaw) }
    do {
      try database.watch()
      if let metrics { try database.writeMetrics(to: metrics) }
      let server = try serve(database, ConnectionLimits(descriptors: Int(descriptors)))
      ServiceLog.info("started: listens on \(server.address.text)")
      service_wait_for_end()
      let isDone = server.stop()
      if isDone { database.leave() }
      database.writeCounts()
      ServiceLog.info(isDone ? "stopped" : "stopped, with questions unanswered")
    } catch {
      throw (error as? ServiceError).map { Failure($0.text) } ?? error
    }
    // Not by way of libcrypto's own end, under the thread that still waits.
    _exit(0)
  }

  private func policy(of database: Database) -> FleetPolicy {
    FleetPolicy(in: common.directory, stored: database.policy)
  }

  private func serve(_ database: Database, _ limits: ConnectionLimits) throws -> FleetServer {
    guard let address = VerifierAddress(listen) else {
      throw Failure("--listen \(listen): not a numeric address with a port, such as [::]:7353")
    }
    let identity = try common.readIdentity()
    let (router, seals) = try router(database, identity)
    if !address.isAny { say(address, to: database) }
    return try FleetServer(
      on: address, identity: identity, limits: limits, seals: seals,
      standing: { router.standing(of: $0) },
      handler: { router.read($0, $1, $2, arrived: $3) })
  }

  private func router(_ database: Database, _ identity: Identity) throws
    -> (FrameRouter, SealedHosts)
  {
    guard let name = Label(Array(name.utf8)), let now = try? Clock.now() else {
      throw Failure("--name \(name): not a name of 1 to 64 printable characters")
    }
    let revocations = try using(common.pathOfRevoked) { (path) throws(PrivateFile.Fault) in
      try Revocations(at: path, key: database.key)
    }
    try asking { () throws(DatabaseFault) in try revocations.begin(by: database) }
    let hosts = Hosts(database, revocations)
    try hosts.keep()
    try database.keepKeys(RevocationFile(common.pathOfRevoked, key: database.key))
    let seals = SealedHosts(database, hosts, revocations)
    try seals.keep()
    let policy = policy(of: database)
    let questions = LoginHandler(database, policy, wrongCodes: hostWrongCodes)
    try questions.keepCounts()
    let router = FrameRouter(
      hosts, join: JoinHandler(database, revocations, pins: [identity.pin]),
      [
        .question: questions,
        .ping: PingHandler(database),
        .reserve: ReserveHandler(database, questions.logins, policy, revocations: revocations),
        .status: StatusHandler(database, verifier: name, started: now),
        .management: ManagementHandler(database, policy),
        .keys: KeysHandler(seals),
      ])
    return (router, seals)
  }

  /// For tokens, and hosts that join. They can be told by hand as well.
  private func say(_ address: VerifierAddress, to database: Database) {
    do throws(DatabaseFault) {
      try database.listens(at: address.text)
    } catch {
      ServiceLog.info("this verifier's address was not stored in the database: \(error.text)")
    }
  }

  private func prepareForService() throws(ServiceError) {
    do throws(CryptoError) { try prepareCrypto() } catch { throw .noCrypto }
  }
}

// MARK: what they have in common

/// A sentence for people.
struct Failure: Error, CustomStringConvertible {
  let description: String

  init(_ text: String) { description = text }
}

extension DatabaseFault {
  /// What happened, and what to do about it on a line of its own.
  var sentence: String { "the database: " + text + hint }

  private var hint: String {
    guard case .refused(let state, _) = self else {
      guard text.contains("no password supplied") else { return "" }
      return """

        hint: passfile=FILE in the words, a file that the owner of the directory can read, and \
        nobody else
        """
    }
    switch state {
    case "42501":
      return """

        hint: sallyport-verifier init --database 'WORDS user=sallyport_owner'      that role makes \
        the tables, and gives verifiers their rights
        """
    case "42P01":
      return """

        hint: sallyport-verifier init --database WORDS      makes the tables; or the words name \
        another database
        """
    case _: return ""
    }
  }
}

/// Asks the database; what it says of a fault is for people.
func asking<R>(_ body: () throws(DatabaseFault) -> R) throws -> R {
  try rethrow(body, as: { Failure($0.sentence) })
}

/// The same of a file of keys.
func using<R>(_ path: String, _ body: (String) throws(PrivateFile.Fault) -> R) throws -> R {
  try rethrow(
    { () throws(PrivateFile.Fault) in try body(path) }, as: { Failure($0.sentence(path)) })
}

/// The same of the fleet's keys, of which there may be two.
func usingKeys<R>(_ body: () throws(FleetKey.FileFault) -> R) throws -> R {
  try rethrow(body, as: { Failure($0.sentence) })
}

extension FleetKey.FileFault {
  fileprivate var sentence: String {
    guard isNext, fault == .damaged else { return fault.sentence(path) }
    return "\(path): \(fault.text)\nhint: remove this file, and not the one beside it: while the "
      + "fleet changes its key, a verifier that starts takes it again from the database; later: "
      + "sallyport-verifier key take COPY"
  }
}

extension PrivateFile.Fault {
  /// What is wrong with a file of keys, and what to do.
  func sentence(_ path: String) -> String {
    let told = "\(path): \(text)"
    return switch self {
    case .exists:
      "\(path): exists, with another key or damaged: it belongs to another fleet, or init made it "
        + "before key take\n"
        + "hint: if no verifier uses that key, remove the file, and run the command again"
    case .damaged:
      "\(told)\nhint: remove it; then sallyport-verifier key take COPY; or init if no host knows it"
    case .absent: "\(told)\nhint: sallyport-verifier init makes it, and key take restores it"
    case .system, .unsafe, .outOfMemory: told
    }
  }
}

extension Common {
  func readKey() throws -> FleetKey {
    try usingKeys { () throws(FleetKey.FileFault) in try FleetKey.read(at: keyFile) }
  }

  var pathOfIdentity: String { directory + "/identity.key" }

  /// What was revoked.
  var pathOfRevoked: String { directory + "/revoked" }

  /// How far the verifier of this name has seen the database.
  func memory(of name: String) -> String {
    directory + "/seen." + name.replacing("/", with: "_")
  }

  /// The verifiers' TLS key.
  func readIdentity() throws -> Identity {
    try using(pathOfIdentity) { (path) throws(PrivateFile.Fault) in try Identity.read(at: path) }
  }

  /// `isBound`: only to the database that this verifier has worked with.
  func open(
    name: String, isBound: Bool = false, log: @escaping @Sendable (LogLevel, LogLine) -> Void
  ) throws -> Database {
    let (key, words) = (try readKey(), try words())
    let incarnation = isBound ? IncarnationFile(at: directory + "/incarnation") : nil
    let memory = isBound ? memory(of: name) : nil
    return try rethrow(
      { () throws(ServiceError) in
        try Database(
          words, key: key, verifier: Array(name.utf8), directory: directory,
          incarnation: incarnation, memory: memory, log: log)
      }, as: { Failure($0.text) })
  }
}

do {
  var verb = try Command.parseAsRoot()
  try verb.run()
} catch let failure as Failure {
  tell(failure.description)
  exit(EXIT_FAILURE)
} catch {
  Command.exit(withError: error)
}
