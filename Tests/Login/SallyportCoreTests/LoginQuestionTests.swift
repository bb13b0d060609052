import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@Suite struct `A request to the service` {
  /// A request of alice's, one value of it another.
  private func request(
    name: String = "alice", service: [UInt8] = Array("sshd".utf8),
    origin: LoginQuestion.StatedOrigin = .local, _ verb: LoginQuestion.Verb = .level,
    _ change: (inout Policy) -> Void = { _ in }
  ) -> LoginQuestion {
    var policy = Policy()
    change(&policy)
    return LoginQuestion(
      name: Array(name.utf8), service: service, origin: origin, policy: policy,
      millisecondsLeft: 5000, verb: verb)
  }

  /// What is read of the frame of a request.
  private func read(_ request: LoginQuestion) -> LoginQuestion? {
    request.encoded().flatMap { LoginQuestion.decode($0) }
  }

  private func decode(_ frame: [UInt8]) throws -> LoginQuestion? {
    LoginQuestion.decode(try secret(frame))
  }

  // MARK: there and back

  @Test(arguments: 0..<50)
  func `is read as it was written, whatever its verb and its values`(seed: UInt64) throws {
    var random = Seeded(seed)
    for request in try random.requests() {
      let again = try #require(read(request), "\(request.verb)")
      #expect(again.name == request.name && again.service == request.service)
      #expect(again.origin == request.origin && again.policy == request.policy)
      #expect(again.millisecondsLeft == request.millisecondsLeft)
      #expect(try facts(again.verb) == facts(request.verb))
    }
  }

  /// All that a verb says, in words.
  private func facts(_ verb: LoginQuestion.Verb) throws -> String {
    switch verb {
    case .prepare, .enrolled, .level, .remember, .count, .rehearse, .notices: "\(verb)"
    case .attempt(let typed, let known, let role): "\(bytes(typed)) \(known as Any) \(role)"
    case .amend(let change, let id): try "\(id) \(facts(change))"
    }
  }

  private func facts(_ change: EnrollmentChange) throws -> String {
    switch change {
    case .create(let enrollment): "create \(text(try #require(enrollment.written())))"
    case .add(let authenticators, let codes):
      "add \(authenticators.map(facts)) \(codes as Any)"
    case .replace(let authenticators, let codes, let claim):
      "replace \(authenticators.map(facts)) \(codes as Any) \(claim)"
    case .remove, .rename, .renew, .give, .revoke: "\(change)"
    }
  }

  private func facts(_ one: Authenticator) -> String {
    "\(one.id) \(one.name) \(one.parameters) \(bytes(one.secret)) \(one.created)"
      + " \(one.initialLastAccepted as Any)"
  }

  /// Written by hand, in the order that QuestionFields.swift and PolicyKey have.
  private let frame: [UInt8] = {
    let numbers: [UInt64] = [
      1, 10, 100, 100_000_000, 4, 31_622_400, 1, 0, 0, 86_400, 100, 7, 0, 1, 2, 21, 3, 1,
    ]
    let name = [5] + Array("alice".utf8)
    let service = [4] + Array("sshd".utf8)
    let place = [2] + [UInt8](repeating: 0, count: 10) + [0xff, 0xff, 192, 0, 2, 7]
    let policy = numbers.flatMap { number in
      (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
    let attempt: [UInt8] = [2, 6, 2, 0xe0, 0xe0, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0, 0, 0, 0, 0]
    let fields = name + service + place + policy + [1] + [0x88, 0x13, 0, 0] + [1] + attempt
    return [1, UInt8(5 + fields.count), 0, 6, 0] + fields + Array("123456".utf8)
  }()

  @Test func `has the form of version 1`() throws {
    let request = try #require(try decode(frame))
    #expect(request.name == Array("alice".utf8) && request.service == Array("sshd".utf8))
    #expect(request.origin == .address(try #require(NumericAddress([192, 0, 2, 7]))))
    #expect(request.millisecondsLeft == 5000 && request.isAway)
    var policy = Policy()
    policy.isEnabled = false
    (policy.adjacentIntervals, policy.lookAhead, policy.remindEvery) = (10, 100, 100)
    policy.guessBudget = GuessProbability(units: 100_000_000)
    (policy.enrollment, policy.isRefusedByRule) = (.voluntary, true)
    (policy.remember, policy.requiredFrom) = (366 * 86_400, UnixTime(7))
    policy.isSelfService = true
    (policy.isFleet, policy.isRefusedAway, policy.reserveFor) = (true, true, 86_400)
    (policy.totp, policy.hotp, policy.backupCode) = (.on, .off, .mandatory)
    policy.factorOrder = try #require(FactorOrder(number: 21))
    (policy.minimumFactors, policy.hints) = (3, true)
    #expect(request.policy == policy)
    let charge = Charge(enrollmentID: 0xe0e0, isKnown: true, amount: GuessProbability(units: 4))
    #expect(
      try facts(request.verb)
        == facts(
          .attempt(secret("123456"), knownAs: .again, as: .last(givingBack: charge))))
    #expect(try bytes(#require(request.encoded())) == frame)
  }

  @Test func `says by version 2 that its caller waits`() throws {
    #expect(try #require(try decode(frame)).waits == false)
    var waiting = frame
    waiting[0] = 2
    let request = try #require(try decode(waiting))
    #expect(request.waits)
    #expect(try bytes(#require(request.encoded())) == waiting)
  }

  @Test(arguments: [0, 3, 255] as [UInt8])
  func `of another version is none`(version: UInt8) throws {
    var other = frame
    other[0] = version
    #expect(try decode(other) == nil)
  }

  // MARK: bounds

  @Test func `has a name of 1 to 255 bytes and a service of up to 255`() throws {
    for (count, isTaken) in [(0, false), (1, true), (255, true), (256, false)] {
      let name = String(repeating: "a", count: count)
      #expect((read(request(name: name)) != nil) == isTaken, "name of \(count)")
      let service = [UInt8](repeating: 0xff, count: count)
      #expect((read(request(service: service)) != nil) == (count < 256), "service of \(count)")
    }
    // Without a name, and otherwise whole.
    var nameless = frame
    nameless.removeSubrange(6..<11)
    (nameless[5], nameless[1]) = (0, nameless[1] - 5)
    #expect(try decode(nameless) == nil)
  }

  @Test func `has any bytes for a name but where the name is to be enrolled`() throws {
    for name in ["/", ".", "-a", " a", "a\n", "\0"] {
      #expect(read(request(name: name)) != nil)
      let codes = try backupCodes(["ABCDEFGHJKMNPQRS"])
      #expect(request(name: name, .amend(.renew(codes), to: 1)).encoded() == nil)
    }
  }

  /// What a policy file may say and the next value, below or above.
  @Test func `has no value of a policy that a policy file could not have`() {
    let cases: [(String, Bool, (inout Policy) -> Void)] = [
      ("adjacent 0", true, { $0.adjacentIntervals = 0 }),
      ("adjacent 10", true, { $0.adjacentIntervals = 10 }),
      ("adjacent 11", false, { $0.adjacentIntervals = 11 }),
      ("ahead 0", true, { $0.lookAhead = 0 }),
      ("ahead 100", true, { $0.lookAhead = 100 }),
      ("ahead 101", false, { $0.lookAhead = 101 }),
      ("budget 0.01 %", true, { $0.guessBudget = GuessProbability(units: 100_000_000) }),
      ("budget below", false, { $0.guessBudget = GuessProbability(units: 99_999_999) }),
      ("budget 10 %", true, { $0.guessBudget = GuessProbability(units: 100_000_000_000) }),
      ("budget above", false, { $0.guessBudget = GuessProbability(units: 100_000_000_001) }),
      ("remember a leap year", true, { $0.remember = 366 * 86_400 }),
      ("remember longer", false, { $0.remember = 366 * 86_400 + 1 }),
      ("remind 0", false, { $0.remindEvery = 0 }),
      ("remind 1", true, { $0.remindEvery = 1 }),
      ("remind 100", true, { $0.remindEvery = 100 }),
      ("remind 101", false, { $0.remindEvery = 101 }),
      ("factors 0", false, { $0.minimumFactors = 0 }),
      ("factors 3", true, { $0.minimumFactors = 3 }),
      ("factors 4", false, { $0.minimumFactors = 4 }),
      ("required from the end", true, { $0.requiredFrom = UnixTime(Int64.max) }),
    ]
    for (name, isTaken, change) in cases {
      #expect((read(request(.level, change)) != nil) == isTaken, "\(name)")
    }
  }

  /// Offsets in `frame`, and a value that stands for nothing.
  @Test(
    arguments: [
      (16, 3), (33, 2), (65, 5), (66, 1), (81, 2), (89, 2), (97, 2), (108, 2), (128, 0x80),
      (129, 3), (137, 3), (145, 3), (153, 22), (169, 2), (177, 4), (182, 2), (183, 0), (183, 8),
      (184, 7), (185, 3), (194, 2),
    ] as [(Int, UInt8)])
  func `has no word that stands for nothing`(offset: Int, value: UInt8) throws {
    var other = frame
    other[offset] = value
    #expect(try decode(other) == nil)
  }

  @Test func `gives back at most a year's greatest budget`() throws {
    for (units, isTaken) in [(100_000_000_000, true), (100_000_000_001, false)] as [(UInt64, Bool)]
    {
      let charge = Charge(enrollmentID: 1, isKnown: true, amount: GuessProbability(units: units))
      let verb = LoginQuestion.Verb.attempt(
        try secret("1"), knownAs: nil, as: .last(givingBack: charge))
      #expect((read(request(verb)) != nil) == isTaken)
    }
  }

  @Test func `has a response of up to 512 bytes, and of a longer one that it is too long`() throws {
    func attempt(_ count: Int, _ known: Malformation? = nil) throws -> String? {
      let typed = try secret([UInt8](repeating: 0x31, count: count))
      let verb = LoginQuestion.Verb.attempt(typed, knownAs: known, as: .firstPass)
      return try read(request(verb)).map { try facts($0.verb) }
    }
    let ones = [UInt8](repeating: 0x31, count: 512)
    let none: Malformation? = nil
    let tooLong: Malformation? = .tooLong
    let again: Malformation? = .again
    #expect(try attempt(0) == "[] \(none as Any) firstPass")
    #expect(try attempt(512) == "\(ones) \(none as Any) firstPass")
    #expect(try attempt(513) == "[] \(tooLong as Any) firstPass")
    #expect(try attempt(100_000, .again) == "[] \(again as Any) firstPass")
  }

  @Test func `brings a set of as many codes as there can be`() throws {
    let digests = (0..<32).map { [UInt8](repeating: $0, count: 32) }
    let codes = BackupCodeSet(
      id: 1, salt: [UInt8](repeating: 7, count: 16), digests: digests, scratchDigests: digests)
    let name = String(repeating: "a", count: 255)
    let verb = LoginQuestion.Verb.amend(.renew(codes), to: 1)
    let again = try #require(read(request(name: name, verb)))
    #expect(try facts(again.verb) == facts(verb))
  }

  @Test func `changes the enrollment of its own name and of its own id`() throws {
    let alice = try enrollment([authenticator()])
    let codes = try backupCodes(["ABCDEFGHJKMNPQRS"])
    let name = try label("phone")
    let cases: [(String, EnrollmentChange, UInt64, Bool)] = [
      ("alice", .create(alice), 0, true), ("alice", .create(alice), 1, false),
      ("bob", .create(alice), 0, false), ("alice", .renew(codes), 0, false),
      ("alice", .add(alice.authenticators, backupCodes: nil), 0, false),
      ("alice", .remove(name), 0, false), ("alice", .remove(name), 1, true),
      ("alice", .rename(name, to: name), 0, false),
    ]
    for (user, change, id, isTaken) in cases {
      #expect((read(request(name: user, .amend(change, to: id))) != nil) == isTaken)
    }
  }

  @Test(arguments: ["user = bob", "user = alice\nx = 1", "# alice\nuser = alice"])
  func `has the text of a change as it would be written`(line: String) throws {
    let whole = try #require(
      request(.amend(.create(try enrollment([authenticator()])), to: 0)).encoded())
    let frame = bytes(whole)
    let length = Int(frame[1])
    let old = text(try secret(frame[length...]))
    let new = Array(old.replacing("user = alice", with: line).utf8)
    var head = Array(frame[..<length])
    #expect(try decode(head + Array(old.utf8)) != nil)
    (head[3], head[4]) = (UInt8(new.count & 255), UInt8(new.count >> 8))
    #expect(try decode(head + new) == nil)
  }

  @Test func `asks to remember an address or nothing`() throws {
    #expect(request(origin: .local, .remember).encoded() == nil)
    #expect(request(origin: .unknown, .remember).encoded() == nil)
  }

  // MARK: damage

  @Test func `is nothing when cut off anywhere, and nothing with a byte more`() throws {
    var random = Seeded(3)
    for request in try random.requests() {
      let frame = bytes(try #require(request.encoded()))
      for count in 0..<frame.count { #expect(try decode(Array(frame[..<count])) == nil) }
      #expect(try decode(frame + [0]) == nil)
      #expect(try decode(frame) != nil)
    }
  }

  @Test(arguments: 0..<10)
  func `is written as it was read, whatever was read`(seed: UInt64) throws {
    var random = Seeded(100 + seed)
    var taken = 0
    let frames = try random.requests().map { bytes(try #require($0.encoded())) }
    for _ in 0..<10_000 {
      let frame = random.mutated(frame: random.pick(frames))
      guard let request = try decode(frame) else { continue }
      taken += 1
      #expect(try bytes(#require(request.encoded())) == frame)
    }
    #expect(taken > 100)
  }
}
