import ArgumentParser
import SallyportSupport
import SallyportVerifier

struct Status: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show fleet status.")

  @OptionGroup var common: Common

  @Flag(help: "For programs: one JSON object.")
  var json = false

  @Option(help: "Print nothing, and write this file for node_exporter's textfile collector.")
  var metrics: String?

  func run() throws {
    try common.actAsOwner()
    let words = try common.words()
    if let metrics { return try write(metrics, words, try common.readKey()) }
    let key = try common.readKey()
    let status = try asking { () throws(DatabaseFault) in try look(words, key) }
    if json { return print(status.json) }
    for line in status.lines { print(line) }
  }

  private func look(_ words: String, _ key: FleetKey) throws(DatabaseFault) -> FleetStatus {
    try FleetStatus(
      words, key: key, RevocationFile(common.pathOfRevoked, key: key), hasCopy: common.hasCopy,
      policyFlaw: common.policy.flaw)
  }

  /// Also where the database cannot be asked, which is told then.
  private func write(_ path: String, _ words: String, _ key: FleetKey) throws {
    var status: FleetStatus?
    var fault: DatabaseFault?
    do throws(DatabaseFault) {
      status = try look(words, key)
    } catch {
      fault = error
    }
    let number = FleetMetrics(status).write(to: path)
    guard number == 0 else { throw Failure("\(path): \(errnoDescription(number))") }
    if let fault { throw Failure(fault.sentence) }
  }
}
