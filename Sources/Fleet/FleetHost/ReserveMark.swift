import CService
import FleetProtocol
import FleetTransport
import OneTimePassword
import SallyportAdministration
import SallyportCore
import SallyportSupport
import SallyportSystem

// The mark that a verifier gave last: it says how far the database was. By it verifiers find that
// they were put back together with the database. Nobody reads it here.
extension ReserveSync {
  /// Empty for none; nil where none can be kept.
  var mark: [UInt8]? {
    guard reserve.start != nil else { return nil }
    if let mark = state.withLock({ $0.mark }) { return mark }
    let kept = (try? reserve.store.fleetMark()) ?? []
    return state.withLock { queue in
      let mark = queue.mark ?? (kept.count <= Ping.longestMark ? kept : [])
      queue.mark = mark
      return mark
    }
  }

  /// The body of a ping; nil if memory is short.
  func ping(showing mark: [UInt8]?) -> Secret? {
    mark.map { Ping.question(showing: $0) } ?? Secret(count: 0)
  }

  /// What came in answer to it.
  func take(pong: [UInt8]) {
    guard reserve.start != nil, let next = Ping.next(in: pong) else { return }
    state.withLock { $0.mark = next }
  }

  /// Writes it down, at most as often as the reserve is confirmed: a service that is restarted has
  /// one that is so old.
  func keepMark() throws(StoreTrouble) {
    let now = sys_monotonic()
    let (mark, marked) = state.withLock { ($0.mark ?? [], $0.marked) }
    if let marked, now - marked < pace.confirming * 1_000_000_000 { return }
    if mark.isEmpty { return }
    try reserve.store.keep(fleetMark: mark)
    state.withLock { $0.marked = now }
  }

  /// Shows the mark on a connection before the first question of a login. false: its verifier is
  /// not to be asked, because its database is away, or has less than the mark says.
  func showMark(_ ping: (Secret) -> VerifierAnswer?) -> Bool {
    guard let shown = self.ping(showing: mark), let answer = ping(shown), answer.answers(.ping),
      !Ping.isRefusal(answer.body)
    else { return false }
    take(pong: answer.body)
    return true
  }
}
