import CService
import FleetTransport
import OneTimePassword
import SallyportSupport
import SallyportSystem

extension FleetKey {
  /// By the present key.
  func receipt(_ enrollment: UInt64, of name: [UInt8], for pin: Pin) throws(CryptoError) -> [UInt8]
  {
    try present.receipt(enrollment, of: name, for: pin)
  }
}

extension SealingKey {
  /// What a host with this key shows to prove that it was given the backup codes of this
  /// enrollment (docs/fleet-format.md).
  func receipt(_ enrollment: UInt64, of name: [UInt8], for pin: Pin) throws(CryptoError) -> [UInt8]
  {
    let parts = [OneTimePassword.bytes(of: "reserve"), name, pin.bytes, number(enrollment)]
    let made = try derive(parts.flatMap { FleetKey.counted($0) })
    return made.bytes(in: 0..<made.count)
  }
}

/// Who was let in by this verifier in the last minute, and on which host: whose backup codes that
/// host may fetch.
package final class RecentLogins: Sendable {
  private static let lifetime: UInt64 = 60_000_000_000
  /// More than there are in a minute, but for a flood: then the oldest are forgotten, and fetched
  /// at the next login.
  private static let most = 65_536

  private struct Login: Hashable {
    let name: [UInt8]
    let pin: Pin
  }

  private let logins = Locked<[Login: UInt64]>([:])

  package init() {}

  func note(_ name: [UInt8], on pin: Pin) {
    let now = sys_monotonic()
    logins.withLock { logins in
      if logins.count >= Self.most {
        logins = logins.filter { now - $0.value < Self.lifetime }
        if logins.count >= Self.most { logins = [:] }
      }
      logins[Login(name: name, pin: pin)] = now
    }
  }

  func has(_ name: [UInt8], on pin: Pin) -> Bool {
    let now = sys_monotonic()
    return logins.withLock {
      $0[Login(name: name, pin: pin)].map { now - $0 < Self.lifetime } ?? false
    }
  }
}
