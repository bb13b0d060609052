import CService
import FleetProtocol
import SallyportCore
import SallyportLogin
import SallyportSupport
import SallyportSystem

// Which start of the service this is: said to the fleet before anything else, each time that it is
// reached again and with each confirmation. The number goes up before a code of the reserve lets
// somebody in, so that a host whose disk is put back says less than it has said before.
extension ReserveSync {
  /// With since when all that is here is confirmed, also as soon as that was done: a change of the
  /// fleet's key waits for it.
  func tellStart() throws(StoreTrouble) -> Progress {
    // Where nothing can be kept there is no reserve either.
    guard var start = reserve.start else { return .done }
    start.confirmed = state.withLock { $0.confirmed }.map { (sys_monotonic() - $0) / 1_000_000_000 }
    let (progress, answer) = try ask(.start(start), within: pace.patience)
    // A verifier of the former version does not read it.
    if progress == .garbled {
      state.withLock { $0.mustTell = false }
      return .done
    }
    guard case .start(let reply)? = answer else { return progress }
    state.withLock { ($0.mustTell, $0.rests) = (reply != .fine, reply == .rests) }
    if reply == .rests {
      var line = LogLine("ALERT: the fleet has seen a later state of this host, or a second one: ")
      line.add("its reserve and its rights rest (sallyport-verifier hosts accept, on a verifier)")
      complain(line)
    }
    return .done
  }

  /// Holds nothing while the fleet says so, whatever a verifier that has not heard of it yet may
  /// give. Who logs in meanwhile is fetched when it is over.
  func rest() throws(StoreTrouble) -> Bool {
    guard state.withLock({ $0.rests }) else { return false }
    try reserve.void()
    return true
  }
}
