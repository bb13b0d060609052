import CService
import FleetTransport
import Foundation
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

@testable import SallyportVerifier

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `A login that a host has the fleet count` {
  private let verifier: Verifier
  private let directory: TemporaryDirectory
  private let name = "count-\(UUID().uuidString)"

  init() throws {
    verifier = try Verifier("counting")
    directory = try TemporaryDirectory()
  }

  /// `level`: of the fleet's policy.
  private func count(
    at level: EnrollmentLevel, uid: UInt32? = 1000, enrolls: Bool = true,
    policy: EnrollmentLevel = .remind
  ) throws -> ServiceAnswer? {
    try "[default]\nenrollment = \(level)\n".write(
      toFile: directory.path + "/sallyport.conf", atomically: false, encoding: .utf8)
    let handler = LoginHandler(verifier.database, FleetPolicy(in: directory.path))
    var stated = Policy()
    stated.enrollment = policy
    let request = LoginQuestion(
      name: Array(name.utf8), service: Array("sshd".utf8), origin: .local, policy: stated,
      millisecondsLeft: 5000, verb: .count)
    let pin = try #require(Pin([UInt8](repeating: 4, count: 32)))
    let answer = handler.answer(
      try hostFrame(request, isOwn: false, uid: uid),
      from: HostIdentity(pin, host: Array("web1".utf8), enrolls: enrolls), arrived: sys_monotonic())
    return ServiceAnswer.decode(answer.body, to: .count)
  }

  /// Whatever a host says, a bucket holds and regains what the file of the verifier says, in which
  /// the groups of a user may be any.
  @Test(arguments: [("10 %", 10), ("1 %", 0), ("0.1 %", 5)])
  func `goes by the budget of the fleet's file`(budget: String, adjacent: UInt8) throws {
    try """
    [default]
    [rule a]
    match_service = sudo
    match_group = ops
    guess_budget = 0.5 %
    [rule b]
    match_user = somebody-else
    guess_budget = 0.1 %
    """.write(toFile: directory.path + "/sallyport.conf", atomically: false, encoding: .utf8)
    let handler = LoginHandler(verifier.database, FleetPolicy(in: directory.path))
    let all = [try authenticator(parameters(.totp(period: 30)))]
    for service in ["sshd", "sudo"] {
      var stated = Policy()
      stated.adjacentIntervals = adjacent
      let units = (Double(budget.dropLast(2)) ?? 0) * 1e10
      stated.guessBudget = GuessProbability(units: UInt64(units))
      let request = LoginQuestion(
        name: Array(name.utf8), service: Array(service.utf8), origin: .local, policy: stated,
        millisecondsLeft: 5000, verb: .enrolled)
      let throttle = Throttle(for: all, under: handler.policy(for: request))
      #expect(throttle.capacity.units == 220_000_000)
      #expect(throttle.refillPerYear.units == 2_280_000_000)
    }
  }

  /// A host may be reached through a tunnel that ends on itself: no place, but an address.
  @Test func `goes by the rule of the fleet's file for an address of the host itself`() throws {
    let usual = Policy().adjacentIntervals
    try """
    [default]
    adjacent_intervals = 0
    [rule tunnel]
    match_origin = 127.0.0.0/8
    adjacent_intervals = \(usual)
    """.write(toFile: directory.path + "/sallyport.conf", atomically: false, encoding: .utf8)
    let handler = LoginHandler(verifier.database, FleetPolicy(in: directory.path))
    for (address, intervals) in [([127, 0, 0, 1], usual), ([192, 0, 2, 1], 0)]
      as [([UInt8], UInt8)]
    {
      let request = LoginQuestion(
        name: Array(name.utf8), service: Array("sshd".utf8),
        origin: .address(try #require(NumericAddress(address))), policy: Policy(),
        millisecondsLeft: 5000, verb: .enrolled)
      #expect(handler.policy(for: request).adjacentIntervals == intervals)
    }
  }

  private func rows() throws -> UInt64? {
    try verifier.ask(
      """
      SELECT (SELECT count(*) FROM enrollment WHERE name = $1)
        + (SELECT count(*) FROM state WHERE name = $1)
      """, [.bytes(Array(name.utf8))]
    ).number(0, 0)
  }

  @Test(arguments: [EnrollmentLevel.refuse, .required, .offer])
  func `is not counted at a level at which nobody is reminded`(_ level: EnrollmentLevel) throws {
    for enrolls in [false, true] {
      #expect(try count(at: level, enrolls: enrolls, policy: .voluntary) == .notServed)
    }
    #expect(try count(at: .voluntary, policy: level) == .notServed)
    #expect(try rows() == 0)
  }

  /// The account line, which counts, may name a policy with less than the auth line's.
  @Test func `is counted where he may be reminded`() throws {
    #expect(try count(at: .remind) == .count(1))
    #expect(try count(at: .voluntary) == .count(2))
    #expect(try count(at: .remind, policy: .voluntary) == .count(3))
    #expect(try count(at: .voluntary, policy: .voluntary) == .count(4))
    #expect(try rows() == 2)
  }

  /// Nobody enrolls there, so nobody is reminded. Of who is enrolled nothing is kept.
  @Test func `is not counted for a host that may not enroll, of who is not enrolled`() throws {
    #expect(try count(at: .remind, enrolls: false) == .notServed)
    #expect(try rows() == 0)
    let enrollment = try fleetEnrollment([try authenticator(parameters())], name)
    try verifier.store(for: name).create(enrollment, LoginState(initialFor: enrollment))
    #expect(try count(at: .remind, enrolls: false) == .count(0))
  }

  @Test func `is not counted for whom the host has no account`() throws {
    #expect(try count(at: .remind, uid: nil) == .notServed)
    #expect(try rows() == 0)
  }
}
