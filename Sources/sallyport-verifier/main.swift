import ArgumentParser
import CService
import Glibc
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportService
import SallyportSystem
import SallyportVerifier

/// The verifier of a fleet.
struct Command: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sallyport-verifier",
    abstract: "Check the codes of a fleet of hosts, over PostgreSQL.",
    subcommands: [Init.self, Run.self, Status.self])
}

struct Common: ParsableArguments {
  @Option(help: "The database, as libpq has it: \"host=… dbname=…\" or a URI.")
  var database: String

  @Option(help: "Where key and sallyport.conf are.")
  var directory = "/etc/sallyport-verifier"

  var keyFile: String { directory + "/key" }
}

struct Init: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Make the key, and the tables in the database.")

  @OptionGroup var common: Common

  func run() throws {
    try makeDirectory()
    let isNew: Bool
    do throws(FleetKey.FileFault) {
      try FleetKey.make(at: common.keyFile)
      isNew = true
    } catch {
      guard error == .exists else { throw failure(common.keyFile, error) }
      isNew = false
    }
    try makePolicy()
    switch try database({ () throws(DatabaseFault) in try Database.makeSchema(common.database) }) {
    case .noRole: throw Failure("the role sallyport_verifier does not exist\n" + Self.hint)
    case .new: print("made the tables")
    case .wasThere: print("the tables are there")
    }
    let database = try open(common, name: "init") { _, line in
      ServiceLog.fatal(String(decoding: line.bytes, as: UTF8.self), of: "sallyport-verifier")
    }
    do throws(StoreTrouble) {
      try FleetStore(database, Event(of: "init"), uid: nil).makeDecoys()
    } catch {
      throw Failure("the decoys were not made")
    }
    print(isNew ? "made \(common.keyFile)" : "ready")
    if isNew { print("keep a copy of it where no backup of the database is") }
  }

  private static let hint = "hint: CREATE ROLE sallyport_verifier LOGIN CONNECTION LIMIT 24;"

  private func makeDirectory() throws {
    // SAFETY: the C string lives for the call.
    guard unsafe mkdir(common.directory, 0o700) == 0 || errno == EEXIST else {
      throw Failure("\(common.directory): \(errnoText(errno))")
    }
  }

  private func makePolicy() throws {
    let path = common.directory + "/sallyport.conf"
    // SAFETY: the C strings live for the calls.
    let file = unsafe Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
    guard file >= 0 else {
      if errno == EEXIST { return }
      throw Failure("\(path): \(errnoText(errno))")
    }
    defer { close(file) }
    let text = "# The policy of the fleet (sallyport.conf(5)). A host's can only be stricter.\n"
    // SAFETY: the C string lives for the call.
    _ = unsafe write(file, text, text.utf8.count)
  }
}

struct Run: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Answer hosts, in the foreground, until SIGTERM.")

  @OptionGroup var common: Common

  @Option(help: "Listen here.")
  var socket = "/run/sallyport-verifier/socket"

  @Option(help: "This verifier among those of the fleet (default: the host's name).")
  var name = HostName.label.text

  func run() throws {
    ServiceLog.open(as: "sallyport-verifier")
    do throws(ServiceError) {
      try ServiceError.check(service_harden(), "setrlimit")
      try ServiceError.check(service_hold_signals(), "sigprocmask")
      try prepareForService()
    } catch {
      throw Failure(error.text)
    }
    let database = try open(common, name: name) { ServiceLog.write($0, $1) }
    try self.database { () throws(DatabaseFault) in try database.begin() }
    let desk = FleetDesk(database, directory: common.directory)
    do throws(ServiceError) {
      try database.watch()
      let service = try Service.start(.open(root: socket), root: .verifier) { desk.answer($0, $1) }
      ServiceLog.info("started")
      service_wait_for_end()
      let isDone = service.stop()
      ServiceLog.info(isDone ? "stopped" : "stopped, with packets unanswered")
    } catch {
      throw Failure(error.text)
    }
    // Not by way of libcrypto's own end, under the thread that still waits.
    _exit(0)
  }

  private func prepareForService() throws(ServiceError) {
    do throws(CryptoError) { try prepareCrypto() } catch { throw .noCrypto }
  }
}

struct Status: ParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Tell what the database has.")

  @OptionGroup var common: Common

  func run() throws {
    let status = try database { () throws(DatabaseFault) in try FleetStatus(common.database) }
    for line in status.lines { print(line) }
  }
}

// MARK: what they have in common

/// A sentence for people.
struct Failure: Error, CustomStringConvertible {
  let description: String

  init(_ text: String) { description = text }
}

extension ParsableCommand {
  fileprivate func database<R>(_ body: () throws(DatabaseFault) -> R) throws -> R {
    do throws(DatabaseFault) {
      return try body()
    } catch {
      throw Failure("the database: " + error.text)
    }
  }

  fileprivate func open(
    _ common: Common, name: String, log: @escaping @Sendable (LogLevel, LogLine) -> Void
  ) throws -> Database {
    let key: FleetKey
    do throws(FleetKey.FileFault) {
      key = try FleetKey.read(at: common.keyFile)
    } catch {
      throw failure(common.keyFile, error)
    }
    do throws(ServiceError) {
      return try Database(common.database, key: key, verifier: Array(name.utf8), log: log)
    } catch {
      throw Failure(error.text)
    }
  }

  fileprivate func failure(_ path: String, _ fault: FleetKey.FileFault) -> Failure {
    switch fault {
    case .system(let call, let number):
      Failure("\(path): \(call): \(errnoText(number))")
    case .unsafe: Failure("\(path): not a key that only its owner can read (chmod 600)")
    case .exists: Failure("\(path): exists")
    case .outOfMemory: Failure("out of memory")
    }
  }
}

Command.main()
