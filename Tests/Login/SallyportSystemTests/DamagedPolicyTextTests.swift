import OneTimePassword
import SallyportCore
import TestSupport
import Testing

@testable import SallyportSystem

/// What a text says of a login of alice by sshd.
private func read(_ text: [UInt8], from host: String) throws -> PolicyFile {
  let login = PolicyRequest(
    service: Array("sshd".utf8), user: Array("alice".utf8), isRemote: true,
    address: Addresses.withoutZone(Array(host.utf8)), parse: Addresses.numeric,
    membership: { _ in .no })
  return PolicyFile(try #require(Secret(text)), base: Policy(), login)
}

@Suite struct `A damaged policy file` {
  private static let sample = Array(
    """
    # sample
    [default]
    state = enabled
    adjacent_intervals = 5
    guess_budget = 1 %
    enrollment = refuse
    local_services = sudo, su
    [rule office]
    match_origin = 192.0.2.0/24, 2001:db8::/32
    match_group = staff
    adjacent_intervals = 2
    factor_hotp = off
    """.utf8)

  // decisive
  @Test func `Never crashes, and never lets the unenrolled pass`() throws {
    var random = Seeded(2)
    let pieces = ["[", "]", "=", "\n", "#", "%", "rule ", "enrollment", "voluntary", "state", "\0"]
    var broken = 0
    for _ in 0..<20_000 {
      var text = Self.sample
      for _ in 0..<random.number(1...4) {
        let place = random.number(0...text.count - 1)
        switch random.number(0...4) {
        case 0: text[place] = random.byte()
        case 1: text.remove(at: place)
        case 2: text.insert(contentsOf: random.pick(pieces).utf8, at: place)
        case 3: text.removeSubrange(place...)
        case _: text.swapAt(place, random.number(0...text.count - 1))
        }
        if text.isEmpty { text = [0x0a] }
      }
      let file = try read(text, from: random.pick(["192.0.2.7", "evil", ""]))
      let policy = file.problem == nil ? file.policy(Policy()) : .strict
      broken += file.problem == nil ? 0 : 1
      let spelled = String(decoding: text, as: UTF8.self)
      #expect(policy.enrollment == .refuse || spelled.contains("voluntary"), "\(spelled)")
      #expect(policy.isEnabled || spelled.contains("disabled"), "\(spelled)")
      #expect(policy.adjacentIntervals <= 10 && policy.lookAhead <= 100)
      #expect(GuessProbability.budgets.contains(policy.guessBudget))
    }
    #expect(broken > 5_000)
  }
}
