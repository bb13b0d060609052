import OneTimePassword
import SallyportCore
import TestSupport
import Testing

// What a case says, as the arguments of a decision, and what came of it, as the case writes it.

private func made(_ authenticators: [Authenticator], _ codes: BackupCodeSet?) throws -> Enrollment {
  try enrollment(authenticators, backupCodes: codes)
}

private func madeSet(_ codes: [String], _ scratch: [String]) throws -> BackupCodeSet {
  try backupCodes(codes, scratch: scratch)
}

extension DecisionCase {
  func enrollment() throws -> Enrollment {
    var enrollment = try made(
      authenticators,
      (backupCodes + scratchCodes).isEmpty
        ? nil : madeSet(backupCodes, scratchCodes))
    for (index, pass) in passes.enumerated() {
      enrollment.passes.append(
        Pass(
          id: UInt64(index + 1), digest: try Pass.digest(secret(pass.code.utf8), of: enrollment.id),
          created: pass.created, expires: pass.expires, uses: pass.uses, enrolls: pass.enrolls))
    }
    return enrollment
  }

  func state(for enrollment: Enrollment) throws -> LoginState {
    var state = LoginState(initialFor: enrollment)
    state.backupCodes?.used = usedBackupCodes
    (state.known, state.other, state.origins) = (known, other, origins)
    for (id, clock) in clocks { state.authenticators[Int(id) - 1].clock = clock }
    for index in state.passes.indices { state.passes[index].used = passes[index].used }
    state.slip = try slip.map {
      Slip(
        authenticator: try id(of: $0[0]), position: try value($0[1]),
        time: UnixTime(try value($0[2])), amount: GuessProbability(units: try value($0[3])))
    }
    state.refunds = Refunds(refunds)
    return state
  }

  private func id(of name: String) throws -> UInt64 {
    let wanted = try label(name)
    return try #require(authenticators.first { $0.name == wanted }).id
  }

  func decision(on typed: String, _ enrollment: Enrollment, _ state: LoginState) throws
    -> Decision
  {
    let response = try Response.classify(secret(typed.unescaped()), for: enrollment)
    return try decide(
      on: response, enrollment: enrollment, state: state, from: origin, through: label("sshd"),
      at: now, under: policy,
      as: role(for: enrollment))
  }

  func role(for enrollment: Enrollment) -> ResponseRole {
    if let claim { return .claim(claim) }
    if isFirstPass { return .firstPass }
    return .last(
      givingBack: charged.map {
        Charge(enrollmentID: enrollment.id, isKnown: $0.isKnown, amount: $0.amount)
      })
  }

  /// The state before it, with what the case says of the state after it.
  func wantedState(before: LoginState, _ decision: Decision) throws -> LoginState {
    var state = before
    state.origins.removeAll { $0.lastSeen > now }
    if case .address(let address) = origin, let proof = decision.proof, !proof.isPass {
      state.origins.removeAll { $0.origin == address }
      state.origins = [KnownOrigin(origin: address, lastSeen: now)] + state.origins
    }
    if let proof = decision.proof, !proof.isPass { state.slip = nil }
    for words in after { try apply(words, to: &state) }
    return state
  }

  private func apply(_ words: [String], to state: inout LoginState) throws {
    switch words[0] {
    case "known", "other":
      state[known: words[0] == "known"] = Bucket(
        spent: GuessProbability(units: try value(words[1])),
        since: words.count > 2 ? UnixTime(try value(words[2])) : now)
    case "clock":
      let wanted = try label(words[1])
      let index = try #require(authenticators.firstIndex { $0.name == wanted })
      state.authenticators[index].clock = TokenClock(
        offset: try value(words[2]), since: UnixTime(try value(words[3])))
    case "slip" where words[1] == "none": state.slip = nil
    case "pass":
      let index: Int = try value(words[1])
      state.passes[index - 1].used = try value(words[2])
      if words.count > 3 { state.passes[index - 1].claim = try value(words[3]) }
    case "slip":
      state.slip = Slip(
        authenticator: try id(of: words[1]), position: try value(words[2]), time: now,
        amount: GuessProbability(units: try value(words[3])))
    case "refunds":
      state.refunds = Refunds(try words.dropFirst().map { UnixTime(try value($0)) })
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
  let clocks: [TokenClock?]
  let used: UInt64?
  let buckets: [Bucket]
  let slip: Slip?
  let refunds: Refunds
  let origins: [NetworkAddress]
  let passes: [String]
}

extension Refunds {
  /// The latest first.
  init(_ times: [UnixTime]) {
    let all = times + [UnixTime](repeating: UnixTime(0), count: max(0, 3 - times.count))
    self.init(last: all[0], second: all[1], third: all[2])
  }
}

extension LoginState {
  var facts: StateFacts {
    StateFacts(
      authenticators: authenticators.map {
        "\($0.id): \($0.lastAccepted.map { "\($0)" } ?? "none"), \($0.drift)"
      }, clocks: authenticators.map(\.clock), used: backupCodes?.used, buckets: [known, other],
      slip: slip, refunds: refunds,
      origins: origins.map(\.origin), passes: passes.map { "\($0.used) \($0.claim)" })
  }
}

extension Decision {
  /// As the table writes an outcome.
  var words: [String] {
    switch verdict {
    case .accept(.authenticator(let name, let drift)): ["accept", name.text, "\(drift)"]
    case .accept(.backupCode(let left)): ["accept-backup", "\(left)"]
    case .accept(.pass(let left)): ["accept-pass", "\(left)"]
    case .accept(.claim(let left)): ["accept-claim", "\(left)"]
    case .refuse(.malformed(let malformation)):
      ["refuse", "malformed", malformation == .sshdDummy ? "sshd-dummy" : "\(malformation)"]
    case .refuse(.wrongCode): ["refuse", "wrong-code"]
    case .refuse(.replayed): ["refuse", "replayed"]
    case .refuse(.throttled): ["refuse", "throttled"]
    case .refuse(.mustEnroll): ["refuse", "must-enroll"]
    case .refuse(.clock(let until)): ["refuse", "clock", "\(until.seconds)"]
    }
  }
}
