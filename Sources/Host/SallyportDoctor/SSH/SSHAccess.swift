import PAMStack

/// Why it is not known what sshd lets an account try.
enum SSHGap: Hashable {
  /// sshd does not print its settings, or a file of them cannot be read; with the complaint.
  case silent(String)
  /// There are more kinds of accounts and connections than runs of sshd.
  case tooMany(runs: Int)
  /// sshd has other settings for another account, or connection, of the same kind.
  case contradictory
}

/// What sshd lets an account try.
enum SSHAnswer: Equatable {
  /// There is no sshd.
  case absent
  case seen([SSHEntrance])
  case unseen(SSHGap)
}

/// What sshd lets each account try, for each kind of connection.
///
/// sshd is asked once for each set of Match blocks that hold for somebody, since nothing else makes
/// its settings differ.
struct SSHAccess {
  /// `anywhere`, `this machine`, those that were asked for, and one for each pattern of an address,
  /// host or port that makes a difference.
  let connections: [SSHConnection]
  /// Whether there are more kinds of connections than these.
  let isCut: Bool
  private let blocks: SSHBlocks
  private let accounts: AccountFacts
  private let keyring: SSHKeyring
  /// By connection, then by the Match blocks that hold for the account.
  private let doors: [[[Bool]: SSHRuns.Answer<SSHDoor>]]
  /// Of every account.
  private let whole: SSHAnswer?

  /// A limit, as each takes some 10 ms.
  static let mostRuns = 150

  /// `addresses` are asked about besides, and connections from `origins` are told apart.
  init(
    of machine: Machine, _ accounts: AccountFacts, addresses: [String] = [], origins: [String] = []
  ) {
    let configuration = SSHConfiguration(of: machine)
    let blocks = SSHBlocks(configuration)
    (self.blocks, self.accounts) = (blocks, accounts)
    keyring = SSHKeyring(machine, configuration)
    var base = SSHFacts(settings: SSHFacts.settings(of: machine))
    base.configuration = configuration
    let isStarting = base.settings != .unseen(SSHFacts.unsatisfiable)
    if !isStarting { base.settings = base.unsatisfied(of: machine) }
    let settings: SSHSettings
    switch base.settings {
    case .absent:
      (connections, isCut, doors, whole) = ([], false, [], .absent)
      return
    case .unseen(let reason):
      (connections, isCut, doors, whole) = ([], false, [], .unseen(.silent(reason)))
      return
    case .seen(let found): settings = found
    }
    let asked = SSHConnections(
      configuration, blocks, ports: settings.all("port"), usesNames: settings.isOn("usedns"),
      addresses: addresses, origins: origins)
    let connections = asked.all
    (self.connections, isCut) = (connections, asked.isCut)
    whole = configuration.unread.first.map { .unseen(.silent($0)) }
    var runs = SSHRuns(machine, blocks)
    // Where no list can be completed sshd does not start, for nobody.
    let logins = accounts.accounts.map { account in
      let login = SSHLogin(account, accounts)
      return (login, kind: blocks.about(login))
    }
    if isStarting { runs.ask(logins, connections) }
    let kinds = runs.kinds(of: logins.map(\.kind))
    doors = connections.map { connection in
      let held = blocks.about(connection)
      return Dictionary(
        uniqueKeysWithValues: kinds.map { kind in
          let holding = blocks.holding(kind, held)
          let answer = isStarting ? runs.answer(holding) : .seen(settings)
          return (
            kind,
            answer.map {
              SSHDoor(
                $0, configuration, blocks: holding, from: connection, isStarting: isStarting)
            }
          )
        })
    }
  }

  /// Of one of `connections`.
  func entrances(of account: AccountFacts.Account, from connection: SSHConnection) -> SSHAnswer {
    if let whole { return whole }
    let login = SSHLogin(account, accounts)
    switch door(of: login, from: connection) {
    case .seen(let door): return .seen(door.entrances(for: login))
    case .unseen(let gap): return .unseen(gap)
    }
  }

  /// Whether the account has a key that sshd would take on one of `connections`, whatever it lets
  /// the account try.
  func key(of account: AccountFacts.Account, from connection: SSHConnection) -> SSHKeyAnswer {
    switch door(of: SSHLogin(account, accounts), from: connection) {
    case .seen(let door): key(of: account, door, from: connection)
    case .unseen: SSHAccess.unknownKey
    }
  }

  /// Whether the account surely has a key, and sshd takes keys at all.
  func takesKey(of account: AccountFacts.Account, from connection: SSHConnection) -> Bool {
    guard case .seen(let door) = door(of: SSHLogin(account, accounts), from: connection),
      door.settings.isOn("pubkeyauthentication")
    else { return false }
    switch key(of: account, door, from: connection) {
    case .yes, .from: return true
    case .no, .unseen: return false
    }
  }

  /// What no connection is about is told of on the first.
  private func key(
    of account: AccountFacts.Account, _ door: SSHDoor, from connection: SSHConnection
  ) -> SSHKeyAnswer {
    let isFirst = connection == connections.first
    let answer = keyring.key(
      of: account, door.settings, from: connection, others: isFirst ? connections : [])
    if case .from = answer, !isFirst { return .no }
    return answer
  }

  /// Of each account with one class, everything above is the same.
  func classOf(_ account: AccountFacts.Account) -> SSHClass {
    let login = SSHLogin(account, accounts)
    let kind = blocks.about(login)
    var (refusals, keys) = ([SSHRefusal?](), [SSHKeyAnswer?]())
    for (connection, kinds) in zip(connections, doors) {
      guard case .seen(let door)? = kinds[kind] else {
        refusals.append(nil)
        keys.append(SSHAccess.unknownKey)
        continue
      }
      refusals.append(door.refusal(of: login))
      // Homes may be slow: their files are read only where somebody asks.
      let matters = door.asksForKey || account.password == .none
      keys.append(matters ? key(of: account, door, from: connection) : nil)
    }
    return SSHClass(kind: kind, isRoot: login.isRoot, refusals: refusals, keys: keys)
  }

  private static let unknownKey = SSHKeyAnswer.unseen(.unread("sshd does not say where keys are"))

  private func door(of login: SSHLogin, from connection: SSHConnection) -> SSHRuns.Answer<SSHDoor> {
    guard let index = connections.firstIndex(of: connection),
      let door = doors[index][blocks.about(login)]
    else { return .unseen(.tooMany(runs: SSHAccess.mostRuns)) }
    return door
  }
}

/// What sshd tells accounts apart by.
struct SSHClass: Hashable {
  fileprivate let kind: [Bool]
  fileprivate let isRoot: Bool
  /// By connection.
  fileprivate let refusals: [SSHRefusal?]
  fileprivate let keys: [SSHKeyAnswer?]

  /// Whether there is a key that sshd takes from somewhere; nil if it is not known.
  var hasKey: Bool? {
    let found = keys.compactMap { $0 }.filter { $0 != .no }
    return found.isEmpty ? false : found.allSatisfy { $0.gap != nil } ? nil : true
  }
}

/// The runs of `sshd -T`, one for each set of Match blocks that hold together.
struct SSHRuns {
  enum Answer<Value> {
    case seen(Value)
    case unseen(SSHGap)

    func map<Other>(_ change: (Value) -> Other) -> Answer<Other> {
      switch self {
      case .seen(let value): .seen(change(value))
      case .unseen(let gap): .unseen(gap)
      }
    }
  }

  /// Logins for which a set of blocks holds.
  private struct Question {
    let user: String
    let connection: SSHConnection
  }

  private let machine: Machine
  private let blocks: SSHBlocks
  private var answers: [[Int]: Answer<SSHSettings>] = [:]
  private var count = 0

  init(_ machine: Machine, _ blocks: SSHBlocks) {
    (self.machine, self.blocks) = (machine, blocks)
  }

  /// Each once, in their order.
  func kinds(of logins: [[Bool]]) -> [[Bool]] {
    var known: Set<[Bool]> = []
    return logins.filter { known.insert($0).inserted }
  }

  func answer(_ holding: [Int]) -> Answer<SSHSettings> {
    answers[holding] ?? .unseen(.tooMany(runs: SSHAccess.mostRuns))
  }

  /// The first connections are the most important. Where runs are left, sshd is asked about another
  /// login of the same kind: it shows whether patterns are read here as sshd reads them.
  mutating func ask(
    _ logins: [(login: SSHLogin, kind: [Bool])], _ connections: [SSHConnection]
  ) {
    var order: [[Int]] = []
    var questions: [[Int]: (first: Question, last: Question)] = [:]
    let held = connections.map(blocks.about)
    var users: [[Bool]: (first: String, last: String)] = [:]
    // In what sshd is asked, a comma ends the name.
    for (login, kind) in logins where !login.name.contains(UInt8(ascii: ",")) {
      let name = String(decoding: login.name, as: UTF8.self)
      users[kind] = (users[kind]?.first ?? name, name)
    }
    let kinds = self.kinds(of: logins.map(\.kind))
    for (connection, about) in zip(connections, held) {
      for kind in kinds {
        guard let names = users[kind] else { continue }
        let holding = blocks.holding(kind, about)
        let last = Question(user: names.last, connection: connection)
        if let known = questions[holding] {
          questions[holding] = (known.first, last)
        } else {
          order.append(holding)
          questions[holding] = (Question(user: names.first, connection: connection), last)
        }
      }
    }
    for holding in order {
      if let first = questions[holding]?.first { answers[holding] = run(first) }
    }
    for holding in order {
      guard count < SSHAccess.mostRuns, let (first, last) = questions[holding],
        first.user != last.user || first.connection != last.connection,
        case .seen(let found)? = answers[holding], case .seen(let other) = run(last)
      else { continue }
      if found != other { answers[holding] = .unseen(.contradictory) }
    }
  }

  private mutating func run(_ question: Question) -> Answer<SSHSettings> {
    guard count < SSHAccess.mostRuns else { return .unseen(.tooMany(runs: SSHAccess.mostRuns)) }
    count += 1
    let found = SSHFacts.settings(
      of: machine, user: question.user, from: question.connection)
    switch found {
    case .seen(let settings): return .seen(settings)
    case .absent: return .unseen(.silent("sshd is gone"))
    case .unseen(let reason): return .unseen(.silent(reason))
    }
  }
}
