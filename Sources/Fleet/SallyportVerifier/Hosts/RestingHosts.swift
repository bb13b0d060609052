import FleetTransport
import OneTimePassword
import SallyportCore
import SallyportSupport
import SallyportSystem

// That a host rests is kept with what was revoked, in the database and in each verifier's file: a
// row of `presence` that somebody deletes or puts back gives no rights back.
extension Revocations {
  /// Under which it is written down when a host was found, and up to when root has accepted it. No
  /// host has such a name.
  static func names(of host: [UInt8], _ key: [UInt8]) -> (rests: [UInt8], accepted: [UInt8]) {
    let place = bytes(of: "/") + hexadecimal(key)
    return (host + bytes(of: "/rests") + place, host + bytes(of: "/accepted") + place)
  }

  /// Whether it was found to be put back or to run twice, and not accepted since.
  func rests(_ host: [UInt8], _ key: [UInt8]) -> Bool {
    let names = Self.names(of: host, key)
    guard let since = end(of: names.rests) else { return false }
    return since > end(of: names.accepted) ?? .min
  }

  /// It was found.
  func noteRest(of host: [UInt8], _ key: [UInt8], in database: Database) throws(DatabaseFault) {
    if rests(host, key) { return }
    guard let now = try? Clock.now() else { throw .unusable("no clock") }
    let names = Self.names(of: host, key)
    let at = max(now.seconds, (end(of: names.accepted) ?? 0) + 1)
    try add(name: names.rests, at: at, to: database)
  }
}

extension RevokedRow {
  private static let accepting = bytes(of: "/accepted/")

  /// Whether it says that root has accepted a host: by all others something is refused.
  var isOfAccepting: Bool {
    let word = Self.accepting
    return host.count > word.count
      && host.indices.dropLast(word.count).contains { host[$0...].starts(with: word) }
  }
}

/// Which hosts go on asking, but say no more which start of their service they are.
///
/// A host of this version says it each ten minutes. One that was put back to before its upgrade
/// does not, and looks like one of the former version, but the fleet has a row of it.
struct SilentHosts: Sendable {
  /// Nanoseconds after which one that was not heard counts as gone.
  private static let gone: UInt64 = 60_000_000_000

  private struct Heard: Sendable {
    /// As the row has it.
    let noted: Int64
    /// Since when it asks, and when it did last, while that is the same.
    let since: UInt64
    var last: UInt64
  }

  private var heard: [Pin: Heard] = [:]

  /// Those that were heard all the time for longer than `silence`, in nanoseconds. `asked`: who has
  /// asked lately.
  mutating func take(
    _ rows: some Collection<PresenceRow>, _ asked: Set<Pin>, at now: UInt64, silence: UInt64
  ) -> Set<Pin> {
    var left: [Pin: Heard] = [:]
    for row in rows where row.kind == .usual && !row.random.isEmpty {
      guard let pin = Pin(row.subject) else { continue }
      if var one = heard[pin], one.noted == row.noted, now &- one.last < Self.gone {
        if asked.contains(pin) { one.last = now }
        left[pin] = one
      } else if asked.contains(pin) {
        left[pin] = Heard(noted: row.noted, since: now, last: now)
      }
    }
    heard = left
    return Set(left.filter { now &- $0.value.since > silence }.keys)
  }
}
