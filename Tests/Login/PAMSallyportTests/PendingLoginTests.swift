import OneTimePassword
import SallyportCore
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

@Suite struct `A login before the response` {
  /// A code of eight digits is checked after minutes, one of six on the phone after hours.
  @Test(arguments: [[Digits.six, .eight], [.eight, .six]])
  func `waits for the number of digits that is checked last`(digits: [Digits]) throws {
    let authenticators = try digits.enumerated().map { index, digits in
      Authenticator(
        id: UInt64(index + 1), name: Label("phone"),
        parameters: try #require(
          CodeParameters(type: .totp(period: 30), algorithm: .sha1, digits: digits)),
        secret: try example(20), initialLastAccepted: nil, created: UnixTime(0))
    }
    let name = try #require(UserName(Array("alice".utf8)))
    let enrollment = Enrollment(
      id: 7, user: name, uid: 1000, created: UnixTime(0), authenticators: authenticators,
      backupCodes: nil)
    let (now, policy) = (UnixTime(1_111_111_111), Policy())
    var state = LoginState(initialFor: enrollment)
    let throttle = Throttle(for: enrollment, state, under: policy)
    state.known = Bucket(spent: throttle.capacity, since: now)
    let waits = [Digits.six, .eight].map { throttle.wait(for: state.known, digits: $0, at: now) }
    let (six, eight) = (try #require(waits[0]), try #require(waits[1]))
    #expect(eight < six)
    let pending = PendingLogin(
      .enrolled(Account(name: name, uid: 1000)),
      Record(enrollment: enrollment, state: state, path: "test", kept: [], decoyOf: nil),
      LoginContext(policy: policy, origin: .unknown, service: Label("sshd")))
    #expect(pending.wait(at: now) == six)
    let later = try #require(pending.wait(at: UnixTime(now.seconds + Int64(eight))))
    #expect((six - eight - 1...six - eight + 1).contains(later))
  }
}
