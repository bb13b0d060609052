import Foundation
import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem
import TestSupport
import Testing

@testable import SallyportService

/// A service that answers what it likes, and what it was asked.
private final class OddService: Sendable {
  let path: String
  private let own: TemporaryDirectory
  private let service: Service
  private let seen = Locked<[LoginQuestion]>([])
  var requests: [LoginQuestion] { seen.withLock { $0 } }

  /// `takes`: milliseconds until it answers.
  ///
  /// `isFormer`: one of the version before, which knows of no caller that waits. `closing`: which
  /// packets it reads and does not answer, as one that ends then.
  init(
    _ answer: ServiceAnswer, takes milliseconds: UInt64 = 0, isFormer: Bool = false,
    closing: Range<Int> = 0..<0
  ) throws {
    own = try TemporaryDirectory()
    path = own.path + "/root"
    let listeners = try Listeners.open(root: path, everybody: own.path + "/socket")
    let seen = seen
    service = try Service.start(
      Listeners(root: listeners.root, everybody: nil), root: Limits(workers: 1)
    ) { _, packet, _ in
      var count = 0
      if let request = LoginQuestion.decode(packet) {
        count = seen.withLock {
          $0.append(request)
          return $0.count
        }
      }
      if isFormer && packet[0] != 1 || closing.contains(count) { return [] }
      let start = DispatchTime.now().uptimeNanoseconds
      while DispatchTime.now().uptimeNanoseconds - start < milliseconds * 1_000_000 {}
      return answer.encoded() ?? []
    }
  }

  deinit { service.stop() }
}

@Suite(.enabled(if: geteuid() == 0, "the service is root's"))
struct `A service that answers what cannot be` {
  private let alice: Account
  private let context = LoginContext(policy: Policy(), origin: .unknown, service: Label("sshd"))
  private let shape = Shape(
    enrollmentID: 7,
    authenticators: [Shape.Authenticator(name: Label("phone"), kind: .totp, digits: .six)],
    hasScratchCodes: false, backupCodesLeft: nil, wait: 0, isRemembered: false)

  init() throws {
    alice = Account(name: try #require(UserName(Array("alice".utf8))), uid: 1000)
  }

  private func prepare(_ answer: ServiceAnswer, _ account: Account?, mayEnroll: Bool = false) throws
    -> AuthStep
  {
    let service = try OddService(answer)
    return try ServiceAuthority(at: service.path).prepare(
      alice.name.bytes, account, in: context, mayEnroll: mayEnroll, after: .password)
  }

  @Test func `lets nobody in who is not enrolled`() throws {
    let service = try OddService(.outcome(.accepted(.backupCode(left: 1))))
    let authority = ServiceAuthority(at: service.path)
    func attempt(_ claimant: Claimant) throws -> Outcome {
      try authority.attempt(
        try secret("482913"), knownAs: nil, by: PendingLogin(claimant, shape, context),
        as: .last(givingBack: nil))
    }
    for claimant in [Claimant.notEnrolled(alice), .unknown(alice.name), .invalid([0x20])] {
      #expect(throws: StoreTrouble.service(path: service.path, .garbage)) {
        try attempt(claimant)
      }
    }
    guard case .accepted = try attempt(.enrolled(alice)) else {
      Issue.record("refused")
      return
    }
  }

  @Test func `has nobody enroll where the line does not`() throws {
    #expect(throws: StoreTrouble.self) { try prepare(.enroll(.required), alice) }
    guard case .enroll(.required, _) = try prepare(.enroll(.required), alice, mayEnroll: true)
    else {
      Issue.record("does not enroll")
      return
    }
    #expect(throws: StoreTrouble.self) { try prepare(.enroll(.required), nil, mayEnroll: true) }
    #expect(throws: StoreTrouble.self) { try prepare(.skip, nil) }
  }

  /// An account that one of the two alone knows is nobody's.
  @Test func `takes nobody for enrolled whom one of the two does not know`() throws {
    let cases: [(EnrollmentStatus, Account?, Bool)] = [
      (.unknown, alice, false), (.notEnrolled, alice, false), (.enrolled, nil, false),
      (.enrolled, alice, true),
    ]
    for (status, account, isEnrolled) in cases {
      guard case .prompt(let pending) = try prepare(.prompt(status, shape), account) else {
        Issue.record("no prompt")
        continue
      }
      #expect(pending.claimant.isEnrolled == isEnrolled, "\(status)")
    }
  }

  @Test func `has one time for all that a call asks`() throws {
    let service = try OddService(.level(.required), takes: 300)
    let authority = ServiceAuthority(at: service.path)
    for _ in 0..<2 { #expect(try authority.level(of: alice, in: context) == .required) }
    let left = service.requests.map(\.millisecondsLeft)
    try #require(left.count == 2)
    #expect(left[0] <= 5000 && left[1] + 300 <= left[0], "\(left)")
  }

  @Test func `is asked in its own version where it is the former one`() throws {
    let service = try OddService(.level(.required), isFormer: true)
    let authority = ServiceAuthority(at: service.path)
    for _ in 0..<2 { #expect(try authority.level(of: alice, in: context) == .required) }
    #expect(service.requests.map(\.waits) == [true, false, false])
    let silent = try OddService(.prompt(.enrolled, Shape.away(as: 0)))
    #expect(throws: StoreTrouble.service(path: silent.path, .silent)) {
      try ServiceAuthority(at: silent.path).level(of: alice, in: context)
    }
    #expect(silent.requests.count == 2)
  }

  /// In the former version it could use a code unheard.
  @Test func `is asked again in its own version where it ends after an answer`() throws {
    let service = try OddService(.level(.required), closing: 2..<4)
    let authority = ServiceAuthority(at: service.path)
    for _ in 0..<2 { #expect(try authority.level(of: alice, in: context) == .required) }
    #expect(service.requests.map(\.waits) == [true, true, true, true])
    let gone = try OddService(.level(.required), closing: 2..<9)
    let other = ServiceAuthority(at: gone.path)
    #expect(try other.level(of: alice, in: context) == .required)
    #expect(throws: StoreTrouble.service(path: gone.path, .silent)) {
      try other.level(of: alice, in: context)
    }
    #expect(gone.requests.map(\.waits) == [true, true, true, true])
  }

  /// A service of the former version closes the connection, as this one does.
  @Test func `keeps no login waiting that asks what its owner is told, and ends none`() throws {
    let service = try OddService(.prompt(.enrolled, shape), closing: 1..<3)
    let authority = ServiceAuthority(at: service.path)
    #expect(try authority.notices(for: alice, by: nil, in: context) == nil)
    #expect(try authority.enrolled(alice, in: context)?.shape == shape)
    #expect(service.requests.map(\.waits) == [true, false, true])
    for answer in [
      ServiceAnswer.notServed, .trouble(mayBeTheCallers: false), .notEnrolled, .level(.offer),
      .prompt(.enrolled, .away(as: 1)), .done,
    ] {
      let odd = ServiceAuthority(at: try OddService(answer).path)
      #expect(try odd.notices(for: alice, by: nil, in: context) == nil)
    }
    #expect(try ServiceAuthority(at: "/nowhere").notices(for: alice, by: nil, in: context) == nil)
    let user = ServiceAuthority(at: service.path, isForRoot: false)
    #expect(try user.notices(for: alice, by: nil, in: context) == nil)
    #expect(service.requests.count == 3)
    // The rest of the login has the time that it had, also over the connection made before.
    let slow = try OddService(.prompt(.enrolled, shape), takes: 900)
    let patient = ServiceAuthority(at: slow.path)
    #expect(patient.canBeAsked())
    #expect(try patient.notices(for: alice, by: nil, in: context) == nil)
    patient.settle([.wrongCodes(2)], of: PendingLogin(.enrolled(alice), shape, context), by: nil)
    #expect(try patient.enrolled(alice, in: context)?.shape == shape)
    let left = slow.requests.map(\.millisecondsLeft)
    #expect(left.count == 3 && left[0] <= 800 && left[1] <= 800 && left[2] >= 4900, "\(left)")
    guard case .notices(by: nil, let told?) = slow.requests[1].verb else {
      Issue.record("\(slow.requests[1].verb)")
      return
    }
    #expect(told == ToldNotices(wrongCodes: 2, latest: UnixTime(0)))
  }

  @Test func `is there for a user's program also where it is not`() {
    #expect(ServiceAuthority(at: "/nowhere/socket", isForRoot: false).canBeAsked())
    #expect(!ServiceAuthority(at: "/nowhere/socket").canBeAsked())
  }
}
