import OneTimePassword
import TestSupport
import Testing

@testable import SallyportCore
@testable import SallyportSystem

/// A policy file with one mistake, and no good one before it: what it still says is tightened, and
/// what cannot be read is the strictest that could stand there.
@Suite struct `A policy file with one letter wrong` {
  static func file(_ text: String, _ service: String = "sshd") throws -> PolicyFile {
    let isRemote = service == "sshd"
    let login = PolicyRequest(
      service: Array(service.utf8), user: Array("alice".utf8), isRemote: isRemote,
      address: isRemote ? Addresses.numeric(Array("192.0.2.7".utf8)) : nil,
      parse: Addresses.numeric, membership: { _ in .yes })
    return PolicyFile(try #require(Secret(text.utf8)), base: Policy(), login)
  }

  /// For each key a line that keeps more people out than no line.
  static func line(_ key: PolicyKey) -> String {
    let value: String =
      switch key {
      case .state: "enabled"
      case .adjacentIntervals, .lookAhead, .remember, .reserveFor: "0"
      case .guessBudget: "0.01 %"
      case .enrollment: "refuse"
      case .selfService, .hints, .tell: "no"
      case .verification: "local"
      case .away: "refuse"
      case .remindEvery, .tries: "1"
      case .requiredFrom: "2027-01-31"
      case .language: "fr"
      case .factorTOTP, .factorHOTP, .factorBackupCode, .factorPass: "off"
      case .factorOrder: "hotp totp backup_code"
      case .minimumFactors: "3"
      case .localServices, .sshdServices: "other"
      case .matchService: "sshd, sudo"
      case .matchUser: "alice"
      case .matchGroup: "staff"
      case .matchOrigin: "192.0.2.0/24, local"
      }
    return "\(key.name) = \(value)"
  }

  static let settings = PolicyKey.allCases.filter(\.isScalar).map(line).joined(separator: "\n")
  static let services = "local_services = sudo\n\(line(.sshdServices))"
  static let conditions = PolicyKey.allCases.filter(\.isMatch).map(line).joined(separator: "\n")
  static let texts = [
    "[default]\n\(services)\n\(settings)\nwithout_code = git:sshd\n",
    "[default]\n\(services)\n[rule strict]\n\(conditions)\n\(settings)\n"
      + "[rule loose]\nmatch_user = alice\nfactor_totp = on\nadjacent_intervals = 10\n",
    "[default]\n\(line(.localServices))\n\(settings)\n",
    "[default]\n\(services)\n[rule other]\nmatch_service = login\nfactor_totp = on\n"
      + "look_ahead = 9\n"
      + "[rule strict]\nmatch_user = alice\n\(settings)\n",
    "[default]\n\(services)\n[rule other]\nmatch_service = login\nfactor_totp = on\n"
      + "look_ahead = 9\n"
      + "[rule strict]\nmatch_service = sshd, sudo\n\(settings)\n[rule end]\nmatch_user = bob\n"
      + "factor_totp = on\n",
  ]

  /// Whether a policy lets somebody in whom the other keeps out, in any key.
  static func isLooser(_ one: Policy, than other: Policy, _ service: String) -> PolicyKey? {
    for key in PolicyKey.allCases where key.isScalar && key != .verification {
      if key.stricter(one[key], other[key]) != one[key] { return key }
    }
    let name = Array(service.utf8)
    if one.isSSHD(service: name), !other.isSSHD(service: name) { return .sshdServices }
    if one.isLocal(service: name), !other.isLocal(service: name) { return .localServices }
    return nil
  }

  private static func wrong(_ text: String) -> [String] {
    let letters = Array(text)
    return letters.indices.filter { letters[$0] != "\n" }.flatMap { place -> [String] in
      var (left, put, other, swapped) = (letters, letters, letters, letters)
      left.remove(at: place)
      put.insert("x", at: place)
      other[place] = "q"
      if place > 0, letters[place - 1] != "\n" { swapped.swapAt(place - 1, place) }
      return [left, put, other, swapped].map { String($0) }
    }
  }

  // decisive
  // shows: policy-mistake
  @Test(arguments: texts.indices, ["sshd", "sudo"])
  func `never lets in whom the right one keeps out`(_ index: Int, _ service: String) throws {
    let right = try Self.file(Self.texts[index], service)
    #expect(right.problem == nil)
    let policy = right.policy(Policy())
    var count = 0
    for text in Self.wrong(Self.texts[index]) {
      let file = try Self.file(text, service)
      guard file.problem != nil else { continue }
      count += 1
      let found = file.policy(Policy())
      if let key = Self.isLooser(found, than: policy, service) {
        Issue.record("\(key.name) is looser: \(String(describing: file.problem))\n\(text)")
        return
      }
      #expect(found.isEnabled && found.level(of: .exempt(until: nil), at: UnixTime(0)) == .refuse)
      #expect(found.adjacentIntervals <= 1 && found.remember == 0)
    }
    #expect(count > 500)
  }

  /// A mistake locks nobody out of more than what it was about.
  @Test(arguments: [
    "[default]\nfactor_totp = on\nadjacent_interval = 3\n", "factor_totp = on\n",
    "[default]\nfactor_totp = on\nfactor_totp = on\n",
    "[default]\n[rule sudo]\nmatch_service = sudo\nfactor_totp = of\n",
    "[default]\n[rule one]\nfactor_totp = on\n", "[default]\nnonsense\n", "nonsense = 1\n",
    "[rule sudo]\nmatch_servce = sudo\nadjacent_intervals = 0\n",
  ]) func `leaves the factors on that it does not name`(_ text: String) throws {
    let file = try Self.file(text)
    #expect(file.problem != nil)
    let policy = file.policy(Policy())
    #expect(policy.totp == .on && policy.hotp == .on && policy.backupCode == .on)
  }

  @Test(arguments: [
    ("[default]\nverification = fleet\nlook_ahed = 1\n", true, false),
    ("[default]\nverification = local\nlook_ahed = 1\n", false, false),
    ("[default]\nverificaton = fleet\n", false, true),
    ("[default]\nverification = flet\n", false, true),
    ("[default]\nlook_ahed = 1\n", false, true),
    (
      "[default]\nverification = local\n[rule a]\nmatch_user = alice\nverification = flet\n", false,
      true
    ),
    ("[default]\nlook_ahead = 1\n", false, false),
  ]) func `says who verifies codes as far as it can be read`(
    _ text: String, _ isFleet: Bool, _ isLost: Bool
  ) throws {
    let file = try Self.file(text)
    #expect(file.policy(Policy()).isFleet == isFleet && file.lacksVerifier == isLost)
  }

  /// `factor_hotp` is one letter from `factor_totp`.
  @Test func `a key that is spelled whole is taken for no other`() throws {
    for line in ["factor_hotpp = off", "factor_hotp off", "factor_hotp = of"] {
      let policy = try Self.file("[default]\n\(line)\n").policy(Policy())
      #expect(policy.totp == .on && policy.hotp == .off, "\(line)")
    }
  }

  @Test func `a budget that is wrong in one line is the least that all services share`() throws {
    let rule = "[rule a]\nmatch_service = sudo\nadjacent_intervals = 1\n"
    let broken = try Self.file("[default]\nguess_budget = 0.01\n\(rule)").policy(Policy())
    let above = try Self.file("\(rule)[default]\nguess_budget = 0.01 %\n").policy(Policy())
    for policy in [broken, above] {
      #expect(policy.guessBudget.units == 100_000_000)
      #expect(policy.sharedBudget.budgets[0] == 100_000_000)
    }
  }
}
