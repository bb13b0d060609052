import Glibc
import OneTimePassword
import SallyportCore
import SallyportSystem

extension Fuzzer {
  /// The first byte chooses a login, the rest is the policy file. A file is broken for all logins
  /// or for none, with a line and what was found there; a whole one keeps every bound, says nothing
  /// loose that does not stand in it, and in doubt about groups is as strict as either answer.
  // shows: policy-mistake
  static let policy = Fuzzer(name: "policy") { input in
    var input = Input(input)
    let login = Visitor(input.byte())
    let text = input.remaining()
    let file = login.read(text, .unknown)
    if let problem = file.problem {
      broken(problem, text)
      return
    }
    let doubtful = file.policy(Policy())
    for truth in [Tristate.yes, .no] {
      let policy = login.read(text, truth).policy(Policy())
      for key in tightened {
        must(doubtful[key] <= policy[key], "\(key.name) is looser in doubt")
      }
      keepsItsBounds(policy, text)
    }
    keepsItsBounds(doubtful, text)
    for key in PolicyKey.allCases where file.line(of: key) != 0 {
      let line = line(file.line(of: key), of: text)
      must(
        contains(line, "\(key.name)"), "\(key.name) does not stand in line \(file.line(of: key))")
    }
    let longer = login.read(Array("# a comment\n\n".utf8) + text, .unknown)
    must(
      text.count > 65_000 || longer.policy(Policy()) == doubtful, "a comment changes the policy")
    let meant = login.read(Array("without_code = :\nhelpdesk_for = \n".utf8) + text, .unknown)
    must(
      text.count > 65_000 || meant.problem == nil && meant.policy(Policy()) == doubtful,
      "what no login reads changes the policy")
  }
}

/// The keys of which the smaller number is the stricter one.
private let tightened: [PolicyKey] = [
  .state, .adjacentIntervals, .lookAhead, .guessBudget, .enrollment, .remember, .selfService,
  .verification, .away, .reserveFor, .tries,
]

/// Somebody who logs in.
private struct Visitor {
  private let service: [UInt8]
  private let user: [UInt8]?
  private let host: [UInt8]?

  init(_ choice: UInt8) {
    let hosts: [String?] = [
      nil, "192.0.2.7", "2001:db8::5%eth0", "example.org", "::ffff:192.0.2.7",
    ]
    service = Array((choice & 1 == 0 ? "sshd" : "sudo").utf8)
    user = choice & 2 == 0 ? Array("alice".utf8) : nil
    host = hosts[Int(choice >> 2) % hosts.count].map { Array($0.utf8) }
  }

  func read(_ text: [UInt8], _ membership: Tristate, ignoringUpTo line: Int = 0) -> PolicyFile {
    let login = PolicyRequest(
      service: service, user: user, isRemote: host != nil,
      address: host.flatMap { Addresses.withoutZone($0) }, parse: Addresses.numeric,
      membership: { _ in membership })
    return PolicyFile(secret(text), base: Policy(), login, ignoringUpTo: line)
  }
}

private func broken(_ problem: SettingsError, _ text: [UInt8]) {
  must(isPlaced(problem, in: text), "no line of the text: \(problem)")
  let isThere = contains(line(problem.line, of: text), problem.found)
  must(isThere, "not found in line \(problem.line): \(problem.found)")
  for choice in [UInt8(1), 2, 10] {
    let same = Visitor(choice).read(text, .no).problem
    must(same == problem, "one login's problem is not the next one's: \(problem)")
  }
  guard text.count < 1024 else { return }
  var last = 0
  while let next = Visitor(0).read(text, .no, ignoringUpTo: last).problem {
    must(next.line > last, "line \(next.line) after line \(last)")
    if next.problem == .textTooLong { return }
    last = next.line
  }
}

private func keepsItsBounds(_ policy: Policy, _ text: [UInt8]) {
  must(policy.adjacentIntervals <= 10 && policy.lookAhead <= 100, "beyond its range")
  must(GuessProbability.budgets.contains(policy.guessBudget), "a budget beyond its range")
  must((1...100).contains(policy.remindEvery), "reminds beyond its range")
  must((1...3).contains(policy.minimumFactors), "factors beyond their number")
  must((1...5).contains(policy.tries), "asks beyond its range")
  must(policy.remember <= 366 * 86_400, "remembers for more than a year")
  must(
    policy.enrollment == .refuse || contains(text, "\(policy.enrollment.name)"),
    "loosened by nobody")
  must(policy.remember == 0 || contains(text, "remember"), "remembers what nobody said")
  must(policy.isEnabled || contains(text, "disabled"), "disabled by nobody")
  must(policy.reserveFor <= 366 * 86_400, "kept for more than a year")
  must(!policy.isFleet || contains(text, "fleet"), "the fleet, and nobody said so")
}

private func line(_ number: Int, of text: [UInt8]) -> [UInt8] {
  let lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
  return lines.indices.contains(number - 1) ? Array(lines[number - 1]) : []
}

private func contains(_ text: [UInt8], _ part: String) -> Bool {
  contains(text, Array(part.utf8))
}

private func contains(_ text: [UInt8], _ part: [UInt8]) -> Bool {
  text.withUnsafeBytes { text in
    part.withUnsafeBytes { part in
      guard let start = text.baseAddress, let wanted = part.baseAddress else { return part.isEmpty }
      return memmem(start, text.count, wanted, part.count) != nil
    }
  }
}
