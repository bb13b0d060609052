import ArgumentParser
import FleetProtocol
import FleetTransport
import OneTimePassword
import SallyportCore
import SallyportSupport
import SallyportSystem
import SallyportVerifier

struct Invite: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Print a token with which a machine joins as a host, once, within 24 hours.",
    discussion: """
      The token alone is on standard output: \
      sallyport-verifier invite web1 | ssh web1 sudo sallyport fleet join
      """)

  @OptionGroup var common: Common

  @Argument(help: "The host's name in the fleet.")
  var host: String

  @Flag(help: "Users enroll there at their first login, 20 in a day.")
  var enrolls = false

  @Flag(help: "Root there sees and changes people of the fleet, 20 changes in a day.")
  var changes = false

  @Flag(help: "Root there takes people into the host's files, with their secrets, 10 in a day.")
  var takes = false

  @Flag(help: "The host loses its files when it ends, as a container: it holds no backup codes.")
  var ephemeral = false

  @Option(
    help: ArgumentHelp(
      "Address of a verifier, once for each (default: where they listen).",
      valueName: "address:port"))
  var verifier: [String] = []

  func run() throws {
    try common.actAsOwner()
    let name = try hostName(host)
    let pin = try common.readIdentity().pin
    let addresses = try verifier.map { text in
      guard let address = VerifierAddress(text) else {
        throw Failure("\(text): a numeric address is expected, such as 192.0.2.1:7353")
      }
      return Array(address.text.utf8)
    }
    let rights: [HostRight] =
      (enrolls ? [.enrolls] : []) + (changes ? [.changes] : []) + (takes ? [.takes] : [])
    let table = try common.hostTable()
    let invitation = try rethrow(
      { () throws(HostTable.Fault) in
        try table.invite(
          name, rights: HostRights(rights), isEphemeral: ephemeral, pin: pin.bytes,
          verifiers: addresses)
      }, as: { Failure($0.text) })
    if invitation.replaces {
      tell("\(host) is a host of the fleet: joining again replaces its key")
    }
    let places = invitation.verifiers.map { String(decoding: $0, as: UTF8.self) }
    tell(
      "for \(host), once, until \(invitation.until), by verifiers at "
        + places.joined(separator: ", ") + "; to be typed into: sallyport fleet join")
    let token = invitation.token
    print(String(decoding: token.bytes(in: 0..<token.count), as: UTF8.self))
  }
}

struct FleetHosts: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "hosts", abstract: "List the hosts of the fleet, and change their rights.",
    subcommands: [
      ListHosts.self, AcceptHost.self, GiveUpHost.self, AllowHost.self, DenyHost.self,
      ReopenHost.self,
    ],
    defaultSubcommand: ListHosts.self)
}

struct AllowHost: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "allow", abstract: "Give a host a right, or more of it for a while.",
    discussion: """
      enrolls: users enroll there at their first login. changes: root there sees and changes \
      people of the fleet. takes: root there takes people into the host's files, with their secrets.
      """)

  @OptionGroup var common: Common

  @Argument(help: "The host's name in the fleet.")
  var host: String

  @Argument(help: "enrolls, changes or takes.")
  var right: String

  @Option(
    help: "How often in a day (default: 20, or 10 for takes), or with --for in all (default: 100).")
  var most: UInt32?

  @Option(
    name: .customLong("for"),
    help: ArgumentHelp(
      "For how long, beside the number of each day: minutes or hours, such as 1h, up to 24h.",
      valueName: "time"))
  var time: String?

  @Option(
    help: ArgumentHelp(
      "With --for: only for the people whom this file names, one on each line.",
      valueName: "file"))
  var people: String?

  func run() throws {
    if people != nil, time == nil { throw Failure("--people needs --for: nobody has it for ever") }
    let people = try people.map(names(in:)) ?? []
    try common.actAsOwner()
    let (name, right) = (try hostName(host), try hostRight(right))
    if most == 0 { throw Failure("--most 0: sallyport-verifier hosts deny \(host) \(right.word)") }
    let until = try time.map { text in
      let now = try SallyportSystem.Clock.now()
      return UnixTime(now.seconds + (try seconds(text)))
    }
    try common.setRights(of: name) { rights in
      if let until {
        (rights[right].more, rights[right].until) = (most ?? 100, until)
        rights[right].people = people
      } else {
        rights[right].daily = most ?? right.usual
      }
    }
  }

  private func names(in path: String) throws -> [[UInt8]] {
    let text = try fileText(path, atMost: 1_048_576)
    let names = try text.split(separator: 10, omittingEmptySubsequences: false).enumerated()
      .filter { !$0.element.isEmpty }.map { number, line in
        guard let name = UserName(Array(line)) else {
          throw Failure("\(printable(path.utf8)):\(number + 1): a login name is expected")
        }
        return name.bytes
      }
    guard (1...HostRights.Allowance.mostPeople).contains(names.count) else {
      let most = HostRights.Allowance.mostPeople
      throw Failure("\(printable(path.utf8)): \(names.count) names; 1 to \(most) are expected")
    }
    return names
  }

  private func seconds(_ text: String) throws -> Int64 {
    let number = Int64(text.dropLast()) ?? 0
    let unit: Int64? = text.last == "h" ? 3600 : text.last == "m" ? 60 : nil
    guard let unit, number > 0, number <= 86_400 / unit else {
      throw Failure("--for \(printable(text.utf8)): minutes or hours, such as 30m or 1h, up to 24h")
    }
    return number * unit
  }
}

struct DenyHost: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "deny", abstract: "Take rights from a host.")

  @OptionGroup var common: Common

  @Argument(help: "The host's name in the fleet.")
  var host: String

  @Argument(help: "enrolls, changes or takes.")
  var right: [String]

  func run() throws {
    try common.actAsOwner()
    let (name, denied) = (try hostName(host), try right.map(hostRight))
    try common.setRights(of: name) { rights in
      for one in denied { rights[one] = HostRights.Allowance() }
    }
  }
}

struct AcceptHost: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "accept",
    abstract: "Accept a host that was put back, or ran twice, as it is now.")

  @OptionGroup var common: Common

  @Argument(help: "The host's name in the fleet.")
  var host: String

  @Flag(help: "From now on it loses its files when it ends: it holds no backup codes.")
  var ephemeral = false

  func run() throws {
    try common.actAsOwner()
    let name = try hostName(host)
    let table = try common.hostTable()
    let done = try asking { () throws(DatabaseFault) in
      try table.accept(name, isEphemeral: ephemeral)
    }
    switch done {
    case .done: break
    case .needless:
      throw Failure(
        "\(host) \(ephemeral ? "is ephemeral" : "does not rest"): nothing was changed\n"
          + "hint: sallyport-verifier hosts")
    case .noHost:
      throw noHost(name)
    }
    print(
      ephemeral
        ? "\(host) has its rights, and holds no backup codes from now on"
        : "\(host) has its rights again, and gets the backup codes of users who log in there")
  }
}

struct ReopenHost: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reopen",
    abstract: "Accept codes from unknown places again on a host that brought too many wrong ones.")

  @OptionGroup var common: Common

  @Argument(help: "The host's name in the fleet.")
  var host: String

  func run() throws {
    try common.actAsOwner()
    let name = try hostName(host)
    let table = try common.hostTable()
    switch try asking({ () throws(DatabaseFault) in try table.reopen(name) }) {
    case .done:
      print("within 5 seconds the wrong codes that \(host) has brought count no more")
    case .noHost: throw noHost(name)
    case .forged:
      throw Failure(
        "the row of \(host) was made or changed by somebody without the key: nothing was done\n"
          + "hint: sallyport-verifier revoke \(host), and invite it again")
    }
  }
}

struct ListHosts: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the hosts of the fleet.")

  @OptionGroup var common: Common

  func run() throws {
    try common.actAsOwner()
    let table = try common.hostTable()
    let rows = try asking { () throws(DatabaseFault) in try table.hosts() }
    let lines =
      [["HOST", "RIGHT", "JOINED", "LAST SEEN"]]
      + rows.map { [$0.name, $0.right, $0.joined, $0.seen ?? "never"] }
    let widths = (0..<4).map { column in lines.map { $0[column].count }.max() ?? 0 }
    for line in lines {
      let cells = zip(line, widths).map { text, width in
        text + String(repeating: " ", count: width - text.count)
      }
      var text = cells.joined(separator: "  ")
      while text.last == " " { text.removeLast() }
      print(text)
    }
    print("\(rows.count) \(rows.count == 1 ? "host" : "hosts")")
  }
}

struct Revoke: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Remove a host from the fleet: the verifiers stop answering it.")

  @OptionGroup var common: Common

  @Argument(help: "The host's name in the fleet.")
  var host: String

  func run() throws {
    try common.actAsOwner()
    let name = try hostName(host)
    let table = try common.hostTable()
    let revoked = try asking { () throws(DatabaseFault) in
      try table.revoke(name, reserveFor: 7 * 86_400)
    }
    if let fault = revoked.unfiled {
      tell(
        "\(common.pathOfRevoked): \(fault.text): the database alone has what was revoked now")
    }
    guard revoked.wasThere else {
      throw Failure(
        "there is no host \(host); if the database shows one again that joined before now, the "
          + "verifiers refuse it\nhint: sallyport-verifier hosts")
    }
    if !revoked.isProven {
      tell(
        "the row of \(host) was made or changed by somebody without the key: it is removed, and "
          + "the verifiers answer no host that joined as \(host) before now; the key of the real "
          + "host is not known here")
    }
    print("\(host) is not a host any more: the verifiers refuse it within 5 seconds")
    guard let seen = revoked.seen, let until = revoked.reserveUntil else {
      print("it was never seen, so it holds no backup codes")
      return
    }
    print(
      """
      it was last seen at \(seen): if somebody keeps it off the network, it accepts the backup \
      codes that it holds until \(until), or for as long as its reserve_for says
      """)
  }
}

func hostName(_ text: String) throws -> FleetHostName {
  guard let name = FleetHostName(Array(text.utf8)) else {
    throw Failure(
      "\(printable(text.utf8)): a host's name has letters, digits, \".\", \"-\" and \"_\"")
  }
  return name
}

func noHost(_ host: FleetHostName) -> Failure {
  Failure("there is no host \(host.text)\nhint: sallyport-verifier hosts")
}

private func hostRight(_ text: String) throws -> HostRight {
  guard let right = HostRight.allCases.first(where: { $0.word == text }) else {
    throw Failure("\(printable(text.utf8)): a right is enrolls, changes or takes")
  }
  return right
}

extension HostTable.Fault {
  fileprivate var text: String {
    switch self {
    case .database(let fault): fault.sentence
    case .noVerifiers:
      "no verifier has reported an address\n"
        + "hint: sallyport-verifier run --listen ADDRESS  # or invite HOST --verifier ADDRESS"
    case .addresses: "a token has room for 8 verifiers"
    case .system: "no token could be made"
    }
  }
}

extension Common {
  fileprivate func hostTable() throws -> HostTable {
    let (key, words) = (try readKey(), try words())
    let file = RevocationFile(pathOfRevoked, key: key)
    return try asking { () throws(DatabaseFault) in try HostTable(words, key: key, file: file) }
  }

  fileprivate func setRights(of host: FleetHostName, _ change: (inout HostRights) -> Void) throws {
    let table = try hostTable()
    let rights = try asking { () throws(DatabaseFault) in
      try table.setRights(of: host) { rights in
        var rights = rights
        change(&rights)
        return rights
      }
    }
    guard let rights else {
      throw noHost(host)
    }
    print("\(host.text): \(rights.text); the verifiers go by it within 5 seconds")
  }
}
