import CService
import FleetProtocol
import FleetTransport
import OneTimePassword
import SallyportAdministration
import SallyportLogin
import SallyportSystem
import TestSupport
import Testing

@testable import SallyportCore
@testable import SallyportVerifier

@Suite(.enabled(if: testDatabase != nil, "no database: Tests/Fleet/run starts one"))
struct `A fleet whose verifiers are of two versions` {
  /// As a login does that is accepted from a place: what one machine keeps of the others stays.
  private func logIn(from place: UInt64, _ store: FleetStore, _ account: Account) throws {
    let record = try #require(try store.load(account))
    _ = try store.transact(record, asKnown: true) { _, state in
      var state = state
      let here = NetworkAddress(high: place, low: 0)
      let others = state.origins.filter { $0.origin != here }
      state.origins =
        [KnownOrigin(origin: here, lastSeen: UnixTime(Int64(place)))]
        + others.prefix(LoginState.maximumOrigins - 1)
      return (0, state)
    }
  }

  private func verifier(writing writes: UInt64) throws -> Verifier {
    let one = try Verifier("one", in: try OwnDatabase())
    let row = FleetRow(needs: 2, writes: writes)
    _ = try one.ask(
      "UPDATE fleet SET needs = $1::bigint, writes = $2::bigint, seal = $3",
      [.number(row.needs), .number(writes), .bytes(try row.seal(under: try fleetKey()))])
    return one
  }

  @Test(arguments: [(2, 10), (3, 32), (Schema.former, 32), (Schema.number, 32)])
  func `keeps as many places as all of them read`(_ writes: UInt64, _ most: Int) throws {
    let one = try verifier(writing: writes)
    let name = try one.enroll()
    let account = Account(name: try #require(UserName(Array(name.utf8))), uid: 1000)
    for place: UInt64 in 1...40 { try logIn(from: place, one.store(for: name), account) }
    let kept = try #require(try one.store(for: name).load(account)).state.origins
    #expect(kept.map(\.lastSeen.seconds) == (0..<most).map { 40 - Int64($0) })
    #expect(one.complaints.isEmpty)
  }

  // decisive
  @Test func `names migrate where its tables have no policy yet`() throws {
    let one = try Verifier("one", in: try OwnDatabase())
    _ = try one.ask("DROP TABLE policy")
    _ = try one.ask("UPDATE fleet SET schema = $1::bigint", [.number(Schema.former)])
    do throws(DatabaseFault) {
      _ = try one.database.newestPolicy()
      Issue.record("there is none")
    } catch {
      #expect(error.text.contains("sallyport-verifier migrate"), "\(error.text)")
    }
  }

  @Test(arguments: [2, 3, Schema.former, Schema.number])
  func `blocks nobody before all of them read that`(_ writes: UInt64) throws {
    let one = try verifier(writing: writes)
    let name = try one.enroll()
    let pin = try #require(Pin([UInt8](repeating: 3, count: 32)))
    let host = HostIdentity(pin, host: Array("web1".utf8), enrolls: true)
    let user = try #require(UserName(Array(name.utf8)))
    let frame = try #require(PersonRequest(.block(until: nil), of: user).encoded())
    let answer = ManagementHandler(one.database).answer(frame, from: host, arrived: 0)
    #expect((answer == .notServed) == (writes < Schema.passing))
    let store = one.store(for: name)
    let isBlocked = try store.isBlocked(store.account(named: user), at: store.now)
    #expect(isBlocked == (writes >= Schema.passing))
  }

  @Test(arguments: [2, 3, Schema.former, Schema.number])
  func `gives nobody a pass before all of them read that`(_ writes: UInt64) throws {
    let one = try verifier(writing: writes)
    let name = try one.enroll()
    let directory = try TemporaryDirectory()
    let handler = LoginHandler(one.database, FleetPolicy(in: directory.path))
    let pin = try #require(Pin([UInt8](repeating: 3, count: 32)))
    var policy = Policy()
    policy.isFleet = true
    let (_, pass) = try Pass.fresh(of: 0xe0e0, from: try Clock.now(), for: 7200, uses: 1)
    for change in [EnrollmentChange.give(pass), .add([try token()], backupCodes: nil)] {
      let question = LoginQuestion(
        name: Array(name.utf8), service: Array("sshd".utf8), origin: .unknown, policy: policy,
        millisecondsLeft: 5000, verb: .amend(change, to: 0xe0e0))
      let answer = handler.answer(
        try hostFrame(question, isOwn: false, uid: 1000),
        from: HostIdentity(pin, host: Array("web1".utf8), enrolls: true), arrived: sys_monotonic())
      let found = try #require(ServiceAnswer.decode(answer.body, to: question.verb))
      let isDone = if case .done = found { true } else { false }
      #expect(isDone == (writes >= Schema.passing), "\(found)")
    }
    let user = Account(name: try #require(UserName(Array(name.utf8))), uid: 1000)
    let record = try #require(try one.store(for: name).load(user))
    let isNew = writes >= Schema.passing
    #expect(record.enrollment.passes.count == (isNew ? 1 : 0))
    #expect(record.enrollment.authenticators.last?.clockOffset == (isNew ? -7 : nil))
    #expect(record.state.authenticators.last?.clock?.offset == (isNew ? -7 : nil))
  }

  private func token() throws -> Authenticator {
    Authenticator(
      id: 77, name: try label("fob"), parameters: .standard,
      secret: try secret("abcdefghijklmnopqrst"), initialLastAccepted: nil, created: UnixTime(0),
      clockOffset: -7)
  }

  @Test(arguments: [2, 3, Schema.former, Schema.number])
  func `takes over no pass, exempts nobody up to a day, helps nobody before all read that`(
    _ writes: UInt64
  ) throws {
    let one = try verifier(writing: writes)
    let name = try one.enroll()
    let user = try #require(UserName(Array(name.utf8)))
    let record = try #require(try one.store(for: name).load(Account(name: user, uid: nil)))
    var enrollment = record.enrollment
    enrollment.passes = [
      try Pass.fresh(of: enrollment.id, from: try Clock.now(), for: 7200, uses: 1).pass
    ]
    let moving = MoveRequest.Moving(enrollment, LoginState(initialFor: enrollment))
    enrollment.passes = []
    enrollment.authenticators.append(try token())
    let other = MoveRequest.Moving(enrollment, LoginState(initialFor: enrollment))
    let frames = [
      MoveRequest.put(moving, version: 0).encoded(), MoveRequest.put(other, version: 0).encoded(),
      PersonRequest(.level(.exempt(until: UnixTime(Int64.max >> 1))), of: user).encoded(),
      PersonRequest(.help(HelpOrder(.block(until: nil), by: user)), of: user).encoded(),
    ]
    let pin = try #require(Pin([UInt8](repeating: 3, count: 32)))
    let host = HostIdentity(pin, host: Array("web1".utf8), enrolls: true)
    for frame in frames {
      let answer = ManagementHandler(one.database)
        .answer(try #require(frame), from: host, arrived: 0)
      #expect((answer == .notServed) == (writes < Schema.passing))
    }
  }
}
