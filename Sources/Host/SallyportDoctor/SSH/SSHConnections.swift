import SallyportCore
import SallyportSystem

/// The connections between which sshd's settings can tell, one for each kind. Pure.
struct SSHConnections {
  private let configuration: SSHConfiguration
  private let blocks: SSHBlocks
  /// Whether sshd looks up the names of hosts.
  private let usesNames: Bool
  private let hosts: [(text: String, holds: (SSHConnection) -> Bool)]
  private let anywhere: SSHConnection
  private(set) var all: [SSHConnection] = []
  /// Whether there are more kinds than are asked about.
  private(set) var isCut = false

  /// A limit, as each may need runs of sshd.
  static let most = 100

  /// `addresses` are asked about besides, and logins from `origins` are told apart. `ports` are
  /// those that sshd listens on.
  init(
    _ configuration: SSHConfiguration, _ blocks: SSHBlocks, ports: [String], usesNames: Bool,
    addresses: [String] = [], origins: [String] = []
  ) {
    (self.configuration, self.blocks, self.usesNames) = (configuration, blocks, usesNames)
    hosts =
      SSHConnections.hosts(configuration).map { ($0, SSHHostList($0).holds) }
      + origins.map { ($0, SSHConnections.isFrom($0)) }
    let port = ports.first ?? configuration.port
    var base = SSHConnection.elsewhere(port: port)
    base.address = SSHConnections.unnamed(blocks, hosts.map(\.text))
    base.host = base.address
    anywhere = base
    var here = SSHConnection.here(port: port)
    if !usesNames { here.host = here.address }
    all = [anywhere, here] + addresses.map { from($0, as: $0) }
    var kinds = Set(all.map(kind))
    for one in candidates(ports) where kinds.insert(kind(one)).inserted {
      if all.count < SSHConnections.most { all.append(one) } else { isCut = true }
    }
  }

  /// What tells it from others.
  private func kind(_ connection: SSHConnection) -> [Bool] {
    blocks.about(connection) + hosts.map { $0.holds(connection) }
  }

  /// Whether a connection comes from a range of the policy, as the module asks.
  private static func isFrom(_ origin: String) -> (SSHConnection) -> Bool {
    let range = AddressRange(Array(origin.utf8), Addresses.numeric)
    return { Addresses.numeric(Array($0.address.utf8)).map { range?.holds($0) == true } == true }
  }

  private func from(_ address: String, as name: String) -> SSHConnection {
    var connection = anywhere
    (connection.name, connection.address, connection.host) = (name, address, address)
    return connection
  }

  /// HOST of each USER@HOST.
  private static func hosts(_ configuration: SSHConfiguration) -> [String] {
    configuration.lines.filter { ["allowusers", "denyusers"].contains($0.keyword) }
      .flatMap(\.arguments).compactMap { word in
        word.lastIndex(of: "@").map { String(word[word.index(after: $0)...]) }
      }
  }

  /// An address that as few patterns as possible are about: of those that no network has.
  private static func unnamed(_ blocks: SSHBlocks, _ hosts: [String]) -> String {
    let lists = blocks.tests.flatMap(\.test.addresses) + hosts.map { SSHAddressList($0) }
    let free = ["203.0.113.1", "198.51.100.1", "192.0.2.1", "203.0.113.250", "198.18.0.1"]
    let counts = free.map { address in lists.reduce(0) { $0 + $1.count(address) } }
    let best = counts.indices.min { counts[$0] < counts[$1] } ?? 0
    return free[best]
  }

  // MARK: what patterns are about

  private func candidates(_ ports: [String]) -> [SSHConnection] {
    let found = blocks.tests.flatMap { meeting(configuration.blocks[$0.index], $0.test) }
    let addresses = hosts.flatMap { one in
      one.text.split(separator: ",").flatMap { word in
        samples(of: word).map { from($0, as: "from \(SSHConnections.plain(word))") }
          + (usesNames ? [named(SSHConnections.text(word), as: "from \(word)")] : [])
      }
    }
    let others = ports.dropFirst().map { port in
      var connection = anywhere
      (connection.name, connection.port) = ("port \(port)", port)
      return connection
    }
    return found + addresses + others
  }

  private func named(_ host: String, as name: String) -> SSHConnection {
    var connection = anywhere
    (connection.name, connection.host) = (name, host)
    return connection
  }

  /// Connections that meet all that a block asks, and for each `!` one that does not.
  private func meeting(_ block: SSHConfiguration.Block, _ test: SSHBlocks.Test) -> [SSHConnection] {
    guard test.asksConnection else { return [] }
    let asked = block.criteria.filter { !["user", "group"].contains($0.name) }
    let name = asked.map { "\($0.name) \($0.patterns)" }.joined(separator: " ")
    var whole = [named(anywhere.host, as: name)]
    for criterion in asked {
      whole = whole.flatMap { connection in
        variants(of: connection, meeting: criterion).prefix(SSHConnections.variants)
      }
    }
    let met = whole.first { test.holds($0) }
    let excluded = asked.filter { $0.name == "address" }.flatMap { criterion in
      criterion.patterns.split(separator: ",").filter { $0.hasPrefix("!") }.flatMap { word in
        samples(of: word).prefix(1).map { from($0, as: "from \(SSHConnections.plain(word))") }
      }
    }
    return [met].compactMap { $0 } + excluded
  }

  /// How many samples of one criterion are tried together with those of others.
  private static let variants = 12

  private func variants(of connection: SSHConnection, meeting criterion: SSHConfiguration.Criterion)
    -> [SSHConnection]
  {
    let words = criterion.patterns.split(separator: ",").filter { !$0.hasPrefix("!") }
    switch criterion.name {
    case "address", "host":
      return words.flatMap { word in
        let texts =
          criterion.name == "host" && usesNames ? [SSHConnections.text(word)] : samples(of: word)
        return texts.map { text in
          var changed = connection
          if criterion.name == "address" { changed.address = text }
          if criterion.name == "host" || !usesNames { changed.host = text }
          if !usesNames { changed.address = text }
          return changed
        }
      }
    case "localaddress":
      return words.flatMap(samples).map { with(connection, \.localAddress, $0) }
    case "localport": return [with(connection, \.port, criterion.patterns)]
    case "rdomain": return words.map { with(connection, \.domain, SSHConnections.text($0)) }
    case _: return [connection]
    }
  }

  private func with(
    _ connection: SSHConnection, _ part: WritableKeyPath<SSHConnection, String>, _ value: String
  ) -> SSHConnection {
    var changed = connection
    changed[keyPath: part] = value
    return changed
  }

  /// Addresses that a pattern is about.
  private func samples(of word: Substring) -> [String] {
    let plain = SSHConnections.plain(word)
    if plain.contains("*") || plain.contains("?") {
      let parts = plain.split(separator: ".", omittingEmptySubsequences: false)
        .map { SSHConnections.text($0.replacing("*", with: "1"), one: "1") }
      let text = (parts + ["1", "1", "1"]).prefix(4).joined(separator: ".")
      return SSHPattern(plain).matches([UInt8]("\(anywhere.address)".utf8))
        ? [anywhere.address] : [text]
    }
    let start = String(plain.prefix { $0 != "/" })
    guard let number = Addresses.numeric(Array(start.utf8)) else { return [] }
    // The first may be taken out of the range by another pattern.
    let range = AddressRange(Array(plain.utf8), Addresses.numeric)
    let more = [1, 2, 77, 254].compactMap { offset -> String? in
      var bytes = number.bytes
      bytes[15] |= UInt8(offset)
      guard let other = NumericAddress(bytes), range?.holds(other) == true else { return nil }
      return Addresses.text(other)
    }
    return more + [start]
  }

  private static func plain(_ word: Substring) -> Substring {
    word.hasPrefix("!") ? word.dropFirst() : word
  }

  /// A text that a pattern is about.
  private static func text(_ pattern: some StringProtocol, one: Character = "x") -> String {
    String(pattern.filter { $0 != "*" && $0 != "!" }.map { $0 == "?" ? one : $0 })
  }
}
