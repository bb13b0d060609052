import ArgumentParser
import SallyportCore
import SallyportLogin
import SallyportVerifier

struct GiveUpHost: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "give-up",
    abstract: "Void the backup codes of a host that does not come back.",
    discussion: """
      A change of the fleet's key waits for hosts that are away, since they may have used backup \
      codes. This command prints whose backup codes count as used from now on. The host then rests.
      """)

  @OptionGroup var common: Common

  @Argument(help: "The host's name in the fleet.")
  var host: String

  func run() throws {
    try common.actAsOwner()
    let name = try hostName(host)
    let database = try common.open(name: "give-up") { _, line in
      tell(String(decoding: line.bytes, as: UTF8.self))
    }
    try asking { () throws(DatabaseFault) in try database.beginCommand() }
    guard let people = try asking({ () throws(DatabaseFault) in try database.giveUp(name) }) else {
      throw noHost(name)
    }
    for one in people { print(printable(one, limit: 256)) }
    tell(
      "\(people.count) \(people.count == 1 ? "person has" : "people have") no backup codes left: "
        + "give them new ones; \(host) rests until sallyport-verifier hosts accept \(host)")
  }
}
