/// A connection to sshd: what Match blocks ask of it, but for the user.
struct SSHConnection: Hashable {
  /// As it is shown.
  var name: String
  /// The address that it comes from, and the name of that host, as sshd sees it.
  var address, host: String
  /// The address and port that it reaches.
  var localAddress, port: String
  /// The routing domain on which it comes in; empty for most.
  var domain = ""

  /// From an address that no network has (RFC 5737).
  static func elsewhere(port: String) -> SSHConnection {
    SSHConnection(
      name: "anywhere", address: "203.0.113.1", host: "203.0.113.1", localAddress: "203.0.113.2",
      port: port)
  }

  /// From this machine.
  static func here(port: String) -> SSHConnection {
    SSHConnection(
      name: "this machine", address: "127.0.0.1", host: "localhost", localAddress: "127.0.0.1",
      port: port)
  }

  /// The options with which `sshd -T` prints the settings for a user. They say all of the
  /// connection: sshd gives up if a Match block asks for what is left out, and without `-C` too.
  func options(for user: String) -> [String] {
    [
      "-C",
      "addr=\(address),host=\(host),laddr=\(localAddress),lport=\(port),rdomain=\(domain),"
        + "user=\(user)",
    ]
  }
}

/// A login that a Match block matches.
struct SSHProbe: Equatable {
  private(set) var user = "nobody"
  private(set) var connection: SSHConnection
  /// The users that the block names.
  private(set) var users: [String] = []

  /// Returns nil if the block matches no user here: a group without members.
  init?(_ block: SSHConfiguration.Block, _ accounts: AccountFacts, port: String) {
    connection = .here(port: port)
    for criterion in block.criteria {
      let plain = SSHProbe.plain(criterion.patterns)
      switch criterion.name {
      case "user":
        users = criterion.patterns.split(separator: ",").map(String.init)
        user = plain ?? user
      case "group":
        guard let group = plain, let member = accounts.members(of: group).first else { return nil }
        users = accounts.members(of: group)
        user = member
      case "host": connection.host = plain ?? connection.host
      case "address": connection.address = SSHProbe.address(criterion.patterns)
      case "localaddress": connection.localAddress = SSHProbe.address(criterion.patterns)
      case "localport": connection.port = plain ?? port
      case "rdomain": connection.domain = plain ?? ""
      case _: break
      }
    }
  }

  /// A text that the first pattern without `!` matches; nil if it matches everything.
  private static func plain(_ patterns: String) -> String? {
    let first = patterns.split(separator: ",").first { !$0.hasPrefix("!") }
    guard let first, first != "*" else { return nil }
    return String(first.filter { $0 != "*" }.map { $0 == "?" ? "x" : $0 })
  }

  private static func address(_ patterns: String) -> String {
    let first = patterns.split(separator: ",").first { !$0.hasPrefix("!") } ?? "127.0.0.1"
    let address = first.split(separator: "/").first.map(String.init) ?? "127.0.0.1"
    guard address.contains("*") else { return address }
    let parts = address.split(separator: ".").map { $0.contains("*") ? "1" : String($0) }
    return (parts + ["1", "1", "1"]).prefix(4).joined(separator: ".")
  }
}
