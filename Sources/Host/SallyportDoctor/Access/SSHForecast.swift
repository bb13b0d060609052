import PAMStack

/// The ways in by sshd: each list of methods by itself.
struct SSHForecast {
  private let facts: AccessFacts
  private let forecaster: Forecaster

  init(_ facts: AccessFacts, _ forecaster: Forecaster) {
    (self.facts, self.forecaster) = (facts, forecaster)
  }

  func cells(for account: AccountFacts.Account) -> [Cell] {
    guard let ssh = facts.ssh else { return [] }
    let all = ssh.connections.map { cells(for: account, from: $0, ssh) }
    guard let usual = all.first else { return [] }
    // Most connections are like the first; one that has fewer lists is not.
    let others = all.dropFirst().filter { found in
      found.count != usual.count || !zip(found, usual).allSatisfy { $0.isAlike($1) }
    }
    return usual + others.joined()
  }

  private func cells(
    for account: AccountFacts.Account, from connection: SSHConnection, _ ssh: SSHAccess
  ) -> [Cell] {
    let isUsual = connection == ssh.connections.first
    var way = AccessWay(kind: .ssh, service: "sshd", name: "sshd")
    way.origin = isUsual ? nil : connection.name
    switch ssh.entrances(of: account, from: connection) {
    case .absent: return []
    case .unseen(.silent(let reason)):
      return [Cell(way, Decided(.unseen(.sshdSilent), at: nil, reason))]
    case .unseen(.contradictory):
      let reason = "for two logins of one kind its settings differ"
      return [Cell(way, Decided(.unseen(.sshdSilent), at: nil, reason))]
    case .unseen(.tooMany):
      return [Cell(way, Decided(.unseen(.tooMany)))]
    case .seen(let entrances):
      let all = entrances.map { entrance in
        var decided = decided(entrance, account, from: connection, ssh)
        if entrance.refusal == nil { decided.location = decided.location ?? entrance.location }
        return decided
      }
      // sshd's methods keep out whom its key would let in.
      let isLeftOut =
        account.password == .none && all.allSatisfy { $0.verdict == .refused(.noPassword) }
        && !entrances.contains { $0.methods.contains("publickey") }
        && ssh.takesKey(of: account, from: connection)
      return zip(entrances, all).map { entrance, decided in
        let left = Decided(.refused(.keyLeftOut), at: entrance.location)
        return Cell(way, isLeftOut ? left : decided, methods: entrance.methods)
      }
    }
  }

  private func decided(
    _ entrance: SSHEntrance, _ account: AccountFacts.Account, from connection: SSHConnection,
    _ ssh: SSHAccess
  ) -> Decided {
    if let refusal = entrance.refusal { return decided(refusal) }
    guard entrance.methods.contains("publickey") else {
      return behindKey(entrance, account, connection)
    }
    switch ssh.key(of: account, from: connection) {
    case .no: return Decided(.refused(.noKey))
    case .yes:
      let decided = behindKey(entrance, account, connection)
      // One key is good for one of them.
      let isTwice = entrance.methods.count { $0 == "publickey" } > 1
      return isTwice && decided.isIn ? unseen(.elsewhere(keyword: "publickey,publickey")) : decided
    case .from(let hosts):
      var decided = behindKey(entrance, account, connection)
      if decided.isIn { decided.detail = decided.detail ?? "from=\(hosts)" }
      return decided
    case .unseen(let gap):
      let decided = behindKey(entrance, account, connection)
      return decided.isIn ? unseen(gap) : decided
    }
  }

  private func unseen(_ gap: SSHKeyGap) -> Decided {
    switch gap {
    case .elsewhere(let keyword): Decided(.unseen(.keysElsewhere), at: nil, keyword)
    case .slow(let path): Decided(.unseen(.slowFiles), at: FileLocation(file: path))
    case .unread(let reason): Decided(.unseen(.keysElsewhere), at: nil, reason)
    }
  }

  private func decided(_ refusal: SSHRefusal) -> Decided {
    switch refusal {
    case .notAllowed(let location): Decided(.refused(.notAllowed), at: location)
    case .rootLogin(let location): Decided(.refused(.rootLogin), at: location)
    case .locked: Decided(.refused(.locked))
    case .shell: Decided(.refused(.noShell))
    case .unusable(let location): Decided(.refused(.noMethod), at: location)
    }
  }

  /// As if sshd had accepted what comes before PAM.
  private func behindKey(
    _ entrance: SSHEntrance, _ account: AccountFacts.Account, _ connection: SSHConnection
  ) -> Decided {
    guard entrance.usesPAM else { return withoutPAM(entrance, account) }
    let around =
      entrance.methods.contains(where: SSHForecast.runsPAM)
      ? nil : Decided(.withoutCode(opening(entrance)), at: entrance.location)
    return forecaster.decided(
      steps(entrance, connection), of: account, mayBeEmpty: entrance.takesEmptyPassword,
      around: around)
  }

  private static func runsPAM(_ method: String) -> Bool {
    ["password", "keyboard-interactive", "none"].contains(method)
  }

  private static func answers(_ method: String) -> LoginSteps.Answers {
    switch method {
    case "password": .once
    case "none": .empty
    case _: .each
    }
  }

  private func opening(_ entrance: SSHEntrance) -> Opening {
    if entrance.methods.contains("publickey") { return .keyAlone }
    return entrance.methods.contains("hostbased") ? .hostAlone : .ticketAlone
  }

  private func steps(_ entrance: SSHEntrance, _ connection: SSHConnection) -> LoginSteps {
    var steps = LoginSteps(entrance.service, [])
    steps.steps = []
    (steps.remote, steps.isRoots) = (connection.address, true)
    var accepted: [String] = []
    for method in entrance.methods {
      if SSHForecast.runsPAM(method) {
        steps.steps.append(
          LoginSteps.Step(
            phases: [.auth], accepted: accepted, answers: SSHForecast.answers(method))
        )
      }
      accepted.append(method)
    }
    let asks = entrance.methods.last == "keyboard-interactive"
    steps.steps.append(
      LoginSteps.Step(phases: [.account, .session], accepted: accepted, asksInAccount: asks))
    return steps
  }

  private func withoutPAM(_ entrance: SSHEntrance, _ account: AccountFacts.Account) -> Decided {
    if entrance.methods.contains("keyboard-interactive") { return Decided(.refused(.noMethod)) }
    if forecaster.hasExpired(account) { return Decided(.refused(.expired)) }
    if account.uid != 0, forecaster.isNoLogin(by: "/etc/nologin") {
      return Decided(.refused(.noLogin), at: FileLocation(file: "/etc/nologin"))
    }
    if entrance.methods.contains("password") {
      let isBlank = account.password == .blank
      if account.password == .none || isBlank && !entrance.takesEmptyPassword {
        return Decided(.refused(.noPassword))
      }
    }
    return Decided(.withoutCode(.noPAM), at: entrance.location)
  }
}

extension Cell {
  /// Whether it says the same of another connection.
  fileprivate func isAlike(_ other: Cell) -> Bool {
    verdict == other.verdict && methods == other.methods && location == other.location
  }
}
