import OneTimePassword
import SallyportCore
import Testing

@Suite struct `A login decision` {
  @Test func `has a table of cases, and each kind of outcome is in it`() throws {
    let outcomes = try DecisionCase.all().map { $0.wanted.prefix(2) }
    #expect(outcomes.count > 100)
    for reason in ["wrong-code", "replayed", "throttled", "clock", "malformed"] {
      #expect(outcomes.contains(["refuse", reason]))
    }
    #expect(outcomes.contains { $0.first == "accept" })
    #expect(outcomes.contains { $0.first == "accept-backup" })
  }

  @Test(arguments: try DecisionCase.all())
  func `is what the table says`(each: DecisionCase) throws {
    let enrollment = try each.enrollment()
    var before = each.state(for: enrollment)
    for typed in each.first {
      let decision = try each.decision(on: typed, enrollment, before)
      #expect(decision.proof != nil, "first \(typed)")
      before = decision.state
    }
    let decision = try each.decision(on: each.typed, enrollment, before)
    #expect(decision.words == each.wanted)
    let wanted = try each.wantedState(before: each.state(for: enrollment), decision)
    #expect(decision.state.facts == wanted.facts)
  }

  @Test(arguments: try DecisionCase.all())
  func `is the same when made twice from the same facts`(each: DecisionCase) throws {
    let enrollment = try each.enrollment()
    let state = each.state(for: enrollment)
    let one = try each.decision(on: each.typed, enrollment, state)
    let two = try each.decision(on: each.typed, enrollment, state)
    #expect(one.words == two.words)
    #expect(one.state == two.state)
  }

  /// Saved and read again, the state says the same: what is decided on is what the disk keeps.
  @Test(arguments: try DecisionCase.all())
  func `leaves a state that the disk can keep`(each: DecisionCase) throws {
    let enrollment = try each.enrollment()
    let state = try each.decision(on: each.typed, enrollment, each.state(for: enrollment)).state
    #expect(try StateRecord.read(StateRecord.fresh(state)).state == state)
  }
}

extension DecisionCase {
  func enrollment() throws -> Enrollment {
    try SallyportCoreTests.enrollment(
      authenticators,
      backupCodes: (backupCodes + scratchCodes).isEmpty
        ? nil : SallyportCoreTests.backupCodes(backupCodes, scratch: scratchCodes))
  }

  func state(for enrollment: Enrollment) -> LoginState {
    var state = LoginState(initialFor: enrollment)
    state.backupCodes?.used = usedBackupCodes
    (state.known, state.other, state.origins) = (known, other, origins)
    return state
  }

  func decision(on typed: String, _ enrollment: Enrollment, _ state: LoginState) throws
    -> Decision
  {
    let response = try Response.classify(secret(typed.unescaped()), for: enrollment)
    return try decide(
      on: response, enrollment: enrollment, state: state, from: origin, through: label("sshd"),
      at: now, under: policy)
  }

  /// The state before it, with what the case says of the state after it.
  func wantedState(before: LoginState, _ decision: Decision) throws -> LoginState {
    var state = before
    state.origins.removeAll { $0.lastSeen > now }
    if case .address(let address) = origin, decision.proof != nil {
      state.origins.removeAll { $0.origin == address }
      state.origins = [KnownOrigin(origin: address, lastSeen: now)] + state.origins
    }
    for words in after { try apply(words, to: &state) }
    return state
  }

  private func apply(_ words: [String], to state: inout LoginState) throws {
    switch words[0] {
    case "known", "other":
      state[known: words[0] == "known"] = Bucket(
        spent: Luck(units: try value(words[1])), since: now)
    case "used":
      state.backupCodes?.used = try words.dropFirst().reduce(0) { used, number in
        let index: UInt64 = try value(number)
        return used | 1 << (index - 1)
      }
    case "origins":
      state.origins = try words.dropFirst().map {
        KnownOrigin(origin: try #require(NetworkAddress(text: $0)), lastSeen: now)
      }
    case let name:
      let wanted = try label(name)
      let index = try #require(authenticators.firstIndex { $0.name == wanted })
      state.authenticators[index].lastAccepted = try value(words[1])
      state.authenticators[index].drift = try value(words[2])
    }
  }
}

/// What the table speaks of: not when something was last used, nor when an origin was last seen.
struct StateFacts: Equatable {
  let authenticators: [String]
  let used: UInt64?
  let spent: [UInt64]
  let origins: [NetworkAddress]
}

extension LoginState {
  var facts: StateFacts {
    StateFacts(
      authenticators: authenticators.map {
        "\($0.id): \($0.lastAccepted.map { "\($0)" } ?? "none"), \($0.drift)"
      }, used: backupCodes?.used, spent: [known.spent.units, other.spent.units],
      origins: origins.map(\.origin))
  }
}

extension Decision {
  /// As the table writes an outcome.
  var words: [String] {
    switch self {
    case .accept(.authenticator(let name, let drift), _): ["accept", name.text, "\(drift)"]
    case .accept(.backupCode(let left), _): ["accept-backup", "\(left)"]
    case .refuse(.malformed(let malformation), _):
      ["refuse", "malformed", malformation == .sshdDummy ? "sshd-dummy" : "\(malformation)"]
    case .refuse(.wrongCode, _): ["refuse", "wrong-code"]
    case .refuse(.replayed, _): ["refuse", "replayed"]
    case .refuse(.throttled, _): ["refuse", "throttled"]
    case .refuse(.clock(let until), _): ["refuse", "clock", "\(until.seconds)"]
    }
  }
}
