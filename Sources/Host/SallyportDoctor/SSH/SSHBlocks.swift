/// An account, with what sshd looks at before it lets it try.
struct SSHLogin {
  let name: [UInt8]
  let groups: [[UInt8]]
  let isRoot: Bool
  /// Whether its shell is a file that can be executed; nologin is one.
  let hasShell: Bool
  /// Whether a `!` stands before its password.
  let isLocked: Bool
}

extension SSHLogin {
  init(_ account: AccountFacts.Account, _ accounts: AccountFacts) {
    self.init(
      name: Array(account.name.utf8),
      groups: accounts.groupNames(of: account).map { Array($0.utf8) }, isRoot: account.uid == 0,
      hasShell: accounts.shell(of: account).isThere, isLocked: account.isLocked)
  }
}

/// The Match blocks that can change who gets in and how.
struct SSHBlocks {
  /// What one block asks; all of it must hold.
  struct Test {
    fileprivate(set) var users: [SSHPatternList] = []
    fileprivate(set) var groups: [SSHPatternList] = []
    fileprivate(set) var hosts: [SSHPatternList] = []
    fileprivate(set) var addresses: [SSHAddressList] = []
    fileprivate(set) var localAddresses: [SSHAddressList] = []
    fileprivate(set) var domains: [SSHPatternList] = []
    fileprivate(set) var ports: [String] = []
    /// It is about users who do not exist.
    fileprivate(set) var isOnlyInvalid = false

    var asksConnection: Bool {
      !(hosts.isEmpty && addresses.isEmpty && localAddresses.isEmpty && domains.isEmpty
        && ports.isEmpty)
    }
  }

  /// By the index of the block in the configuration.
  let tests: [(index: Int, test: Test)]

  init(_ configuration: SSHConfiguration) {
    let used = Set(
      configuration.lines.lazy.filter { SSHBlocks.keywords.contains($0.keyword) }
        .compactMap(\.block))
    tests = configuration.blocks.enumerated().filter { used.contains($0.offset) }.map {
      (index: $0.offset, test: Test($0.element))
    }
  }

  /// Those that hold for an account, wherever it comes from: its class.
  func about(_ login: SSHLogin) -> [Bool] { tests.map { $0.test.holds(login) } }

  /// Those that hold for a connection, whatever account logs in.
  func about(_ connection: SSHConnection) -> [Bool] { tests.map { $0.test.holds(connection) } }

  /// The indices of those that hold for both.
  func holding(_ account: [Bool], _ connection: [Bool]) -> [Int] {
    tests.indices.filter { account[$0] && connection[$0] }.map { tests[$0].index }
  }

  /// The keywords that a Match block may have which decide who gets in and how.
  private static let keywords: Set = [
    "allowgroups", "allowusers", "authenticationmethods", "authorizedkeyscommand",
    "authorizedkeysfile", "challengeresponseauthentication", "chrootdirectory", "denygroups",
    "denyusers", "gssapiauthentication", "hostbasedauthentication", "kbdinteractiveauthentication",
    "pamservicename", "passwordauthentication", "permitemptypasswords", "permitrootlogin",
    "pubkeyacceptedalgorithms", "pubkeyacceptedkeytypes", "pubkeyauthentication",
    "refuseconnection", "skeyauthentication", "trustedusercakeys", "usepam",
  ]
}

extension SSHBlocks.Test {
  init(_ block: SSHConfiguration.Block) {
    for criterion in block.criteria {
      switch criterion.name {
      case "user": users.append(SSHPatternList(criterion.patterns))
      case "group": groups.append(SSHPatternList(criterion.patterns))
      case "host": hosts.append(SSHPatternList(criterion.patterns.lowercased()))
      case "address": addresses.append(SSHAddressList(criterion.patterns))
      case "localaddress": localAddresses.append(SSHAddressList(criterion.patterns))
      case "rdomain": domains.append(SSHPatternList(criterion.patterns))
      case "localport": ports.append(criterion.patterns)
      case "invalid-user": isOnlyInvalid = true
      case _: break
      }
    }
  }

  func holds(_ login: SSHLogin) -> Bool {
    !isOnlyInvalid && users.allSatisfy { $0.match(login.name) == .yes }
      && groups.allSatisfy { $0.match(any: login.groups) }
  }

  func holds(_ connection: SSHConnection) -> Bool {
    let host = Array(connection.host.lowercased().utf8)
    let domain = Array(connection.domain.utf8)
    return hosts.allSatisfy { $0.match(host) == .yes }
      && addresses.allSatisfy { $0.match(connection.address) == .yes }
      && localAddresses.allSatisfy { $0.match(connection.localAddress) == .yes }
      && domains.allSatisfy { $0.match(domain) == .yes }
      && ports.allSatisfy { $0 == connection.port }
  }
}
