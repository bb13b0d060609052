package import OneTimePassword
package import SallyportCore

/// A way on which the verbs about one person go: see Tests/Vectors/verbs.txt.
package enum VerbWay: String, CaseIterable, Sendable {
  case files, service, session, fleet
  case fleetSession = "fleet-session"

  var isSession: Bool { self == .session || self == .fleetSession }
}

/// A case of Tests/Vectors/verbs.txt: what is stored, the verb, what comes of it on each way, and
/// what is stored then.
package struct VerbCase: Sendable, CustomStringConvertible {
  package let description: String
  package private(set) var verb: [String] = []
  private var names: [String] = ["phone"]
  private var codes = 10
  private var used: [Int] = []
  private var drifts: [String: Int64] = [:]
  /// By how many seconds the clocks of tokens are ahead.
  private var clocks: [String: Int32] = [:]
  private var isSpent = false
  private var passes = 0
  /// Whether root has blocked the person.
  package private(set) var isBlocked = false
  /// Whether a pass has put another enrollment in the place of this one.
  private var isReplaced = false
  private var typed: [String] = []
  private var typedInSession: [String] = []
  private var outcome = ""
  private var byDesign: [VerbWay: String] = [:]
  private var unchanged: Set<VerbWay> = []
  private var after: [[String]] = []
  private var afterInSession: [[String]] = []

  /// Of all authenticators and of new ones.
  package static let period: UInt32 = 30
  /// Far from everything: the address that is known and remembered.
  private static let place: [UInt8] = [192, 0, 2, 7]

  /// Those that this way has: all but the ones where it has no such verb.
  package static func all(on way: VerbWay) throws -> [VerbCase] {
    var cases: [VerbCase] = []
    for line in try vectorLines("verbs.txt") {
      if line.hasPrefix("case ") {
        cases.append(VerbCase(description: String(line.dropFirst(5))))
      } else if let last = cases.indices.last {
        try cases[last].take(line)
      }
    }
    guard cases.count > 30 else { throw NotMade() }
    return cases.filter { $0.outcome(on: way) != "none" }
  }

  private init(description: String) { self.description = description }

  private mutating func take(_ line: String) throws {
    var words = line.split(separator: " ").map(String.init)
    let isOfSession = words.first == "(session)"
    if isOfSession { words.removeFirst() }
    guard let key = words.first else { throw NotMade() }
    let rest = Array(words.dropFirst())
    switch key {
    case "after": isOfSession ? afterInSession.append(rest) : after.append(rest)
    case _ where isOfSession: typedInSession = words
    case "has": names = rest
    case "codes": codes = try number(rest.first)
    case "used": used = try rest.map { try number($0) }
    case "drift": drifts[rest[0]] = Int64(try number(rest.last))
    case "token": clocks[rest[0]] = Int32(30 * (try number(rest.last)))
    case "spent": isSpent = true
    case "blocked": isBlocked = true
    case "replaced": isReplaced = true
    case "passes": passes = try number(rest.first)
    case "verb": verb = rest
    case "type": typed = rest
    case "expect": outcome = rest.joined()
    case _:
      guard let way = VerbWay(rawValue: key) else { throw NotMade() }
      byDesign[way] = rest.first
      if rest.last == "unchanged" { unchanged.insert(way) }
    }
  }

  package func outcome(on way: VerbWay) -> String {
    byDesign[way] ?? (way.isSession ? byDesign[.session] : nil) ?? outcome
  }

  /// What is typed on this way, in turn.
  package func typed(on way: VerbWay) -> [String] {
    way.isSession && !typedInSession.isEmpty ? typedInSession : typed
  }

  // MARK: before

  /// What is stored of this person at that time; nil: nothing.
  package func stored(for user: UserName, uid: UInt32?, at now: UnixTime) throws
    -> (enrollment: Enrollment, state: LoginState)?
  {
    if names.isEmpty { return nil }
    let salt = [UInt8](repeating: 1, count: BackupCodeSet.saltLength)
    let all = try names.enumerated().map { index, name in
      Authenticator(
        id: UInt64(index) + 1, name: try label(name), parameters: .standard,
        secret: try Self.secret(of: index), initialLastAccepted: nil, created: UnixTime(0),
        clockOffset: clocks[name])
    }
    let digests = try (1...max(codes, 1)).map {
      try BackupCode.digest(try TestSupport.secret(Self.backupCode($0)), salt: salt)
    }
    let given = (0..<passes).map { number in
      Pass(
        id: UInt64(number) + 1, digest: [UInt8](repeating: 2, count: 32), created: now,
        expires: UnixTime(now.seconds + 7200), uses: 1)
    }
    let enrollment = Enrollment(
      id: 0xe0e0, user: user, uid: uid, created: UnixTime(0), authenticators: all,
      backupCodes: codes == 0 ? nil : BackupCodeSet(id: 5, salt: salt, digests: digests),
      passes: given)
    var state = LoginState(initialFor: enrollment)
    for (name, steps) in drifts {
      guard let index = names.firstIndex(of: name) else { throw NotMade() }
      state.authenticators[index].lastAccepted = UInt64(Self.step(at: now) + steps)
    }
    for number in used { state.backupCodes?.used |= 1 << UInt64(number - 1) }
    if isSpent {
      let spent = Bucket(spent: GuessProbability(units: 10_000_000_000), since: now)
      (state.known, state.other) = (spent, spent)
    }
    guard let known = NetworkAddress(Self.place), let address = NumericAddress(Self.place) else {
      throw NotMade()
    }
    state.origins = [KnownOrigin(origin: known, lastSeen: now)]
    state.grant(address, service: try label("sshd"), at: now)
    return (enrollment, state)
  }

  /// With a pass that enrolls, and what a login with it puts in its place; nil where the case says
  /// nothing of it.
  package func replacement(of enrollment: Enrollment, at now: UnixTime) throws
    -> (given: Enrollment, new: Enrollment)?
  {
    if !isReplaced { return nil }
    var (given, new) = (enrollment, enrollment)
    given.passes = [
      Pass(
        id: 1, digest: [UInt8](repeating: 2, count: 32), created: now,
        expires: UnixTime(now.seconds + 7200), uses: Pass.claims, enrolls: true)
    ]
    new.authenticators = [
      Authenticator(
        id: 9, name: try label("new"), parameters: .standard, secret: try Self.secret(of: 9),
        initialLastAccepted: nil, created: now)
    ]
    (new.backupCodes, new.passes) = (nil, [])
    new.suspended = [Suspension(id: 9, since: now)]
    return (given, new)
  }

  private static func step(at now: UnixTime) -> Int64 { now.seconds / Int64(period) }

  private static func secret(of index: Int) throws -> Secret {
    try TestSupport.secret((0..<20).map { UInt8(ascii: "0") + UInt8(index) + $0 })
  }

  private static func backupCode(_ number: Int) -> String {
    "7KMF2X9QD4TW0H" + String("ABCDEFGHJK".dropFirst(number - 1).prefix(1)) + "A"
  }

  /// What that word of `type` is, at that time. `secret`: of the new authenticator.
  package func answer(_ word: String, at now: UnixTime, new secret: Secret? = nil) throws -> String
  {
    if word == "first" || word == "first+1" {
      let steps = Int64(word == "first" ? 0 : 1)
      return try Self.code(of: secret ?? NotMade.thrown(), at: now, steps: steps)
    }
    if word.hasPrefix("backup:") { return Self.backupCode(try number(String(word.dropFirst(7)))) }
    let end = word.firstIndex { $0 == "+" || $0 == "-" } ?? word.endIndex
    guard let index = names.firstIndex(of: String(word[..<end])) else { return word }
    let steps = end == word.endIndex ? 0 : try number(String(word[end...]))
    return try Self.code(of: try Self.secret(of: index), at: now, steps: Int64(steps))
  }

  private static func code(of secret: Secret, at now: UnixTime, steps: Int64) throws -> String {
    let generator = try CodeGenerator(secret: secret, algorithm: .sha1, digits: .six)
    let code = String(try generator.code(at: UInt64(step(at: now) + steps)))
    return String(repeating: "0", count: 6 - code.count) + code
  }

  // MARK: afterwards

  /// What must be stored then, and what is, in the same words. `now`: when the codes were made.
  package func facts(
    on way: VerbWay, _ found: (enrollment: Enrollment, state: LoginState)?, for user: UserName,
    uid: UInt32?, at now: UnixTime
  ) throws -> (expected: [String: String], found: [String: String]) {
    let before = try stored(for: user, uid: uid, at: now)
    let actual = Self.facts(found, at: now)
    var expected = Self.facts(before, at: now)
    if unchanged.contains(way) { return (expected, actual) }
    for words in after + (way.isSession ? afterInSession : []) {
      let value = words.dropFirst().joined(separator: " ")
      switch words.first ?? "" {
      case "names" where value.isEmpty: expected = Self.facts(nil, at: now)
      case "names":
        if before == nil { expected = Self.fresh }
        expected["names"] = value
        for name in words.dropFirst() where expected["last \(name)"] == nil {
          expected["last \(name)"] = Self.last(of: name, before, at: now, renamed: names, words)
        }
        for name in names where !words.dropFirst().contains(name) { expected["last \(name)"] = nil }
      case "codes":
        (expected["codes"], expected["used"]) = ("\(value)", "")
        expected["set"] = value == "0" ? "none" : "new"
      case "used": expected["used"] = value
      case "last", "off", "clock":
        expected["\(words[0]) \(words[1])"] = words[2]
      case "passes": expected["passes"] = value
      case "unspent": expected["budget"] = "full"
      case "charged": expected["budget"] = "used"
      case "asked": expected["remembered"] = "0"
      case "strange": expected["known"] = "0"
      case _: throw NotMade()
      }
    }
    return (expected, actual)
  }

  /// Of somebody who was not enrolled before.
  private static let fresh = [
    "names": "", "codes": "0", "used": "", "set": "none", "budget": "full", "remembered": "0",
    "known": "0", "passes": "0",
  ]

  /// One that has another name by now keeps what was used.
  private static func last(
    of name: String, _ before: (enrollment: Enrollment, state: LoginState)?, at now: UnixTime,
    renamed old: [String], _ words: [String]
  ) -> String {
    guard let index = words.dropFirst().firstIndex(of: name).map({ $0 - 1 }), let before,
      index < old.count
    else { return "none" }
    return facts(before, at: now)["last \(old[index])"] ?? "none"
  }

  private static func facts(
    _ stored: (enrollment: Enrollment, state: LoginState)?, at now: UnixTime
  ) -> [String: String] {
    guard let (enrollment, state) = stored else { return ["names": ""] }
    var facts = [
      "names": enrollment.authenticators.map(\.name.text).joined(separator: " "),
      "codes": "\(enrollment.backupCodes?.count ?? 0)",
      "used": (0..<64).filter { (state.backupCodes?.used ?? 0) >> UInt64($0) & 1 == 1 }
        .map { "\($0 + 1)" }.joined(separator: " "),
      "set": enrollment.backupCodes.map { $0.id == 5 ? "old" : "new" } ?? "none",
      "budget": state.known.spent.units == 0 ? "full" : "used",
      "remembered": "\(state.remembered.count)", "known": "\(state.origins.count)",
      "passes": "\(enrollment.openPasses(state, at: now).count)",
    ]
    for (authenticator, values) in zip(enrollment.authenticators, state.authenticators) {
      let last = values.lastAccepted.map { "\(Int64($0) - step(at: now))" } ?? "none"
      facts["last \(authenticator.name.text)"] = last
      // Rounded up: it is set by the time at which the codes were typed, in the course of a step.
      if let clock = values.clock {
        facts["clock \(authenticator.name.text)"] = "\((clock.offset + 29) / 30)"
      }
      if values.drift != 0 { facts["off \(authenticator.name.text)"] = "\(values.drift)" }
    }
    return facts
  }
}

private func number(_ word: String?) throws -> Int {
  guard let word, let number = Int(word) else { throw NotMade() }
  return number
}

private func label(_ name: String) throws -> Label {
  guard let label = Label(Array(name.utf8)) else { throw NotMade() }
  return label
}

extension NotMade {
  fileprivate static func thrown() throws -> Secret { throw NotMade() }
}
