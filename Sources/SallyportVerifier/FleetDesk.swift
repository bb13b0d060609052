import CService
package import OneTimePassword
import SallyportCore
import SallyportLogin
package import SallyportService
import SallyportSystem
import Synchronization

/// Answers the frames of hosts. What a host says counts for the account, the service, the address
/// and whose local login it is; its policy only where it is the stricter one.
package struct FleetDesk: Sendable {
  private let database: Database
  private let hosts: Hosts
  private let policies: Store
  private let policyFile: [UInt8]

  /// `directory`: of sallyport.conf, the policy of the fleet.
  package init(_ database: Database, directory: String) {
    (self.database, hosts) = (database, Hosts(database))
    policies = Store(root: Array(directory.utf8), owner: .effectiveUser)
    policyFile = Array((directory + "/sallyport.conf").utf8)
  }

  /// The frame of the answer; empty for a packet that is none of a host.
  package func answer(_ peer: Peer, _ packet: Secret) -> [UInt8] {
    guard let frame = HostFrame.decode(packet) else { return [] }
    return (answer(frame, arrived: peer.arrived) ?? .notServed).encoded() ?? []
  }

  private func answer(_ frame: HostFrame, arrived: UInt64) -> ServiceAnswer? {
    let request = frame.request
    guard let right = hosts.right(of: frame.host) else { return nil }
    guard right != .unknown else { return .trouble(mayBeTheCallers: false) }
    guard let verb = right.allowed(request.verb) else { return nil }
    let context = frame.context(under: policy(for: request))
    let name = UserName(request.name)
    let account = name.map { Account(name: $0, uid: frame.uid) }
    let deadline = arrived &+ UInt64(min(request.millisecondsLeft, 5000)) &* 1_000_000
    let question = Question(request, account, context, deadline, uidToEnroll: nil)
    let store = FleetStore(database, frame.event, uid: frame.uid)
    do throws(StoreTrouble) {
      let answer = try question.answer(verb, from: store)
      if case .outcome(let outcome) = answer { note(outcome, frame, context) }
      return answer
    } catch {
      note(error, frame)
      return .trouble(mayBeTheCallers: error.mayBeTheCallers)
    }
  }

  private func note(_ trouble: StoreTrouble, _ frame: HostFrame) {
    // The store has done so.
    if case .service = trouble { return }
    var line = LogLine.trouble(trouble, user: frame.request.name, from: nil, .unknown)
    line.add(" host=")
    line.add(field: frame.host)
    database.note(trouble.mayBeTheCallers ? .warning : .alert, line)
  }

  /// The stricter of the host's and the fleet's.
  private func policy(for request: ServiceRequest) -> Policy {
    var address: NumericAddress?
    if case .address(let found) = request.origin { address = found }
    let login = PolicyRequest(
      service: request.service, user: request.name, isRemote: request.origin != .local,
      address: address, parse: Addresses.numeric, membership: { _ in .unknown })
    let reading = policies.policy(at: policyFile, base: Policy(), login)
    if let trouble = reading.trouble {
      database.note(.error, .brokenPolicy(trouble, hasLastGood: reading.policy != nil))
    }
    var policy = request.policy
    policy.tighten(to: reading.policy ?? .strict)
    return policy
  }

  private func note(_ outcome: Outcome, _ frame: HostFrame, _ context: LoginContext) {
    var line = LogLine.outcome(
      outcome, user: frame.request.name, from: frame.event.address, frame.origin)
    line.add(" service=")
    line.add(field: context.service?.bytes ?? [])
    line.add(" host=")
    line.add(field: frame.host)
    database.note(outcome.logLevel, line)
  }
}

extension Policy {
  /// Where both say something, the stricter of the two holds.
  mutating func tighten(to other: Policy) {
    if other.enrollment.rawValue < enrollment.rawValue { requiredFrom = other.requiredFrom }
    for key in PolicyKey.allCases where key.isTightened { self[key] = min(self[key], other[key]) }
    if other.totp == .off { totp = .off }
    if other.hotp == .off { hotp = .off }
    if other.backupCode == .off { backupCode = .off }
    minimumFactors = max(minimumFactors, other.minimumFactors)
    isRefusedByRule = isRefusedByRule || other.isRefusedByRule
  }
}

/// What a host may ask, as the table `host` says; looked up anew after five seconds.
private final class Hosts: Sendable {
  enum Right: Equatable {
    case asks
    /// And changes what is enrolled.
    case enrolls
    /// The database cannot say.
    case unknown

    /// nil: not for this host.
    func allowed(_ verb: ServiceRequest.Verb) -> ServiceRequest.Verb? {
      if self == .enrolls { return verb }
      switch verb {
      case .prepare(_, let first): return .prepare(mayEnroll: false, after: first)
      case .attempt, .enrolled, .level, .remember, .count: return verb
      case .rehearse, .amend: return nil
      }
    }
  }

  private static let lifetime: UInt64 = 5_000_000_000
  private let database: Database
  private let known = Mutex<[[UInt8]: (right: Right?, since: UInt64)]>([:])

  init(_ database: Database) { self.database = database }

  /// nil: no host of the fleet.
  func right(of host: [UInt8]) -> Right? {
    let now = service_monotonic()
    if let found = known.withLock({ $0[host] }), now - found.since < Hosts.lifetime {
      return found.right
    }
    do throws(DatabaseFault) {
      let rows = try database.ask(Statement.host, [.text(host)])
      let right = rows.bytes(0, 0).map { $0 == [1] ? Right.enrolls : .asks }
      known.withLock { $0[host] = (right, now) }
      return right
    } catch {
      var line = LogLine("database error: host=")
      line.add(field: host)
      line.add(": ")
      line.add(escaped(Array(error.text.utf8), limit: 400))
      database.note(.error, line)
      return .unknown
    }
  }
}
