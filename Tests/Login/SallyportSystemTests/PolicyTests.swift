import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@testable import SallyportSystem

/// What a text says of one login.
private func read(
  _ text: [UInt8], base: Policy = Policy(), service: String = "sshd", user: String? = "alice",
  from host: String? = "192.0.2.7", groups: [String: Tristate] = [:]
) throws -> PolicyFile {
  let login = PolicyRequest(
    service: Array(service.utf8), user: user.map { Array($0.utf8) }, isRemote: host != nil,
    address: host.flatMap { Addresses.withoutZone(Array($0.utf8)) }, parse: Addresses.numeric,
    membership: { groups[String(decoding: $0, as: UTF8.self)] ?? .no })
  return PolicyFile(try #require(Secret(text)), base: base, login)
}

private func policy(
  _ text: String, service: String = "sshd", user: String? = "alice",
  from host: String? = "192.0.2.7", groups: [String: Tristate] = [:]
) throws -> Policy {
  let file = try read(
    Array(text.utf8), service: service, user: user, from: host, groups: groups)
  #expect(file.problem == nil)
  return file.policy(Policy())
}

@Suite struct `The keys of a policy file` {
  struct Good: Sendable {
    let line: String
    let check: @Sendable (Policy) -> Bool
    init(_ line: String, _ check: @escaping @Sendable (Policy) -> Bool) {
      (self.line, self.check) = (line, check)
    }
  }

  static let good = [
    Good("state = enabled") { $0.isEnabled }, Good("state = disabled") { !$0.isEnabled },
    Good("adjacent_intervals = 0") { $0.adjacentIntervals == 0 },
    Good("adjacent_intervals=10") { $0.adjacentIntervals == 10 },
    Good("look_ahead = 0") { $0.lookAhead == 0 }, Good("look_ahead = 100") { $0.lookAhead == 100 },
    Good("guess_budget = 0.01 %") { $0.guessBudget == GuessProbability.budgets.lowerBound },
    Good("guess_budget = 10 %") { $0.guessBudget == GuessProbability.budgets.upperBound },
    Good("guess_budget = 1%") { $0.guessBudget == .percent },
    Good("guess_budget = 0.5 %") { $0.guessBudget.units == 5_000_000_000 },
    Good("guess_budget = 2.25%") { $0.guessBudget.units == 22_500_000_000 },
    Good("enrollment = refuse") { $0.enrollment == .refuse },
    Good("enrollment = required") { $0.enrollment == .required },
    Good("enrollment = offer") { $0.enrollment == .offer },
    Good("enrollment = remind") { $0.enrollment == .remind },
    Good("enrollment = voluntary") { $0.enrollment == .voluntary },
    Good("remind_every = 1") { $0.remindEvery == 1 },
    Good("remind_every = 100") { $0.remindEvery == 100 },
    Good("required_from = 1970-01-01") { $0.requiredFrom == UnixTime(0) },
    Good("required_from = 2026-11-21") { $0.requiredFrom == UnixTime(1_795_219_200) },
    Good("required_from = 2000-02-29") { $0.requiredFrom == UnixTime(951_782_400) },
    Good("required_from = 2028-02-29") { $0.requiredFrom == UnixTime(1_835_395_200) },
    Good("required_from = 2999-12-31") { $0.requiredFrom == UnixTime(32_503_593_600) },
    Good("remember = 0") { $0.remember == 0 }, Good("remember = 45 s") { $0.remember == 45 },
    Good("remember = 90m") { $0.remember == 5400 },
    Good("remember = 12 h") { $0.remember == 43_200 },
    Good("remember = 366d") { $0.remember == 31_622_400 },
    Good("hints = yes") { $0.hints }, Good("hints = no") { !$0.hints },
    Good("tell = yes") { $0.tells }, Good("tell = no") { !$0.tells },
    Good("language = en") { $0.language == 0 && $0.promptLanguage == 0 },
    Good("language = en_GB") { $0.language == 0 && $0.promptLanguage == 0 },
    Good("language = fr") { Policy.name(ofLanguage: $0.language) == Array("fr".utf8) },
    Good("language = fil") { Policy.name(ofLanguage: $0.language) == Array("fil".utf8) },
    Good("language = pt_BR") { Policy.name(ofLanguage: $0.language) == Array("pt-BR".utf8) },
    Good("language = french") { Policy.name(ofLanguage: $0.language) == Array("?".utf8) },
    Good("self_service = yes") { $0.isSelfService },
    Good("self_service = no") { !$0.isSelfService },
    Good("verification = fleet") { $0.isFleet }, Good("verification = local") { !$0.isFleet },
    Good("away = refuse") { $0.isRefusedAway }, Good("away = backup_code") { !$0.isRefusedAway },
    Good("reserve_for = 0") { $0.reserveFor == 0 },
    Good("reserve_for = 36 h") { $0.reserveFor == 129_600 },
    Good("reserve_for = 366 d") { $0.reserveFor == 31_622_400 },
    Good("tries = 1") { $0.tries == 1 }, Good("tries = 5") { $0.tries == 5 },
    Good("factor_totp = mandatory") { $0.totp == .mandatory },
    Good("factor_backup_code = mandatory") { $0.backupCode == .mandatory },
    Good("factor_order = hotp, backup_code totp") {
      $0.factorOrder.first == .hotp && $0.factorOrder.second == .backupCode
        && $0.factorOrder.third == .totp
    },
    Good("minimum_factors = 1") { $0.minimumFactors == 1 },
    Good("minimum_factors = 3") { $0.minimumFactors == 3 },
    Good("factor_totp = off") { $0.totp == .off && $0.hotp == .on && $0.backupCode == .on },
    Good("factor_hotp = off") { $0.totp == .on && $0.hotp == .off },
    Good("factor_backup_code = off") { $0.totp == .on && $0.backupCode == .off },
    Good("factor_totp = on") { $0.totp == .on },
  ]

  @Test(arguments: good) func `Each value does what it says`(_ the: Good) throws {
    #expect(the.check(try policy("# a comment\n[default]\n\(the.line)\n")))
    #expect(the.check(try policy("[default]\n[rule r]\nmatch_user = alice\n\(the.line)")))
  }

  @Test(arguments: [
    "state = on", "state =", "adjacent_intervals = 11", "adjacent_intervals = -1",
    "adjacent_intervals = 5.0", "look_ahead = 101", "look_ahead = 99999999999999999999",
    "guess_budget = 1", "guess_budget = 0 %", "guess_budget = 10.01 %", "guess_budget = 0.009 %",
    "guess_budget = .5 %", "guess_budget = 1.%", "guess_budget = %", "guess_budget = 1  %",
    "guess_budget = 1e1 %", "guess_budget = 1.2.3 %", "enrollment = optional",
    "enrollment = Refuse", "factor_totp = must", "factor_hotp = 1", "remind_every = 0",
    "remind_every = 101", "required_from = 2026-02-29", "required_from = 2100-02-29",
    "required_from = 2026-13-01",
    "required_from = 2026-04-31", "required_from = 2026-1-1", "required_from = 3000-01-01",
    "required_from = 1969-12-31", "required_from = tomorrow", "remember = 12", "remember = h",
    "remember = 367 d", "remember = 99999999999d", "remember = -1 d", "remember = 1  h",
    "verification = Fleet", "verification = files", "verification =", "away = yes",
    "away = backup-code", "reserve_for = 7", "reserve_for = 367 d", "tries = 0",
    "tries = 6", "self_service = true",
    "hints = true", "factor_order = totp",
    "factor_order = hotp, backup_code",
    "factor_order = totp, totp, hotp", "factor_order = totp, hotp, backup_code, totp",
    "factor_order = totp, hotp, sms", "minimum_factors = 0", "minimum_factors = 4",
    "factor_backup_code = yes", "local_services =", "local_services = ,", "sshd_services =",
    "sshd_services = ,", "local_services = \"su", "sshd_services = sshd, \"\"",
  ]) func `A bad value is told with its line, what was found and what was wanted`(_ line: String)
    throws
  {
    let problem = try read(Array("\n[default]\n\(line)\nstate = enabled".utf8)).problem
    #expect(problem?.line == 3)
    guard case .value(let key, _) = problem?.problem else {
      Issue.record("\(String(describing: problem))")
      return
    }
    #expect(line.hasPrefix("\(key) ="))
    let value = line.drop { $0 != "=" }.dropFirst().drop { $0 == " " }
    #expect(problem?.found == Array(value.utf8))
  }

  @Test(arguments: [
    ("state = enabled", 1), ("[default]\nmatch_user = a", 2), ("[default]\n[default]", 2),
    ("[rule a]\nmatch_user = b\n[default]\n", 3), ("[rule a]\nstate = enabled\n", 1),
    ("[rule]\nmatch_user = a", 1), ("[rule ]\nmatch_user = a", 1), ("[users]\n", 1),
    ("[default]\nstate = enabled\nstate = enabled", 3), ("[default]\nhint = yes", 2),
    ("[default]\nnonsense", 2), ("[default", 1),
    ("[rule a]\nmatch_user = a\nlocal_services = sudo", 3),
    ("[rule a]\nmatch_user = a\nsshd_services = sshd", 3),
    ("[default]\nsshd_services = a\nsshd_services = b", 3), ("sshd_services = a", 1),
    ("[rule a]\nmatch_origin = example.org", 2), ("[rule a]\nmatch_origin = 192.0.2.0/33", 2),
    ("[rule a]\nmatch_origin = 192.0.2", 2), ("[rule a]\nmatch_origin = 2001:db8::/129", 2),
    ("[rule a]\nmatch_origin = fe80::1%eth0", 2), ("[rule a]\nmatch_origin = 10.0.0.0/", 2),
    ("[rule a]\nmatch_group =", 2), ("[rule a]\nmatch_user = a\nmatch_user = b", 3),
  ]) func `What the file cannot say is told with its line`(_ text: String, _ line: Int) throws {
    #expect(try read(Array(text.utf8)).problem?.line == line)
  }

  /// Somebody who mistypes what no login reads is not locked out by it.
  // decisive
  @Test(
    arguments: [
      "git:sshd", "", ",", "git", ":", "git:sshd:", "*:*", "%wheel:sudo", "git:/etc", "\u{1}",
    ],
    [
      "without_code", "helpdesk", "helpdesk_may", "helpdesk_for", "helpdesk_never", "helpdesk_x",
    ])
  func `What is for programs of root alone changes nothing, right or wrong`(
    _ value: String, key: String
  ) throws {
    let line = "\(key) = \(value)\n"
    let (preset, rule) = ("[default]\nlook_ahead = 7\n", "[rule a]\nmatch_user = alice\n")
    let rest = "adjacent_intervals = 2\nenrollment = voluntary\n"
    let plain = try policy(preset + rule + rest)
    for text in [
      preset + line + rule + rest, preset + line + line + rule + rest, line + preset + rule + rest,
      preset + rule + line + rest, preset + rule + rest + line + line,
    ] {
      #expect(try policy(text) == plain, "\(text)")
    }
    // It is no condition: a rule needs one.
    #expect(try read(Array("[rule a]\n\(line)enrollment = voluntary\n".utf8)).problem?.line == 1)
  }

  @Test func `All problems are found, one after the other`() throws {
    let text = try #require(Secret("[default]\nx = 1\nstate = on\n[y]\nz\n".utf8))
    let login = PolicyRequest(
      service: [], user: nil, isRemote: false, address: nil, parse: Addresses.numeric,
      membership: { _ in .no })
    var lines = [0]
    while let last = lines.last,
      let next = PolicyFile(text, base: Policy(), login, ignoringUpTo: last).problem
    {
      lines.append(next.line)
    }
    #expect(lines == [0, 2, 3, 4, 5])
  }

  @Test func `A text of 64 KiB is taken, a longer one is not`() throws {
    let rule = "[rule r]\nmatch_user = bob\nadjacent_intervals = 0\n"
    var text = Array(String(repeating: rule, count: 65536 / rule.utf8.count).utf8)
    text += [UInt8](repeating: UInt8(ascii: "#"), count: 65536 - text.count)
    #expect(try read(text).problem == nil)
    #expect(try read(text, user: "bob").policy(Policy()).adjacentIntervals == 0)
    #expect(try read(text + [0x23]).problem?.problem == .textTooLong)
  }
}

@Suite struct `The rules of a policy file` {
  private static let table = """
    [default]
    adjacent_intervals = 4
    look_ahead = 20
    [rule one]
    match_service = sshd, sudo
    match_user = alice
    adjacent_intervals = 3
    [rule two]
    match_user = alice bob
    adjacent_intervals = 2
    guess_budget = 0.5 %
    """

  @Test(arguments: [
    ("sshd", "alice", 3, 5_000_000_000), ("su", "alice", 2, 5_000_000_000),
    ("sshd", "bob", 2, 5_000_000_000), ("sshd", "eve", 4, 10_000_000_000),
  ]) func `Each key has the value of the first rule that matches and sets it`(
    _ service: String, _ user: String, _ intervals: UInt8, _ budget: UInt64
  ) throws {
    let policy = try policy(Self.table, service: service, user: user)
    #expect((policy.adjacentIntervals, policy.guessBudget.units) == (intervals, budget))
    #expect(policy.lookAhead == 20 && policy.enrollment == .refuse)
  }

  @Test(arguments: [
    ("192.0.2.7", "192.0.2.7", true), ("192.0.2.7", "192.0.2.8", false),
    ("192.0.2.0/24", "192.0.2.255", true), ("192.0.2.0/24", "192.0.3.0", false),
    ("192.0.2.128/25", "192.0.2.127", false), ("0.0.0.0/0", "198.51.100.1", true),
    ("0.0.0.0/0", "2001:db8::1", false), ("::/0", "198.51.100.1", false),
    ("::/0", "2001:db8::1", true), ("192.0.2.0/24", "::ffff:192.0.2.9", true),
    ("::ffff:192.0.2.0/120", "192.0.2.9", true), ("2001:db8::/32", "2001:db8:9::1", true),
    ("2001:db8::5", "2001:db8::5", true), ("2001:db8::5", "2001:db8::6", false),
    ("2001:db8::4/127", "2001:db8::5", true), ("fe80::/10", "fe80::1%eth0", true),
    ("10.0.0.0/8 192.0.2.7", "192.0.2.7", true), ("0.0.0.0/0,::/0", "example.org", false),
    ("network", "example.org", true), ("network", "192.0.2.7", true), ("local", "192.0.2.7", false),
  ]) func `Origins match by their whole address`(_ range: String, _ host: String, _ yes: Bool)
    throws
  {
    let text = "[rule r]\nmatch_origin = \(range)\nenrollment = voluntary"
    #expect(try policy(text, from: host).enrollment == (yes ? .voluntary : .refuse))
  }

  @Test(
    arguments: [
      ("sshd", "example.org", EnrollmentLevel.refuse), ("sshd", nil, .refuse),
      ("sshd", "192.0.2.7 ", .refuse), ("sshd", "192.0.2.9", .refuse),
      ("sshd", "198.51.100.1", .voluntary), ("sudo", nil, .voluntary),
    ] as [(String, String?, EnrollmentLevel)])
  func `A tightening rule on addresses holds for an origin that is not known`(
    _ service: String, _ host: String?, _ expected: EnrollmentLevel
  ) throws {
    let text = """
      [default]
      enrollment = voluntary
      [rule r]
      match_origin = 192.0.2.0/24
      enrollment = refuse
      """
    #expect(try policy(text, service: service, from: host).enrollment == expected)
  }

  @Test(
    arguments: [
      ("sudo", nil, "local", true), ("sudo", nil, "network", false), ("sshd", nil, "local", false),
      ("sshd", nil, "network", true), ("sudo", "192.0.2.7", "local", false),
      ("sshd", nil, "0.0.0.0/0", false),
    ] as [(String, String?, String, Bool)])
  func `This machine is a login without an address in a local service`(
    _ service: String, _ host: String?, _ word: String, _ yes: Bool
  ) throws {
    let text = "[rule r]\nmatch_origin = \(word)\nenrollment = voluntary"
    #expect(
      try policy(text, service: service, from: host).enrollment == (yes ? .voluntary : .refuse))
  }

  @Test func `The services that are an sshd are those of the file`() throws {
    func isSSHD(_ text: String, _ service: String) throws -> Bool {
      try policy(text, service: service).isSSHD(service: Array(service.utf8))
    }
    let two = "[default]\nsshd_services = sshd-git, sshd2\n"
    #expect(try isSSHD(two, "sshd-git") && isSSHD(two, "sshd2"))
    for service in ["sshd", "sshd-gi", "sshd-git,", "sudo"] {
      #expect(try !isSSHD(two, service), "\(service)")
    }
    for text in ["", "[default]\nlocal_services = sshd2\n"] {
      #expect(try isSSHD(text, "sshd") && !isSSHD(text, "sshd2"))
    }
    #expect(Policy.strict.isSSHD(service: Array("sshd".utf8)))
    // And of the local ones nothing changes.
    #expect(try read(Array(two.utf8), service: "sudo", from: nil).isLocal)
    #expect(try !read(Array(two.utf8), service: "sshd2", from: nil).isLocal)
  }

  @Test func `The local services are those of the file`() throws {
    let text = Array("[default]\nlocal_services = kiosk, sudo\n".utf8)
    #expect(try read(text, service: "kiosk", from: nil).isLocal)
    #expect(try !read(text, service: "su", from: nil).isLocal)
    #expect(try !read(text, service: "kiosk", from: "192.0.2.7").isLocal)
    #expect(try read([], service: "su", from: nil).isLocal)
  }

  // shows: groups
  @Test(arguments: [
    ("voluntary", Tristate.yes, EnrollmentLevel.voluntary), ("voluntary", .no, .refuse),
    ("voluntary", .unknown, .refuse),
  ]) func `In doubt a loosening rule does not hold`(
    _ level: String, _ truth: Tristate, _ expected: EnrollmentLevel
  ) throws {
    let text = "[rule r]\nmatch_group = staff\nenrollment = \(level)\nstate = disabled"
    let policy = try policy(text, groups: ["staff": truth])
    #expect(policy.enrollment == expected)
    #expect(policy.isEnabled == (truth != .yes))
  }

  // shows: groups
  @Test func `In doubt a tightening rule holds, and a factor stays as it is`() throws {
    let text = """
      [default]
      enrollment = voluntary
      state = disabled
      [rule r]
      match_group = staff
      adjacent_intervals = 1
      look_ahead = 2
      guess_budget = 0.1 %
      enrollment = refuse
      state = enabled
      factor_totp = off
      [rule s]
      match_service = sshd
      adjacent_intervals = 9
      look_ahead = 1
      """
    let policy = try policy(text, groups: ["staff": .unknown])
    #expect((policy.adjacentIntervals, policy.lookAhead) == (1, 1))
    #expect(policy.guessBudget.units == 1_000_000_000)
    #expect(policy.enrollment == .refuse && policy.isEnabled && policy.totp == .on)
  }

  @Test func `A condition that is false spares the question after the group`() throws {
    let text = "[rule r]\nmatch_user = bob\nmatch_group = staff\nenrollment = voluntary"
    let login = PolicyRequest(
      service: [], user: Array("alice".utf8), isRemote: false, address: nil,
      parse: Addresses.numeric,
      membership: { _ in
        Issue.record("asked")
        return .yes
      })
    let file = PolicyFile(try #require(Secret(text.utf8)), base: Policy(), login)
    #expect(file.policy(Policy()).enrollment == .refuse)
  }

  @Test func `A name that nobody can have may be anybody's`() throws {
    let text = """
      [default]
      state = disabled
      [rule r]
      match_user = alice
      state = enabled
      """
    #expect(try !policy(text, user: "bob").isEnabled)
    #expect(try policy(text, user: nil).isEnabled)
  }
}
